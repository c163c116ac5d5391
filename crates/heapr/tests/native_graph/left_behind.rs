//! The next attach removes what a killed recording has left in a process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use heapr_testkit::Outcome;

use crate::Stage;
use crate::copies::{Free, named_mappings};

/// Threads wait as those of another allocator might, with leftovers on their stacks that lead into
/// the agent. Only their frames tell to where they will return.
#[test]
fn threads_that_wait_on_what_they_left_on_their_stacks_keep_no_agent() {
    let stage = Stage::new();
    let (program, ..) = stage.build("idle.cc");
    let mut free = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut tasks, out) = (free.stdin.take().unwrap(), free.stdout.take().unwrap());
    let mut lines = BufReader::new(out).lines().map(Result::unwrap);
    let free = Free(free);
    let pid = free.0.id();
    let mut work = || {
        tasks.write_all(b"\n").unwrap();
        assert_eq!(lines.find(|line| !line.starts_with("ready")).as_deref(), Some("done"));
    };
    work();
    let mappings = named_mappings(pid);
    for round in 0..3 {
        let trace = format!("{round}.heapr");
        stage.ok(&["start", "killed", "-q", "-o", &trace, "--pid", &pid.to_string()]);
        work();
        let status = stage.json(&["status", "killed"]);
        let recorder = status["sessions"][0]["recorder_pid"].as_u64().expect("recorder_pid").to_string();
        assert!(Command::new("kill").args(["-9", &recorder]).status().unwrap().success());
        work();
        let taken = format!("taken.{round}.heapr");
        let Outcome { status, stdout, stderr } =
            stage.heapr(&["snapshot", "take", "-o", &taken, &pid.to_string()]);
        assert_eq!(status, 0, "{stdout}{stderr}");
        assert!(!stderr.contains("mapped") && !stdout.contains("mapped"), "{stdout}{stderr}");
        assert_eq!(named_mappings(pid), mappings, "round {round}");
        work();
    }
}
