//! Difficult programs: those that end or exec during the reading, first processes of containers,
//! groups near their limit, other allocators, damaged heaps.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heapr_testkit::{Outcome, cannot_run_here, not_run, wait_until};
use serde_json::Value;

use crate::copies::{Free, children_of, copies_of};
use crate::{Stage, check, verdicts};

#[test]
fn pages_and_arenas_that_are_treated_apart_hold() {
    verdicts("hard_places.c");
}

#[test]
fn a_thousand_threads_hold_by_their_stacks() {
    verdicts("many_threads.c");
}

#[test]
fn a_heap_that_begins_behind_the_data_is_told_from_it() {
    verdicts("heap_beside_data.c");
}

#[test]
fn of_a_damaged_heap_the_rest_is_told() {
    let (_, leaks) = verdicts("damaged.c");
    assert!(leaks["notes"].to_string().contains("the heap is not in order: the chunk at"), "{leaks}");
}

/// The copy is from before, so that later actions of the process do not matter.
#[test]
fn a_program_that_turns_away_while_its_copy_is_read_has_its_graph() {
    for what in ["exit", "exec", "fork"] {
        let mut stage = Stage::new();
        let (program, _, text) = stage.build("ending.c");
        let pid = stage.start(&program, &[what.to_owned()]);
        let mut taking = stage
            .command(&["snapshot", "take", "--graph", &pid.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until("it is copied", || {
            let is_done = taking.try_wait().unwrap().is_some();
            (is_done || !copies_of(pid, &program).is_empty()).then_some(())
        });
        let told = Command::new("kill").args(["-USR1", &pid.to_string()]).status().unwrap();
        assert!(told.success());
        let taken = taking.wait_with_output().unwrap();
        assert!(taken.status.success(), "{what}: {}", String::from_utf8_lossy(&taken.stderr));
        wait_until("no copy is left", || copies_of(pid, &program).is_empty().then_some(()));
        stage.ok(&["stop", "graph", "-q"]);
        check(&stage.json(&["snapshot", "leaks", "trace.heapr"]), &text);
        if what != "fork" {
            continue;
        }
        wait_until("its children have ended", || children_of(pid).is_empty().then_some(()));
        assert!(heapr_proc::is_alive(pid));
    }
}

/// Control group near its limit: the work that heapr requests of the process takes the group's
/// memory.
struct Group(PathBuf);

impl Group {
    fn of(pid: u32, limit_bytes: u64) -> Option<Self> {
        let roots = [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];
        roots.into_iter().find_map(|(root, limit)| {
            let root = Path::new(root);
            fs::metadata(root.join("cgroup.procs")).ok()?;
            let group = Self(root.join(format!("heapr-graph-{pid}")));
            fs::create_dir(&group.0).ok()?;
            fs::write(group.0.join(limit), limit_bytes.to_string()).ok()?;
            fs::write(group.0.join("cgroup.procs"), pid.to_string()).ok()?;
            Some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_program_whose_group_is_near_its_limit_is_not_copied() {
    let mut stage = Stage::new();
    let (program, _, text) = stage.build("uncopied.c");
    let pid = stage.start(&program, &["large".to_owned()]);
    let Some(group) = Group::of(pid, 4 << 20) else {
        cannot_run_here("no group of processes with a limit of memory can be made");
        return;
    };
    let taken = stage.json(&["snapshot", "take", "--graph", &pid.to_string()]);
    let notes = taken["snapshots"][0]["notes"].to_string();
    assert!(notes.contains("is near its limit of memory"), "{notes}");
    check(&stage.json(&["snapshot", "leaks", "trace.heapr"]), &text);
    assert!(heapr_proc::is_alive(pid));
    drop(stage);
    wait_until("it has ended", || fs::remove_dir(&group.0).is_ok().then_some(()));
}

#[test]
fn a_program_whose_filter_answers_with_an_error_is_not_copied() {
    let mut stage = Stage::new();
    let (program, _, text) = stage.build("uncopied.c");
    let pid = stage.start(&program, &["refused".to_owned()]);
    let taken = stage.json(&["snapshot", "take", "--graph", &pid.to_string()]);
    let notes = taken["snapshots"][0]["notes"].to_string();
    assert!(notes.contains("the kernel does not allow it to make a copy"), "{notes}");
    check(&stage.json(&["snapshot", "leaks", "trace.heapr"]), &text);
}

#[test]
fn the_first_process_of_a_container_is_looked_at_while_it_stands_still() {
    let stage = Stage::new();
    let (program, ..) = stage.build("uncopied.c");
    let mut outer = Command::new("unshare");
    outer.args(["--pid", "--fork", "--kill-child"]).arg(&program).arg("plain");
    let out = fs::File::create(stage.path("out")).unwrap();
    let Ok(outer) = outer.stdout(out).stderr(Stdio::null()).spawn() else {
        return not_run("unshare is missing");
    };
    let mut outer = Free(outer);
    let ready = || fs::read_to_string(stage.path("out")).unwrap().contains("ready");
    let is_over = wait_until("it is ready", || {
        let is_over = outer.0.try_wait().unwrap().is_some();
        (is_over || ready()).then_some(is_over)
    });
    if is_over {
        return cannot_run_here("no namespace of processes can be made");
    }
    let children = children_of(outer.0.id());
    let [pid] = children.as_slice() else { panic!("{children:?}") };
    let taken = stage.json(&["snapshot", "take", "--graph", "-o", "first.heapr", pid]);
    let notes = taken["snapshots"][0]["notes"].to_string();
    assert!(notes.contains("it is the first process of its container"), "{notes}");
    let leaks = stage.json(&["snapshot", "leaks", "first.heapr"]);
    assert_eq!(leaks["totals"]["definite_count"], 1, "{leaks}");
    assert!(outer.0.try_wait().unwrap().is_none());
}

/// The memory of other allocators is unknown, and may refer to leaked blocks, so that these are
/// possible leaks. Each recorded block is known.
#[test]
fn programs_on_other_allocators_are_told_by_their_recorded_blocks() {
    for library in ["jemalloc", "tcmalloc_minimal", "mimalloc"] {
        let mut stage = Stage::new();
        let (program, arguments, text) = stage.build_with("hash_table.c", &[&format!("-l{library}")]);
        let pid = stage.start(&program, &arguments);
        stage.ok(&["snapshot", "take", "--graph", &pid.to_string()]);
        let leaks = stage.json(&["snapshot", "leaks", "trace.heapr"]);
        let claims = text.lines().filter(|line| line.starts_with("// leaks: "));
        let (held, lost): (Vec<&str>, Vec<&str>) = claims.partition(|line| line.contains("kind=reachable"));
        check(&leaks, &held.join("\n"));
        let doubt = leaks["doubt"].as_str().unwrap_or_default();
        assert!(doubt.contains(" that their allocator has ("), "{library}: {leaks}");
        for claim in lost {
            let value = |key: &str| claim.split(' ').find_map(|part| part.strip_prefix(key)).unwrap();
            let wanted: u64 = value("count=").parse().unwrap();
            assert_eq!(count_of(&leaks, value("frame=")), wanted, "{library}: {claim}: {leaks}");
        }
    }
}

/// Number of leaked blocks of one function, of whatever kind.
fn count_of(leaks: &Value, function: &str) -> u64 {
    let is_of = |group: &&Value| group["frames"].to_string().contains(&format!("\"symbol\":\"{function}\""));
    let groups = leaks["groups"].as_array().unwrap().iter().filter(is_of);
    groups.map(|group| group["count"].as_u64().unwrap()).sum()
}

/// The blocks stay without their references.
#[test]
fn what_was_read_before_a_graph_failed_is_kept() {
    let stage = Stage::new();
    let (program, ..) = stage.build("at_work.c");
    let out = fs::File::create(stage.path("out")).unwrap();
    let free = Free(Command::new(&program).stdout(out).spawn().unwrap());
    wait_until("it is ready", || {
        fs::read_to_string(stage.path("out")).unwrap().contains("ready").then_some(())
    });
    let pid = free.0.id().to_string();
    let Outcome { status, stderr, .. } =
        stage.heapr(&["snapshot", "take", "--graph", "--max-pause", "0", "-o", "cut.heapr", &pid]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("(its blocks are in cut.heapr, without references)"), "{stderr}");
    let summary = stage.json(&["snapshot", "summary", "cut.heapr"]);
    assert!(summary["total_count"].as_u64().unwrap() > 0, "{summary}");
}
