//! Reports of tests that did not run; `cargo xtask test` counts and names them at the end.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Environment variable with the path of the file that collects reports; `cargo xtask test` sets
/// it.
const COLLECTED: &str = "HEAPR_NOT_RUN";

/// Reports that the current test, or a part of it, did not run for want of an installable package
/// or of root. With everything installed (`.ci/run`) this is a failure.
pub fn not_run(reason: impl Display) {
    say("missing", &reason);
}

/// Reports that the current test, or a part of it, cannot run on this kernel, processor or file.
/// Installing packages does not help.
pub fn cannot_run_here(reason: impl Display) {
    say("machine", &reason);
}

fn say(kind: &str, reason: &dyn Display) {
    eprintln!("not run: {reason}");
    let Some(path) = std::env::var_os(COLLECTED) else { return };
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread of a test");
    let line = format!("{kind}\t{test}\t{reason}\n");
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the list of tests that did not run");
}
