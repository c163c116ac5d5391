//! Targets of a session: processes by number and by name, their children, running flagged ones, and
//! ended ones.

use std::fs;
use std::process::{Child, Command, Stdio};

use heapr_testkit::wait_until;
use serde_json::Value;

use crate::stage::{Stage, steady_program};

/// Processes with a name that is unique to the test; killed when this is dropped.
struct Named {
    children: Vec<Child>,
}

impl Named {
    /// Starts the steady program `count` times as `name`.
    fn start(stage: &Stage, name: &str, count: usize) -> Self {
        let program = stage.path(name);
        fs::copy(steady_program(), &program).unwrap();
        let spawn = |_| {
            let mut command = Command::new(&program);
            command
                .args([stage.argument("release"), "1000".to_owned()])
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        };
        let children: Vec<Child> = (0..count).map(spawn).collect();
        let named = Self { children };
        named.wait_until_all_are(name);
        named
    }

    /// Waits until all run their own code: a child has the name of the test before its exec.
    fn wait_until_all_are(&self, name: &str) {
        let is_it = |child: &Child| {
            fs::read_to_string(format!("/proc/{}/maps", child.id()))
                .is_ok_and(|maps| maps.contains(name) && maps.contains("[heap]"))
        };
        wait_until("all run their own code", || self.children.iter().all(is_it).then_some(()));
    }

    fn pid(&self, number: usize) -> String {
        self.children[number].id().to_string()
    }

    fn end(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.end();
    }
}

fn live_count(status: &Value) -> u64 {
    status["live_process_count"].as_u64().unwrap()
}

#[test]
fn a_session_that_has_nothing_to_trace_is_refused() {
    let stage = Stage::new();
    stage.heapr(&["start", "a", "-o", "a.heapr"]).fails_with(&["nothing to trace", "--pid", "--flagged"]);
    stage.heapr(&["start", "a", "-o", "a.heapr", "--snapshot-every", "1"]).fails_with(&["nothing to trace"]);
    assert!(!stage.path("a.heapr").exists());
    // A session that waits for flags says that none is set, and which kind is.
    stage.heapr(&["config", "enable", "snapshot", "--name", "nobody-at-all"]).ok();
    let started = stage.heapr(&["start", "a", "-o", "a.heapr", "--flagged"]).ok();
    assert!(started.stderr.contains("no program is flagged yet"), "{}", started.stderr);
    assert!(started.stderr.contains("--mode snapshot"), "{}", started.stderr);
}

#[test]
fn a_name_stands_for_the_one_process_that_has_it_and_several_are_listed() {
    let stage = Stage::new();
    let mut one = Named::start(&stage, "steady-by-name", 1);
    stage.heapr(&["start", "s", "-q", "-o", "s.heapr", "--pid", "steady-by-name"]).ok();
    assert_eq!(stage.status("s")["processes"][0]["pid"].to_string(), one.pid(0));
    let taken = stage.json(&["snapshot", "take", "steady-by-name"]);
    assert_eq!(taken["snapshots"][0]["session"], "s");
    stage.heapr(&["snapshot", "every", "60", "steady-by-name", "-q"]).ok();
    stage.heapr(&["update", "s", "--remove-pid", "steady-by-name"]).ok();
    stage.heapr(&["update", "s", "--add-pid", "steady-by-name"]).ok();
    stage.heapr(&["config", "enable", "heap", "--pid", "steady-by-name"]).ok();
    one.end();

    let two = Named::start(&stage, "steady-of-two", 2);
    for words in [
        &["start", "t", "-o", "t.heapr", "--pid", "steady-of-two"][..],
        &["snapshot", "take", "steady-of-two"],
        &["snapshot", "every", "60", "--native", "steady-of-two"],
        &["update", "s", "--add-pid", "steady-of-two"],
        // Neither has started the other.
        &["start", "t", "-o", "t.heapr", "--tree", "--pid", "steady-of-two"],
    ] {
        stage.heapr(words).fails_with(&["steady-of-two means 2 processes", &two.pid(0), &two.pid(1)]);
    }
    stage
        .heapr(&["start", "t", "--pid", "no-such-name-here"])
        .fails_with(&["is called \"no-such-name-here\""]);
    assert!(!stage.path("t.heapr").exists());
}

