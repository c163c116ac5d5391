//! One run of a program with a time-out. Its output goes to files, because a process that outlives
//! it would keep a pipe open.

use std::fs::File;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::waiting::{SLOWNESS, wait_at_most};

/// Largest time of a program that a test runs: far more than any needs beside thirty others.
const RUN_LIMIT: Duration = Duration::from_secs(600 * SLOWNESS as u64);

/// Outcome of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Exit code, or 128 + signal as in a shell.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Outcome {
    /// Fails unless the program succeeded.
    ///
    /// # Panics
    /// Panics if the program failed.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.status, 0, "{}{}", self.stdout, self.stderr);
        self
    }

    /// Fails unless heapr failed with all of these words on standard error.
    ///
    /// # Panics
    /// Panics if heapr did not fail, or did not say a word.
    #[track_caller]
    pub fn fails_with(self, words: &[&str]) {
        assert_eq!(self.status, 2, "{}{}", self.stdout, self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {}", self.stderr);
        }
    }

    /// Standard output of a program that succeeded, as JSON.
    ///
    /// # Panics
    /// Panics if the program failed, or wrote something else.
    #[track_caller]
    #[must_use]
    pub fn json(self) -> Value {
        let text = self.ok().stdout;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:.300}"))
    }
}

/// Runs a program in a process group of its own, which is killed when it takes too long.
///
/// # Panics
/// Panics if the program does not start, or is not done within ten minutes.
#[track_caller]
pub fn run(command: &mut Command) -> Outcome {
    run_within(command, RUN_LIMIT)
}

/// Runs a program as [`run`] does, for at most `limit`.
///
/// # Panics
/// Panics if the program does not start, or is not done within `limit`.
#[track_caller]
pub fn run_within(command: &mut Command, limit: Duration) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder for the output");
    let [out_path, err_path] = ["stdout", "stderr"].map(|name| folder.path().join(name));
    let file = |path: &Path| File::create(path).expect("a file for the output");
    command.stdin(Stdio::null()).stdout(file(&out_path)).stderr(file(&err_path)).process_group(0);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    let Some(status) = wait_at_most(limit, || child.try_wait().expect("a child to wait for")) else {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
        let _ = child.wait();
        let (stdout, stderr) = (read(&out_path), read(&err_path));
        panic!("{command:?} was not done after {limit:?}\nstdout: {stdout}\nstderr: {stderr}");
    };
    let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Outcome { status, stdout: read(&out_path), stderr: read(&err_path) }
}
