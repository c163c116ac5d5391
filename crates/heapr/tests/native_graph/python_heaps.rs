//! Snapshots of CPython's objects by the command line, from processes that were not prepared.

use std::path::Path;

use heapr_testkit::{Growing, Outcome, not_run};

use crate::Stage;

const PYTHON: &str = "/usr/bin/python3";

/// Starts a program of `victims/python/heaps`; `None` without an interpreter.
fn growing(name: &str) -> Option<Growing> {
    if !Path::new(PYTHON).exists() {
        not_run("no python3 is installed");
        return None;
    }
    Some(Growing::start(Path::new(PYTHON), name).expect("the program runs here"))
}

#[test]
fn three_snapshots_of_a_running_python_name_the_module_that_collects() {
    let stage = Stage::new();
    let Some(mut program) = growing("module-cache") else { return };
    let files = ["a.heapsnapshot", "b.heapsnapshot", "c.heapsnapshot"];
    for (number, file) in files.into_iter().enumerate() {
        if number > 0 {
            program.step();
        }
        let taken = stage.json(&["snapshot", "take", "-o", file, &program.pid().to_string()]);
        let snapshot = &taken["snapshots"][0];
        assert_eq!(
            (snapshot["heap"].as_str(), snapshot["contents"].as_str()),
            (Some("python"), Some("names"))
        );
        assert!(snapshot["object_count"].as_u64().unwrap() > 20_000, "{taken}");
        assert!(snapshot["pause_ns"].as_u64().unwrap() > 0, "{taken}");
    }
    let found = stage.json(&["snapshot", "suspects", files[0], files[1], files[2]]);
    let first = &found["suspects"][0];
    assert_eq!(first["name"], "module pricing: _quotes (dict)", "{found}");
    assert_eq!(first["confidence"], "high", "{found}");
    let collected = first["collects"].as_array().unwrap();
    let quotes = collected.iter().find(|it| it["class"] == "pricing.Quote").unwrap();
    assert_eq!(quotes["count"], 10_000, "{found}");
    assert!(quotes["example_place"].to_string().contains("pricing.py"), "{found}");
    // The other commands answer on the same file.
    let owner = format!("@{}", first["owner_id"]);
    let ways = stage.ok(&["snapshot", "retainers", files[2], &owner]);
    assert!(ways.contains("module pricing") && ways.contains("._quotes"), "{ways}");
    let dominators = stage.ok(&["snapshot", "dominators", files[2], &owner]);
    assert!(dominators.contains("pricing.Quote"), "{dominators}");
    let summary = stage.json(&["snapshot", "summary", files[2]]);
    let rows = summary["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["class"] == "pricing.Quote").unwrap();
    assert_eq!(row["object_count"], 15_000, "{row}");
    let kept = stage.json(&["snapshot", "diff", files[0], files[2]]);
    let rows = kept["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["class"] == "pricing.Quote").unwrap();
    assert_eq!((row["new_count"].as_u64(), row["deleted_count"].as_u64()), (Some(10_000), Some(0)), "{row}");
    // The program runs on.
    program.step();
}

#[test]
fn texts_are_written_where_they_are_asked_for_alone() {
    let stage = Stage::new();
    let Some(program) = growing("module-cache") else { return };
    for (file, more, expected) in
        [("names.heapsnapshot", &[][..], false), ("texts.heapsnapshot", &["--contents", "strings"], true)]
    {
        let pid = program.pid().to_string();
        let mut words = vec!["snapshot", "take", "-o", file];
        words.extend(more);
        words.push(&pid);
        stage.ok(&words);
        let text = std::fs::read_to_string(stage.path(file)).unwrap();
        assert_eq!(text.contains("\"quote 4711\""), expected, "{file}");
    }
}

#[test]
fn another_heap_is_taken_where_it_is_asked_for_and_refused_where_it_is_not_there() {
    let stage = Stage::new();
    let Some(program) = growing("class-list") else { return };
    let pid = program.pid().to_string();
    stage.ok(&["snapshot", "take", "--heap", "native", "-o", "native.heapr", &pid]);
    assert!(stage.ok(&["snapshot", "summary", "native.heapr"]).contains("blocks"));
    let refused = |words: &[&str], expected: &str| {
        let Outcome { status, stderr, .. } = stage.heapr(words);
        assert_eq!(status, 2, "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    refused(&["snapshot", "take", "--pause", "none", &pid], "copy and stop work");
    let own = std::process::id().to_string();
    refused(&["snapshot", "take", "--heap", "python", &own], "no module of it defines _PyRuntime");
}
