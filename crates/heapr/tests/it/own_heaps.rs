//! Heaps that a program announces: the report shows their names.

use std::collections::BTreeMap;

use crate::header::Header;
use crate::recording::{Settings, record};
use crate::victim_build::{build, sources};

#[test]
fn a_programs_own_heaps_are_in_the_report_by_their_names() {
    let header = Header::read(&sources().join("own_heaps.c"));
    let program = build("own_heaps.c", &header, &["-O1".to_owned()]);
    let recording = record(&[program.to_str().unwrap().to_owned()], &Settings::default());
    assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
    let report = recording.json(&["report", "--totals"]);
    let mut heaps: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for heap in report["heaps"].as_array().unwrap() {
        let sums = heaps.entry(heap["heap"].as_str().unwrap().to_owned()).or_default();
        sums.0 += heap["alloc_count"].as_u64().unwrap();
        sums.1 += heap["outstanding_count"].as_u64().unwrap();
    }
    // 19 of the allocated blocks and the resized one; ten arenas of fifty; the name is cut after 64
    // bytes.
    let long = "a name of more than sixty-four bytes, of which the first sixty-f";
    assert_eq!(heaps.get("session pool"), Some(&(32, 20)), "{heaps:?}");
    // A later heap reused its number.
    let (name, arena) = heaps.iter().find(|(name, _)| name.starts_with("request arena")).unwrap();
    assert_eq!((name.as_str(), *arena), ("request arena and 1 more", (500, 0)), "{heaps:?}");
    assert_eq!(heaps.get(long), Some(&(400, 400)), "{heaps:?}");
    let one = recording.json(&["report", "--totals", "--heap", "request arena"]);
    assert_eq!(one["totals"]["alloc_count"].as_u64(), Some(500), "{one}");
}
