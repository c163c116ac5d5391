//! Stage for sessions: a runtime directory of their own, a program to trace, and heapr's commands
//! with time-outs.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use heapr_testkit::LIMIT;
use serde_json::Value;

/// Path of the heapr under test.
pub(crate) const HEAPR: &str = env!("CARGO_BIN_EXE_heapr");

/// Outcome of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Exit code, or 128 + signal as in a shell.
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Fails unless the command succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.status, Some(0), "{}{}", self.stdout, self.stderr);
        self
    }

    /// Fails unless the command failed with all of these words on standard error.
    #[track_caller]
    pub(crate) fn fails_with(self, words: &[&str]) {
        assert_eq!(self.status, Some(2), "{}{}", self.stdout, self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {}", self.stderr);
        }
    }
}

/// Sessions of one test, which are ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self { folder }
    }

    /// Returns a path in the stage's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the path as an argument.
    pub(crate) fn argument(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Returns a heapr command of this stage that is not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(HEAPR);
        command
            .args(arguments)
            .env("HEAPR_RUNTIME_DIR", self.folder.path())
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a heapr command.
    pub(crate) fn heapr(&self, arguments: &[&str]) -> Outcome {
        run(self.command(arguments), self.folder.path())
    }

    /// Returns the path and arguments of the program of `steady.c`, which ends when
    /// [`Stage::release`] is called.
    pub(crate) fn steady(&self, rest_us: u32) -> Vec<String> {
        vec![steady_program().to_str().unwrap().to_owned(), self.argument("release"), rest_us.to_string()]
    }

    /// Starts the steady program by itself.
    pub(crate) fn spawn_steady(&self, rest_us: u32) -> std::process::Child {
        let words = self.steady(rest_us);
        let child = Command::new(&words[0]).args(&words[1..]).stdout(Stdio::null()).spawn().unwrap();
        wait_for_own_code(child.id());
        child
    }

    /// Starts a session with the steady program.
    pub(crate) fn start_steady(&self, name: &str, options: &[&str]) -> Outcome {
        let program = self.steady(200);
        let mut arguments = vec!["start", name];
        arguments.extend(options);
        arguments.push("--");
        arguments.extend(program.iter().map(String::as_str));
        self.heapr(&arguments)
    }

    /// Makes the steady programs end.
    pub(crate) fn release(&self) {
        File::create(self.path("release")).unwrap();
    }

    /// Returns the status of a session, from `heapr status NAME --format json`.
    pub(crate) fn status(&self, name: &str) -> Value {
        let outcome = self.heapr(&["status", name, "--format", "json"]).ok();
        let value: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(value["schema"], "heapr.status/1");
        value["sessions"][0].clone()
    }

    /// Waits until `is_so` accepts a session's status.
    #[track_caller]
    pub(crate) fn wait_for(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        heapr_testkit::wait_until(&format!("session {name} shows {what}"), || {
            Some(self.status(name)).filter(|status| is_so(status))
        })
    }

    /// Waits until a session answers.
    pub(crate) fn wait_for_answer(&self, name: &str) {
        heapr_testkit::wait_until(&format!("session {name} answers"), || {
            (self.heapr(&["status", name]).status == Some(0)).then_some(())
        });
    }

    /// Waits until a file that is being written holds events.
    pub(crate) fn wait_for_events_in(&self, file: &str) {
        heapr_testkit::wait_until(&format!("{file} holds events"), || {
            let info = self.heapr(&["info", file, "--format", "json"]).stdout;
            let info: Value = serde_json::from_str(&info).ok()?;
            info["event_count"].as_u64().filter(|&count| count > 0)
        });
    }

    /// Returns the output of `heapr COMMAND FILE … --format json`.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let outcome = self.heapr(&[arguments, &["--format", "json"]].concat()).ok();
        serde_json::from_str(&outcome.stdout).unwrap()
    }

    /// Returns the running recorders and commands of this stage.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let variable = format!("HEAPR_RUNTIME_DIR={}", self.folder.path().display());
        let is_of_stage = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program == Path::new(HEAPR))
                && environment.split(|&byte| byte == 0).any(|one| one == variable.as_bytes())
        };
        let names =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.parse().ok()).filter(is_of_stage).collect()
    }

    /// Returns the names of the files in the folder of sockets.
    pub(crate) fn runtime_files(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path("heapr")) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with("heapr-agent")).collect();
        names.sort();
        names
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = File::create(self.path("release"));
        // Only this stage's sessions: `status` also lists the user's sessions elsewhere.
        for file in self.runtime_files() {
            if let Some(name) = file.strip_suffix(".sock") {
                let _ = self.command(&["cancel", name]).output();
            }
        }
    }
}

/// Waits until a program runs its own code and has allocated; before that it cannot be attached to.
pub(crate) fn wait_for_own_code(pid: u32) {
    heapr_testkit::wait_until("the program allocates", || {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        maps.contains("[heap]").then_some(())
    });
}

/// Runs a command in a process group of its own, which is killed when it takes too long.
pub(crate) fn run(mut command: Command, scratch: &Path) -> Outcome {
    use std::os::unix::process::CommandExt as _;
    // Output goes to files, because a recorder that outlives the command would keep a pipe open.
    let folder = tempfile::tempdir_in(scratch).unwrap();
    let [out_path, err_path] = ["stdout", "stderr"].map(|name| folder.path().join(name));
    command
        .stdout(File::create(&out_path).unwrap())
        .stderr(File::create(&err_path).unwrap())
        .process_group(0);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > LIMIT {
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
            let _ = child.wait();
            panic!("{command:?} was not done after {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    // heapr ends by the signal that ended its program.
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    Outcome { status: code, stdout: read(&out_path), stderr: read(&err_path) }
}

/// Returns the program of `steady.c`, built once.
pub(crate) fn steady_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions/steady.c");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let program = folder.join("steady");
        // Another process may run the tests at the same time: the file is always whole.
        let temporary = folder.join(format!("steady.{}", std::process::id()));
        let status = Command::new("gcc")
            .args(["-g", "-O1", "-fno-builtin", "-o"])
            .arg(&temporary)
            .arg(&source)
            .status()
            .unwrap();
        assert!(status.success(), "gcc {}", source.display());
        fs::rename(&temporary, &program).unwrap();
        program
    })
}
