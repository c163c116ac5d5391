//! Inspecting a program must not disturb it. Calls in which its threads wait are not interrupted,
//! and memory that the program serves itself is not waited for.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use heapr_testkit::not_run;

use crate::stage::Stage;

/// Builds the program of a source beside this one.
fn built(stage: &Stage, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions").join(format!("{name}.c"));
    let program = stage.path(name);
    let gcc = Command::new("gcc").args(["-g", "-O1", "-pthread", "-o"]).arg(&program).arg(source).status();
    assert!(gcc.unwrap().success());
    program
}

/// Starts the program, and waits until it is ready; `None` if it lacks the rights for its purpose
/// here.
fn started(program: &Path, words: &[&str]) -> Option<(Child, BufReader<ChildStdout>)> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    if line.is_empty() {
        assert_eq!(child.wait().unwrap().code(), Some(77));
        return None;
    }
    assert_eq!(line, "ready\n");
    Some((child, output))
}

/// Attaches and detaches, takes graphs in the modes that stop the program, and reads its heap.
fn look(stage: &Stage, pid: &str) {
    stage.heapr(&["start", "s", "--pid", pid, "-f", "-o", "s.heapr"]).ok();
    stage.wait_for("s", "an event", |status| status["event_count"].as_u64() > Some(0));
    stage.heapr(&["stop", "s"]).ok();
    for pause in ["copy", "stop"] {
        let options = ["snapshot", "take", "--graph", "--pause", pause, "-q", "-f", "-o", "g.heapr", pid];
        stage.heapr(&options).ok();
    }
    stage.heapr(&["explain", "--deep", pid]).ok();
}

#[test]
fn no_call_that_waits_is_broken_off_or_waits_much_longer() {
    const LIMIT_MS: u64 = 6000;
    let stage = Stage::new();
    let program = built(&stage, "waiting_calls");
    let (mut child, mut output) = started(&program, &[&LIMIT_MS.to_string()]).unwrap();
    look(&stage, &child.id().to_string());
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    assert_eq!(text.lines().count(), 31, "{text}");
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, _, error, waited_ms] = words[..] else {
            assert_eq!(words[1..], ["waits"], "{text}");
            continue;
        };
        if error == "ENOSYS" {
            not_run(format!("{name}: not on this machine"));
            continue;
        }
        assert!(["0", "EAGAIN", "ETIMEDOUT", "ETIME"].contains(&error), "{line}: {text}");
        // The time-out of a socket call begins again.
        let is_of_socket = ["accept", "recv", "read_socket"].iter().any(|word| name.starts_with(word));
        let waited_ms: u64 = waited_ms.parse().unwrap();
        assert!(waited_ms + 50 >= LIMIT_MS, "{line}: {text}");
        assert!(is_of_socket || waited_ms < 2 * LIMIT_MS, "{line}: {text}");
    }
}

#[test]
fn a_program_in_a_frozen_group_is_refused_in_words_and_runs_on_when_it_is_thawed() {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let of_v2 = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let top = of_v2.and_then(|line| line.split(' ').nth(4)).map(PathBuf::from);
    let group = top.map(|top| top.join(format!("heapr-test-{}", std::process::id())));
    let Some(group) = group.filter(|group| std::fs::create_dir(group).is_ok()) else {
        return not_run("no control group can be made".to_owned());
    };
    let stage = Stage::new();
    let mut child = stage.spawn_steady(200);
    let pid = child.id().to_string();
    let set = |file: &str, value: &str| std::fs::write(group.join(file), value).unwrap();
    set("cgroup.procs", &pid);
    set("cgroup.freeze", "1");
    heapr_testkit::wait_until("the group is frozen", || {
        let events = std::fs::read_to_string(group.join("cgroup.events")).unwrap();
        events.contains("frozen 1").then_some(())
    });
    let options = ["start", "s", "--pid", &pid, "-o", "s.heapr"];
    stage.heapr(&options).fails_with(&["control group is frozen"]);
    set("cgroup.freeze", "0");
    stage.heapr(&["start", "s", "--pid", &pid, "-f", "-o", "s.heapr"]).ok();
    stage.wait_for("s", "an event", |status| status["event_count"].as_u64() > Some(0));
    stage.heapr(&["stop", "s"]).ok();
    stage.release();
    // A signal has not ended it.
    assert!(child.wait().unwrap().code().is_some());
    heapr_testkit::wait_until("the group is empty", || std::fs::remove_dir(&group).ok());
}

#[test]
fn memory_that_a_program_brings_itself_is_not_waited_for() {
    let stage = Stage::new();
    let program = built(&stage, "own_pages");
    for mode in ["missing", "shared", "write", "minor", "forks", "fuse"] {
        let folder = tempfile::tempdir().unwrap();
        let Some((mut child, mut output)) = started(&program, &[mode, folder.path().to_str().unwrap()])
        else {
            not_run(format!("{mode}: not allowed here"));
            continue;
        };
        let pid = child.id().to_string();
        stage.heapr(&["snapshot", "take", "-q", "-f", "-o", "t.heapr", &pid]).ok();
        for pause in ["copy", "stop", "none"] {
            let options = ["snapshot", "take", "--graph", "--pause", pause, "-q", "-f", "-o", "g.heapr"];
            stage.heapr(&[&options[..], &[&pid]].concat()).ok();
            let leaks = stage.heapr(&["snapshot", "leaks", "g.heapr"]).stdout;
            let word = if mode == "fuse" { "FUSE" } else { "userfaultfd" };
            // All write-protected memory is present.
            assert!(mode == "write" || leaks.contains(word), "{mode}, {pause}: {leaks}");
        }
        stage.heapr(&["explain", "--deep", &pid]).ok();
        drop(child.stdin.take());
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success(), "{mode}: {text}");
    }
}