#[test]
fn children_that_run_already_are_named_and_tree_takes_them() {
    let stage = Stage::new();
    let program = stage.path("steady-child");
    fs::copy(steady_program(), &program).unwrap();
    let script =
        format!("'{0}' '{1}' 1000 & '{0}' '{1}' 1000 & wait", program.display(), stage.argument("release"));
    let mut parent = Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).spawn().unwrap();
    let pid = parent.id().to_string();
    let children = format!("/proc/{pid}/task/{pid}/children");
    let is_there = |child: &str| {
        fs::read_to_string(format!("/proc/{child}/maps")).is_ok_and(|maps| maps.contains("steady-child"))
    };
    let all = || fs::read_to_string(&children).unwrap_or_default();
    wait_until("both children run", || {
        (all().split_whitespace().filter(|child| is_there(child)).count() == 2).then_some(())
    });
    let started = stage.heapr(&["start", "a", "-o", "a.heapr", "--pid", &pid]).ok();
    for word in ["2 child processes", "steady-child", "--tree"] {
        assert!(started.stderr.contains(word), "no {word:?} in {}", started.stderr);
    }
    assert_eq!(live_count(&stage.status("a")), 1);
    let updated = stage.heapr(&["update", "a", "--remove-pid", &pid]).ok();
    let again = stage.heapr(&["update", "a", "--add-pid", &pid]).ok();
    assert!(again.stderr.contains("2 child processes"), "{}{}", updated.stderr, again.stderr);
    stage.heapr(&["cancel", "a"]).ok();
    let started = stage.heapr(&["start", "a", "-o", "a.heapr", "--pid", &pid, "--tree"]).ok();
    assert!(started.stderr.contains(&format!("a child of {pid}, is traced")), "{}", started.stderr);
    assert_eq!(live_count(&stage.status("a")), 3);
    stage.heapr(&["cancel", "a"]).ok();
    let taken = stage.json(&["snapshot", "take", &pid, "--tree", "-o", "all.heapr"]);
    assert_eq!(taken["snapshots"][0]["pids"].as_array().unwrap().len(), 3, "{taken}");
    let taken = stage.heapr(&["snapshot", "take", &pid]).ok();
    assert!(taken.stderr.contains("2 children"), "{}", taken.stderr);
    stage.release();
    parent.wait().unwrap();
}

#[test]
fn a_flagged_process_that_runs_is_traced_when_start_returns() {
    let stage = Stage::new();
    let by_pid = Named::start(&stage, "steady-flag-pid", 1);
    let by_name = Named::start(&stage, "steady-flag-name", 1);
    let pid = by_pid.pid(0);
    stage.heapr(&["config", "enable", "heap", "--pid", &pid]).ok();
    stage.heapr(&["config", "enable", "heap", "--name", "steady-flag-name"]).ok();
    // A number means a process that runs; a name means those that start.
    stage.heapr(&["start", "numbers", "-q", "-o", "a.heapr", "--flagged"]).ok();
    let status = stage.status("numbers");
    assert_eq!(live_count(&status), 1, "{status}");
    assert_eq!(status["processes"][0]["pid"].to_string(), pid);
    stage.heapr(&["cancel", "numbers"]).ok();
    stage.heapr(&["start", "all", "-q", "-o", "b.heapr", "--flagged", "--running"]).ok();
    assert_eq!(live_count(&stage.status("all")), 2);
    // Flags that are set while the session runs.
    let later = Named::start(&stage, "steady-flag-later", 2);
    stage.heapr(&["config", "enable", "heap", "--pid", &later.pid(1)]).ok();
    stage.wait_for("all", "the third", |status| live_count(status) == 3);
    drop(by_name);
}

