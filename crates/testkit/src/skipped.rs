//! Tests that did not run: each says so, and `cargo xtask test` counts and names them at the end.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Names the file that collects what did not run; `cargo xtask test` sets it.
const COLLECTED: &str = "HEAPR_NOT_RUN";

/// Says that the current test, or a part of it, did not run because something is missing that could
/// be installed, or because it needs root. Where all is installed (`.ci/run`) this is a failure.
pub fn not_run(reason: impl Display) {
    say("missing", &reason);
}

/// Says that the current test, or a part of it, did not run because this kernel, processor or file
/// does not have what it looks at, and nothing can be installed for it.
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
