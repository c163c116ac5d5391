//! `heapr symbolize`: its refusals, and the files that it leaves.

use std::path::Path;

use heapr_trace::{
    Amounts, HeapId, Process, ProcessIndex, ProcessOrigin, StackIndex, StackNode, StackTotals, Summary,
    TraceWriter,
};

use heapr_testkit::{Outcome, run};

const STORED: &[u8] = include_bytes!("../../../trace/tests/data/version-1.heapr");

fn heapr(scratch: &Path, arguments: &[&str]) -> Outcome {
    run(crate::recording::heapr(scratch, arguments).env("XDG_CACHE_HOME", scratch.join("cache")))
}

#[test]
fn a_file_that_is_not_whole_is_refused_and_left_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("x.heapr");
    let mut damaged = STORED.to_vec();
    damaged[70] ^= 8;
    for (bytes, why) in [(&STORED[..STORED.len() - 30], "has not ended"), (&damaged, "damaged chunk at")] {
        for options in [&["symbolize", "x.heapr"][..], &["symbolize", "x.heapr", "-o", "copy.heapr"]] {
            std::fs::write(&file, bytes).unwrap();
            let outcome = heapr(scratch.path(), options);
            assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""));
            assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
            assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
            assert!(outcome.stderr.contains("x.heapr") && outcome.stderr.contains("heapr report"));
            assert!(std::fs::read(&file).unwrap() == bytes);
            assert!(!scratch.path().join("copy.heapr").exists());
        }
    }
}

#[test]
fn a_second_time_changes_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("x.heapr");
    std::fs::write(&file, STORED).unwrap();
    assert_eq!(heapr(scratch.path(), &["symbolize", "x.heapr"]).status, 0);
    let once = std::fs::read(&file).unwrap();
    assert!(once.len() > STORED.len());
    let again = heapr(scratch.path(), &["symbolize", "x.heapr"]);
    assert!(again.status == 0 && again.stdout.contains("there already"), "{again:?}");
    assert!(std::fs::read(&file).unwrap() == once);
    // A copy is made all the same, and another file is not overwritten.
    assert_eq!(heapr(scratch.path(), &["symbolize", "x.heapr", "-o", "copy.heapr"]).status, 0);
    assert!(std::fs::read(scratch.path().join("copy.heapr")).unwrap() == once);
    let refused = heapr(scratch.path(), &["symbolize", "copy.heapr", "-o", "x.heapr"]);
    assert!(refused.status == 2 && refused.stderr.contains("x.heapr exists"), "{refused:?}");
    assert!(std::fs::read(&file).unwrap() == once);
}

/// Writes a trace with two processes of one pid, each with blocks from two locations in code
/// outside of all modules.
fn write_run_time_code(path: &Path, pid: u32) {
    let mut writer = TraceWriter::create(path, false).unwrap();
    let mut summary = Summary::default();
    for index in [0, 1].map(ProcessIndex) {
        let process = Process {
            pid,
            parent_pid: 1,
            origin: ProcessOrigin::Exec,
            start_ns: 0,
            end_ns: None,
            executable: "/bin/true".into(),
            command_line: Vec::new(),
            exit_status: None,
        };
        writer.add_process(process).unwrap();
        for code in [0x1008, 0x2008] {
            let node = StackNode {
                parent: StackIndex::EMPTY,
                process: index,
                return_address_avma: code + u64::from(index.0) * 0x10000,
                first_seen_ns: 0,
            };
            let stack = writer.add_stack(node).unwrap();
            summary.by_stack.push(StackTotals {
                stack,
                process: index,
                heap: HeapId::MALLOC,
                amounts: Amounts {
                    total_count: 1,
                    total_bytes: 8,
                    realloc_count: 0,
                    temporary_count: 0,
                    outstanding_count: 1,
                    outstanding_bytes: 8,
                    peak_count: 1,
                    peak_bytes: 8,
                    ..Amounts::default()
                },
            });
        }
    }
    writer.finish(&summary).unwrap();
}

#[test]
fn names_of_code_made_at_run_time_are_embedded() {
    let scratch = tempfile::tempdir().unwrap();
    // No process has a pid as high.
    let pid = 0x4000_0000 + std::process::id();
    write_run_time_code(&scratch.path().join("x.heapr"), pid);
    let map = Path::new("/tmp").join(format!("perf-{pid}.map"));
    std::fs::write(&map, "1000 10 first\n11000 10 JS:*second /a.js:1:2\n").unwrap();
    let outcome = heapr(scratch.path(), &["symbolize", "x.heapr"]);
    // A later process with that pid would write such a map.
    std::fs::write(&map, "1000 10 stranger\n2000 10 later\n").unwrap();
    let report = heapr(scratch.path(), &["report", "x.heapr", "--stacks"]);
    let again = heapr(scratch.path(), &["symbolize", "x.heapr"]);
    std::fs::remove_file(&map).unwrap();
    assert!(outcome.stdout.contains(": 2 addresses in 0 modules and code made at run time"), "{outcome:?}");
    let has = |name: &str| report.stdout.contains(name);
    assert!(has("first") && has("second") && has("later") && !has("stranger"), "{report:?}");
    assert!(again.stdout.contains(": 3 addresses"), "{again:?}");
    let report = heapr(scratch.path(), &["report", "x.heapr", "--stacks"]);
    assert!(["first", "second", "later"].iter().all(|name| report.stdout.contains(name)), "{report:?}");
}
