//! Copies of a process: no trace of them is left in it, whenever heapr is killed.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use heapr_testkit::{Outcome, wait_until};

use crate::{Stage, check, verdicts};

/// Rounds of the test; for a longer soak: HEAPR_COPY_ROUNDS=1000.
const ROUNDS: u32 = 24;

/// Program that heapr did not start, killed with this value.
pub(crate) struct Free(pub(crate) std::process::Child);

impl Drop for Free {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_at_work_is_copied_and_does_not_notice() {
    let (stage, _) = verdicts("at_work.c");
    let pid = stage.pid.unwrap().to_string();
    // By the process's number, and by the name of the session that records it.
    for word in [&pid, "graph"] {
        let taken = stage.json(&["snapshot", "take", "--graph", word]);
        let notes = taken["snapshots"][0]["notes"].to_string();
        assert!(!notes.contains("could not be copied"), "{taken}");
    }
    let taken = stage.json(&["snapshot", "take", "--graph", "--pause", "stop", &pid]);
    assert!(taken["snapshots"][0]["pause_ns"].as_u64().unwrap() > 0);
    check(&stage.json(&["snapshot", "leaks", "trace.heapr"]), &Stage::text("at_work.c"));
    assert!(children_of(stage.pid.unwrap()).is_empty());
    stage.ok(&["stop", "graph", "-q"]);
}

#[test]
fn nothing_is_left_of_a_copy_whenever_heapr_is_killed() {
    let stage = Stage::new();
    let (program, ..) = stage.build("at_work.c");
    let mut free = Free(Command::new(&program).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    let mut out = std::io::BufReader::new(free.0.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let pid = free.0.id();
    let descriptors = descriptors_of(pid);
    let began = Instant::now();
    take(&stage, pid, 0).wait().unwrap();
    let whole = began.elapsed();
    let mappings = named_mappings(pid);
    let rounds = std::env::var("HEAPR_COPY_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    for round in 1..=rounds {
        let mut taking = take(&stage, pid, round);
        // Once heapr is attached, it is killed at all moments of its work, in an order that leaps.
        wait_until("it is attached", || {
            let is_attached = named_mappings(pid).iter().any(|name| name.contains("memfd:heapr-pool"));
            let is_done = is_attached && descriptors_of(pid) == descriptors;
            (is_done || taking.try_wait().unwrap().is_some()).then_some(())
        });
        std::thread::sleep(whole * (round * 7 % rounds) / rounds);
        let _ = taking.kill();
        let _ = taking.wait();
        wait_until("nothing is left of the copy", || {
            let is_alone = children_of(pid).is_empty() && copies_of(pid, &program).is_empty();
            (is_alone && is_running(pid)).then_some(())
        });
        let status = free.0.try_wait().unwrap();
        assert!(status.is_none(), "round {round}: it ended: {status:?}");
    }
    // The next attach removes what a killed one has left.
    take(&stage, pid, rounds + 1).wait().unwrap();
    assert_eq!(named_mappings(pid), mappings);
    assert_eq!(descriptors_of(pid), descriptors);
    assert!(free.0.try_wait().unwrap().is_none());
}

fn take(stage: &Stage, pid: u32, round: u32) -> std::process::Child {
    let file = format!("{round}.heapr");
    let mut command = stage.command(&["snapshot", "take", "--graph", "-q", "-o", &file, &pid.to_string()]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn descriptors_of(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Returns the children of a process, also ended ones.
pub(crate) fn children_of(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    children.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Returns other live processes that run the same program.
pub(crate) fn copies_of(pid: u32, program: &std::path::Path) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&other| {
        other != pid && fs::read_link(format!("/proc/{other}/exe")).is_ok_and(|exe| exe == program)
    })
    .collect()
}

/// Whether no thread is stopped or traced, and all have their ordinary priority.
fn is_running(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let mut states = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    states.all(|text| {
        text.contains("TracerPid:\t0\n") && !text.contains("State:\tt") && !text.contains("State:\tT")
    }) && has_ordinary_threads(pid)
}

/// Whether no thread still has the priority that one has while it copies.
fn has_ordinary_threads(pid: u32) -> bool {
    /// Index of the policy behind the name: it is the 41st word of the line.
    const POLICY: usize = 38;
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let mut lines = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    lines.all(|line| {
        let behind = line.rsplit(')').next().unwrap();
        behind.split_whitespace().nth(POLICY) == Some("0")
    })
}

/// Returns the names of mapped files and memory.
pub(crate) fn named_mappings(pid: u32) -> BTreeSet<String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let names = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    names.map(str::to_owned).collect()
}

/// Blocks that only registers hold, or whose pointers are being moved, are unknown while a process
/// runs; they must not be definite leaks.
#[test]
fn a_process_that_is_not_to_stand_still_is_read_twice_while_it_runs() {
    let (stage, _) = verdicts("at_work.c");
    let pid = stage.pid.unwrap().to_string();
    let taken = stage.json(&["snapshot", "take", "--graph", "--pause", "none", &pid]);
    assert_eq!(taken["snapshots"][0]["pause_ns"], 0, "{taken}");
    assert!(taken["snapshots"][0]["notes"].to_string().contains("it ran while it was read"), "{taken}");
    check(&stage.json(&["snapshot", "leaks", "trace.heapr"]), &Stage::text("at_work.c"));
}

/// A copy that may live no longer fails, and the process continues.
#[test]
fn a_copy_lives_no_longer_than_it_may() {
    let (stage, _) = verdicts("at_work.c");
    let pid = stage.pid.unwrap();
    let Outcome { status, stderr, .. } =
        stage.heapr(&["snapshot", "take", "--graph", "--max-pause", "0", &pid.to_string()]);
    assert_eq!(status, 2);
    assert!(stderr.contains("longer than 0 ms"), "{stderr}");
    assert!(wait_until("it runs on", || is_running(pid).then_some(true)));
}
