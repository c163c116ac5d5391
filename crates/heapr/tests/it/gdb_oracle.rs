//! Stacks compared with gdb's backtraces. gdb stops at the first allocations of a program and
//! unwinds each; every one of its stacks must be in heapr's trace of the program.

use std::collections::BTreeSet;
use std::process::Command;

use heapr_testkit::run;
use serde_json::Value;

use crate::header::Header;
use crate::recording::{self, Settings};
use crate::victim_build::{build, sources};

/// Prints one line for each stop: the callers, innermost first, separated by tabs; `?` without a
/// name. Inlined frames and those that gdb infers from a tail call are left out. They have no
/// return address, and the two tools may have different debug information for libraries.
const SCRIPT: &str = r#"
import gdb
gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("handle all nostop noprint pass")
gdb.execute("set debuginfod enabled off")
gdb.execute("break main")
gdb.execute("run")
gdb.execute("delete")
stop = gdb.Breakpoint("malloc")
stop.silent = True
def running():
    try:
        gdb.selected_thread()
        return gdb.selected_inferior().pid != 0 and gdb.selected_thread() is not None
    except gdb.error:
        return False
for turn in range(COUNT):
    gdb.execute("continue")
    if not running():
        break
    frame = gdb.newest_frame().older()
    names = []
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            names.append(frame.name() or "?")
        frame = frame.older()
    print("STACK\t" + "\t".join(names))
gdb.execute("kill")
"#;

fn gdb_stacks(command: &[String], count: usize) -> Vec<Vec<String>> {
    let scratch = tempfile::tempdir().unwrap();
    let script = scratch.path().join("stacks.py");
    std::fs::write(&script, SCRIPT.replace("COUNT", &count.to_string())).unwrap();
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-x"]).arg(&script).arg("--args").args(command);
    let outcome = run(&mut gdb);
    let stacks: Vec<Vec<String>> = outcome
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("STACK\t"))
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect();
    assert!(!stacks.is_empty(), "gdb found nothing: {}\n{}", outcome.stdout, outcome.stderr);
    stacks
}

/// Returns a stack down to `main`, as names without arguments; frames that have no name in one of
/// the tools are `?`.
fn down_to_main(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut stack = Vec::new();
    for name in names {
        let plain = name.split(['(', '<']).next().unwrap().trim().to_owned();
        let is_main = plain == "main";
        stack.push(plain);
        if is_main {
            break;
        }
    }
    stack
}

fn heapr_stacks(report: &Value) -> BTreeSet<Vec<String>> {
    let name = |frame: &Value| frame["symbol"].as_str().unwrap_or("?").to_owned();
    let groups = report["groups"].as_array().unwrap().iter();
    let is_called = |frame: &&Value| frame["inlined"].as_bool() != Some(true);
    groups
        .map(|group| {
            // The innermost frame is the function in which gdb stops.
            let callers = group["frames"].as_array().unwrap().iter().filter(is_called).skip(1);
            down_to_main(callers.map(name))
        })
        .collect()
}

fn assert_stacks_are_gdbs(name: &str, arguments: &[&str], level: &str, count: usize) {
    let header = Header::read(&sources().join(name));
    let level: Vec<String> = level.split(' ').map(str::to_owned).collect();
    let program = build(name, &header, &level);
    let command: Vec<String> = std::iter::once(program.to_str().unwrap())
        .chain(arguments.iter().copied())
        .map(str::to_owned)
        .collect();
    let recording =
        recording::record(&command, &Settings { limit: heapr_testkit::LIMIT, ..Settings::default() });
    let ours =
        heapr_stacks(&recording.json(&["report", "--stacks", "--no-default-cull", "--top", "1000000"]));
    for stack in gdb_stacks(&command, count) {
        let stack = down_to_main(stack.into_iter());
        if stack.last().is_none_or(|name| name != "main") {
            continue;
        }
        // The C library has no debug information: gdb and heapr may choose different names for one
        // address.
        let is_same = |other: &Vec<String>| {
            other.len() == stack.len()
                && other.iter().zip(&stack).all(|(ours, gdbs)| ours == gdbs || is_library_name(ours, gdbs))
        };
        assert!(ours.iter().any(is_same), "{name}: gdb's {stack:?} is not among {ours:#?}");
    }
}

/// True if both names are of the C library, which has no debug information here, so that they may
/// differ for one address.
fn is_library_name(ours: &str, gdbs: &str) -> bool {
    let is_victim = |name: &str| name.starts_with("victim") || ["main", "left", "right"].contains(&name);
    !is_victim(ours) && !is_victim(gdbs)
}

#[test]
fn stacks_of_hard_frames_are_those_of_gdb() {
    assert_stacks_are_gdbs("frame_shapes.c", &[], "-O1", 300);
    assert_stacks_are_gdbs("frame_shapes.c", &[], "-O2 -fomit-frame-pointer", 300);
}

#[test]
fn stacks_around_exceptions_are_those_of_gdb() {
    assert_stacks_are_gdbs("exceptions.cc", &[], "-O2 -fomit-frame-pointer", 300);
}

#[test]
fn stacks_of_a_library_that_allocates_for_the_program_are_those_of_gdb() {
    assert_stacks_are_gdbs("libc_inside.c", &[], "-O2", 300);
}

#[test]
fn stacks_after_long_jumps_are_those_of_gdb() {
    assert_stacks_are_gdbs("long_jumps.c", &[], "-O2", 200);
}

#[test]
fn stacks_of_recursion_are_those_of_gdb() {
    assert_stacks_are_gdbs("million_stacks.c", &["8"], "-O2 -fomit-frame-pointer", 300);
}