#[test]
fn the_flag_of_a_process_ends_with_it() {
    let stage = Stage::new();
    let mut one = Named::start(&stage, "steady-flag-ends", 1);
    let pid = one.pid(0);
    stage.heapr(&["config", "enable", "heap", "--pid", &pid]).ok();
    assert_eq!(stage.heapr(&["config", "query", "heap", "--pid", &pid]).status, 0);
    // A zombie, or an unused number, is not a process that runs.
    one.children[0].kill().unwrap();
    wait_until("the zombie's flag ends", || {
        (stage.heapr(&["config", "query", "heap", "--pid", &pid]).status == 1).then_some(())
    });
    stage.heapr(&["config", "enable", "heap", "--pid", &pid]).fails_with(&["has ended"]);
    one.end();
    let asked = stage.heapr(&["config", "query", "heap", "--pid", &pid]);
    assert_eq!((asked.status, asked.stdout.contains("is disabled")), (1, true), "{}", asked.stdout);
    assert!(stage.heapr(&["config", "query"]).ok().stdout.contains("no program is flagged"));
    assert_eq!(stage.heapr(&["config", "query", "heap", "--pid", "4000000"]).status, 1);
    // The first removal of the flag succeeds, the second finds none.
    stage.heapr(&["config", "disable", "heap", "--pid", &pid]).ok();
    assert_eq!(stage.heapr(&["config", "disable", "heap", "--pid", &pid]).status, 1);
}

#[test]
fn a_second_snapshot_has_a_file_of_its_own_and_none_is_taken_of_a_process_that_has_ended() {
    let stage = Stage::new();
    let mut one = Named::start(&stage, "steady-twice", 1);
    let pid = one.pid(0);
    let file = |taken: &Value| taken["snapshots"][0]["file"].as_str().unwrap().to_owned();
    let first = file(&stage.json(&["snapshot", "take", &pid]));
    let second = file(&stage.json(&["snapshot", "take", &pid]));
    assert_eq!((first, second), (format!("heapr.{pid}.heapr"), format!("heapr.{pid}.2.heapr")));
    let every = stage.heapr(&["snapshot", "every", "1", &pid]).ok();
    assert!(every.stdout.contains(&format!("heapr.{pid}.3.heapr")), "{}", every.stdout);
    let name = format!("snapshot-{pid}");
    stage.wait_for(&name, "its blocks", |status| status["live_bytes"].as_u64() > Some(0));
    let taken = stage.json(&["snapshot", "take", &pid]);
    let count = taken["snapshots"][0]["number"].as_u64().unwrap();
    one.end();
    stage.wait_for(&name, "its end", |status| live_count(status) == 0);
    let shown = stage.heapr(&["status", &name]).ok().stdout;
    assert!(shown.contains(&format!("heapr stop {name}")), "{shown}");
    // Longer than the interval, by the recorder's clock.
    let ended_ns = stage.status(&name)["duration_ns"].as_u64().unwrap();
    stage.wait_for(&name, "a later time", |status| {
        status["duration_ns"].as_u64() > Some(ended_ns + 2_500_000_000)
    });
    stage.heapr(&["stop", &name, "-q"]).ok();
    let summary = stage.json(&["snapshot", "summary", &format!("heapr.{pid}.3.heapr")]);
    let snapshots = summary["snapshots"].as_array().unwrap();
    assert!(snapshots.len() as u64 >= count, "{summary}");
    assert!(snapshots.iter().all(|snapshot| snapshot["block_count"].as_u64() > Some(0)), "{summary}");
}

#[test]
fn labels_stand_apart_from_what_they_label() {
    let stage = Stage::new();
    stage.heapr(&["start", "a", "-q", "-o", "a.heapr", "--flagged"]).ok();
    let shown = stage.heapr(&["status", "a"]).ok().stdout;
    let column = |label: &str| {
        let line = shown.lines().find(|line| line.trim_start().starts_with(label));
        let line = line.unwrap_or_else(|| panic!("no {label} in {shown}"));
        let rest = line.trim_start().strip_prefix(label).unwrap();
        assert!(rest.starts_with("  "), "{line}");
        line.len() - rest.trim_start().len()
    };
    let columns = ["session", "mode", "buffers", "flagged programs", "processes"].map(column);
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "{columns:?} in {shown}");
}
