//! Runs a program with a time-out. Its output goes to files, so that a daemon that keeps them open
//! does not block the test.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Outcome of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Exit code, or 128 + signal as in a shell.
    pub(crate) status: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

/// Runs `command` in its own process group with `/dev/null` as input; after `limit` the whole group
/// is killed and the test fails. `scratch` is a directory for the output files.
pub(crate) fn run(mut command: Command, scratch: &Path, limit: Duration) -> Outcome {
    let [out_path, err_path] = ["stdout", "stderr"].map(|name| scratch.join(name));
    command
        .stdin(Stdio::null())
        .stdout(File::create(&out_path).unwrap())
        .stderr(File::create(&err_path).unwrap())
        .process_group(0);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let started = Instant::now();
    let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > limit {
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
            let _ = child.wait();
            panic!(
                "{command:?} was not done after {limit:?}\nstdout: {}\nstderr: {}",
                read(&out_path),
                read(&err_path)
            );
        }
        std::thread::sleep(Duration::from_millis(4));
    };
    let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Outcome { status, stdout: read(&out_path), stderr: read(&err_path) }
}
