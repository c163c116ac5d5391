//! A program that the kernel kills for lack of memory leaves a record of its heap.

use std::fs;
use std::path::PathBuf;

use crate::stage::Stage;

/// Creates a control group with a memory limit, of version 1 or 2, and returns its folder.
fn limited_group() -> Option<PathBuf> {
    let name = format!("heapr-test-oom-{}", std::process::id());
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")].iter().find_map(
        |(root, limit)| {
            let folder = PathBuf::from(root).join(&name);
            fs::create_dir_all(&folder).ok()?;
            let is_limited = folder.join("cgroup.procs").exists()
                && fs::write(folder.join(limit), format!("{}", 192 << 20)).is_ok();
            if !is_limited {
                let _ = fs::remove_dir(&folder);
            }
            is_limited.then_some(folder)
        },
    )
}

#[test]
fn a_program_that_is_killed_for_want_of_memory_leaves_a_snapshot_of_its_heap() {
    let Some(group) = limited_group() else {
        return heapr_testkit::cannot_run_here("no control group can limit memory");
    };
    let stage = Stage::new();
    let source = stage.path("eater.c");
    fs::write(
        &source,
        "#include <stdlib.h>\n#include <string.h>\n__attribute__((noinline)) static void *eat(void) { return malloc(100000); }\n\
         int main(void) { for (int i = 0; i < 20000; i++) memset(eat(), 1, 100000); return 0; }\n",
    )
    .unwrap();
    let program = stage.path("eater");
    let mut compiler = std::process::Command::new("gcc");
    compiler.args(["-g", "-O1", "-fno-builtin", "-o"]).arg(&program).arg(&source);
    assert!(compiler.status().unwrap().success());
    // The limit applies to the program only, not to the recorder.
    let script = format!("echo $$ > {}/cgroup.procs && exec ./eater", group.display());
    let mut command =
        stage.command(&["run", "-q", "-o", "oom.heapr", "--snapshot-at-exit", "--", "sh", "-c", &script]);
    let outcome = heapr_testkit::run(&mut command);
    let _ = fs::remove_dir(&group);
    assert_eq!(outcome.status, 128 + 9, "{}{}", outcome.stdout, outcome.stderr);
    let summary = stage.json(&["snapshot", "summary", "oom.heapr"]);
    let snapshots = summary["snapshots"].as_array().unwrap();
    let last = snapshots.last().unwrap();
    assert_eq!(last["trigger"], "out of memory", "{summary}");
    // The live blocks that fitted: more than half of the limit, less than all of it.
    let totals = stage.json(&["report", "oom.heapr", "--totals", "--snapshot", "last"])["totals"].clone();
    let bytes = totals["outstanding_bytes"].as_u64().unwrap();
    assert!((96 << 20..200 << 20).contains(&bytes), "{totals}");
}
