//! Node, its packages, and DevTools' worker.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

/// Directory of npm packages, which persists between runs.
fn cache() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("node")
}

fn oracle_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(name)
}

/// Whether Node is installed. If not, a test prints that and ends.
pub(crate) fn has_node() -> bool {
    let found = Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("there is no node: nothing tested");
    }
    found
}

/// Returns another version of Node, from the npm package that contains its binary.
pub(crate) fn node_of_version(version: &str) -> PathBuf {
    let directory = cache().join(format!("node-{version}"));
    let binary = directory.join("node_modules/node/bin/node");
    if !binary.exists() {
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("package.json"), "{ \"private\": true }\n").unwrap();
        let package = format!("node@{version}");
        run(Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", &package])
            .current_dir(&directory));
        // If npm does not run package scripts, the binary stays in the package for the machine.
        if !binary.exists() {
            let install = directory.join("node_modules/node/installArchSpecificPackage.js");
            run(Command::new("node").arg(install).current_dir(directory.join("node_modules/node")));
        }
    }
    binary
}

/// Runs the exercise, which takes two snapshots.
pub(crate) fn exercise(node: &Path, name: &str, options: &[&str]) -> [PathBuf; 2] {
    let directory = cache().join("snapshots");
    std::fs::create_dir_all(&directory).unwrap();
    let files = ["a", "b"].map(|which| directory.join(format!("{name}.{which}.heapsnapshot")));
    run(Command::new(node).arg(oracle_file("exercise.js")).args(&files).args(options));
    files
}

/// Takes two snapshots of a page in Chromium.
pub(crate) fn chromium_page(name: &str, options: &[&str]) -> [PathBuf; 2] {
    // One browser runs at a time; the first one installs it.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let files =
        ["a", "b"].map(|which| cache().join("snapshots").join(format!("{name}.{which}.heapsnapshot")));
    std::fs::create_dir_all(cache().join("snapshots")).unwrap();
    let program = oracle_file("chromium.js");
    // Exit status if the browser hangs, which happens occasionally.
    const HUNG: Option<i32> = Some(3);
    for _ in 0..5 {
        let mut command = Command::new("node");
        command.arg(&program).arg(cache().join("chromium")).args(&files).args(options);
        let output = output_in_time(&mut command);
        if output.status.code() != HUNG {
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            break;
        }
    }
    files
}

/// Records an allocation timeline and a sampling profile.
pub(crate) fn timeline_and_profile() -> [PathBuf; 2] {
    static MADE: Once = Once::new();
    let directory = cache().join("snapshots");
    std::fs::create_dir_all(&directory).unwrap();
    let files = ["a.heaptimeline", "a.heapprofile"].map(|name| directory.join(name));
    MADE.call_once(|| run(Command::new("node").arg(oracle_file("timeline.js")).args(&files)));
    files
}

/// Lines that the worker prints for the snapshots.
pub(crate) fn worker_lines(files: &[PathBuf]) -> Vec<String> {
    static INSTALLED: Once = Once::new();
    let directory = cache().join("devtools");
    INSTALLED.call_once(|| run(Command::new("node").arg(oracle_file("install.js")).arg(&directory)));
    let output = output_in_time(
        Command::new("node")
            .arg("--max-old-space-size=8000")
            .arg(oracle_file("numbers.mjs"))
            .arg(&directory)
            .args(files),
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn run(command: &mut Command) {
    let output = output_in_time(command);
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a command that may hang: it is killed after ten minutes.
fn output_in_time(command: &mut Command) -> Output {
    const LIMIT: Duration = Duration::from_secs(600);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id().to_string();
    let (done, ended) = channel::<()>();
    let watch = std::thread::spawn(move || {
        if ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-9", &id]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    watch.join().unwrap();
    output
}
