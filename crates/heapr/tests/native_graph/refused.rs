//! Impossible requests: one line says why, and the program is unharmed.

use std::fs;
use std::process::Command;

use heapr_testkit::Outcome;

use crate::{Stage, check};

/// Takes the graph of a program that cannot be copied, and returns its notes on that.
fn noted(why: &str) -> String {
    let mut stage = Stage::new();
    let (program, mut arguments, text) = stage.build("uncopied.c");
    arguments.push(why.to_owned());
    let pid = stage.start(&program, &arguments);
    let taken = stage.json(&["snapshot", "take", "--graph", &pid.to_string()]);
    check(&stage.json(&["snapshot", "leaks", "trace.heapr"]), &text);
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    assert!(!state.contains(") Z "), "{state}");
    taken["snapshots"][0]["notes"].to_string()
}

#[test]
fn a_program_whose_filter_would_end_it_for_a_copy_is_not_copied() {
    let notes = noted("filter");
    assert!(notes.contains("its seccomp filter would end it for the system call clone"), "{notes}");
}

#[test]
fn a_program_that_orphans_are_left_to_is_not_copied() {
    let notes = noted("reaper");
    assert!(notes.contains("it takes in orphaned processes"), "{notes}");
}

#[test]
fn what_is_not_there_is_said_in_one_line() {
    let stage = Stage::new();
    let refused = |arguments: &[&str], wanted: &str| {
        let Outcome { status, stdout, stderr } = stage.heapr(arguments);
        assert_eq!(status, 2, "{arguments:?}: {stdout}{stderr}");
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
        assert!(stderr.trim_end().lines().count() <= 2, "{stderr}");
    };
    // A process that has ended, and one that waits for its parent.
    let mut ended = Command::new("true").spawn().unwrap();
    let pid = ended.id().to_string();
    heapr_testkit::wait_until("it has ended", || {
        fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ").then_some(())
    });
    refused(&["snapshot", "take", "--graph", &pid], &pid);
    ended.wait().unwrap();
    refused(&["snapshot", "take", "--graph", &pid], &format!("process {pid}"));
    // A trace without references.
    stage.ok(&["run", "-q", "-o", "plain.heapr", "--", "true"]);
    for verb in ["leaks", "retainers", "dominators", "containment"] {
        let more: &[&str] = if verb == "retainers" { &["@1"] } else { &[] };
        let arguments = [&["snapshot", verb, "plain.heapr"], more].concat();
        refused(&arguments, "no snapshot in it has references between its blocks");
    }
    // A trace whose graph is cut off.
    fs::write(stage.path("broken.heapr"), &fs::read(stage.path("plain.heapr")).unwrap()[..40]).unwrap();
    refused(&["snapshot", "leaks", "broken.heapr"], "broken.heapr");
}
