//! Stage of a test: a folder in which it runs heapr, with sessions of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::outcome::{Outcome, run};

/// Folder for heapr's files and sessions, which are ended with this value.
#[derive(Debug)]
pub struct Stage {
    program: &'static str,
    folder: tempfile::TempDir,
}

impl Stage {
    /// Creates a stage. `program`: path of heapr, `env!("CARGO_BIN_EXE_heapr")`.
    ///
    /// # Panics
    /// Panics if the folder cannot be created.
    #[must_use]
    pub fn new(program: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // heapr refuses a folder of sockets that others may write to.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("its permissions");
        Self { program, folder }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Path of a file in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Path of a file in the folder, as an argument.
    #[must_use]
    pub fn argument(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    /// A heapr command in the folder that is not started yet. Its configuration, caches and state
    /// are the stage's, too.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(words)
            .env("HEAPR_RUNTIME_DIR", self.folder())
            .env("XDG_RUNTIME_DIR", self.folder())
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env_remove("COLUMNS")
            .current_dir(self.folder())
            .stdin(Stdio::null());
        command
    }

    /// Runs a heapr command.
    #[track_caller]
    pub fn heapr(&self, words: &[&str]) -> Outcome {
        run(&mut self.command(words))
    }

    /// Output of a heapr command with `--format json`.
    ///
    /// # Panics
    /// Panics if the command fails.
    #[track_caller]
    #[must_use]
    pub fn json(&self, words: &[&str]) -> Value {
        run(self.command(words).args(["--format", "json"])).json()
    }

    /// Compiles a C program with `options`. Returns its path, as an argument.
    ///
    /// # Panics
    /// Panics if it does not compile.
    #[track_caller]
    #[must_use]
    pub fn compile(&self, name: &str, source: &str, options: &[&str]) -> String {
        let (program, text) = (self.path(name), self.path(&format!("{name}.c")));
        fs::write(&text, source).expect("the source");
        run(Command::new("gcc").args(options).arg("-o").arg(&program).arg(&text)).ok();
        self.argument(name)
    }

    /// Names of the files in the folder of sockets, without those of agents.
    #[must_use]
    pub fn runtime_files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("heapr")).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with("heapr-agent")).collect();
        names.sort();
        names
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Only this stage's sessions: `status` lists the user's other sessions, too.
        for file in self.runtime_files() {
            if let Some(name) = file.strip_suffix(".sock") {
                let _ = self.command(&["cancel", name]).output();
            }
        }
    }
}
