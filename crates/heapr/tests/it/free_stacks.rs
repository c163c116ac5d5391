//! `heapr report --free-stacks`: stacks of frees, of double frees, and of frees of unknown blocks.

use serde_json::Value;

use crate::header::Header;
use crate::recording::{Recording, Settings, record};
use crate::victim_build::{build, sources};

fn recording(options: &[&str]) -> Recording {
    let header = Header::read(&sources().join("frees_wrong.c"));
    let program = build("frees_wrong.c", &header, &["-O1".to_owned()]);
    let recording =
        record(&[program.to_str().unwrap().to_owned()], &Settings { options, ..Settings::default() });
    assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
    recording
}

/// Whether `function` is the innermost frame of a stack of the row.
fn is_by(row: &Value, frames: &str, function: &str) -> bool {
    row[frames][0]["symbol"].as_str() == Some(function)
}

#[test]
fn every_free_has_its_stack_and_wrong_ones_stand_apart() {
    let recording = recording(&["--stacks", "alloc,realloc,free"]);
    let report = recording.json(&["report", "--free-stacks"]);
    let freed = report["freed"].as_array().unwrap();
    let well = freed.iter().find(|row| is_by(row, "frames", "victim_free_well")).unwrap();
    assert_eq!((well["count"].as_u64(), well["bytes"].as_u64()), (Some(10), Some(1000)), "{report}");
    let [twice] = report["freed_twice"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert!(is_by(twice, "frames", "victim_free_again"), "{twice}");
    assert!(is_by(twice, "freed_before_frames", "victim_free_first"), "{twice}");
    assert!(is_by(twice, "allocated_frames", "victim_allocate"), "{twice}");
    let [unknown] = report["freed_unknown"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert!(is_by(unknown, "frames", "victim_free_unknown"), "{unknown}");
    assert_eq!(report["without_stack_count"], 0);

    let text = recording.text(&["report", "--free-stacks", "--require-frames", "victim_free_again"]);
    assert!(text.contains("FREED TWICE") && text.contains("freed before by"), "{text}");
    assert!(!text.contains("FREED UNKNOWN"), "{text}");
    let csv = recording.text(&["report", "--free-stacks", "--format", "csv"]);
    assert!(csv.lines().any(|line| line.starts_with("freed_twice,1,0,")), "{csv}");
}

#[test]
fn frees_without_stacks_say_how_to_record_them() {
    let recording = recording(&[]);
    let text = recording.text(&["report", "--free-stacks"]);
    assert!(text.contains("without a stack: record with --stack-events alloc,realloc,free"), "{text}");
    assert!(text.contains("FREED TWICE") && text.contains("victim_allocate"), "{text}");
}
