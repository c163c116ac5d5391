//! `--mmap`: mapped memory is counted apart from malloc's.

use crate::header::Header;
use crate::recording::{Settings, record};
use crate::victim_build::{build, sources};

const MIB: u64 = 1 << 20;

#[test]
fn reserved_address_space_is_not_live_and_mappings_stand_apart_from_malloc() {
    let header = Header::read(&sources().join("mappings_reserved.c"));
    let program = build("mappings_reserved.c", &header, &["-O1".to_owned()]);
    let options = &["--mmap"];
    let recording =
        record(&[program.to_str().unwrap().to_owned()], &Settings { options, ..Settings::default() });
    assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
    let report = recording.json(&["report", "--heap", "mmap", "--stacks", "so"]);
    let totals = &report["totals"];
    assert_eq!(totals["outstanding_bytes"], 12 * MIB, "{totals}");
    assert_eq!(totals["peak_bytes"], 12 * MIB, "{totals}");
    let of = |function: &str| {
        let groups = report["groups"].as_array().unwrap().iter();
        let is_in = |frame: &serde_json::Value| frame["symbol"].as_str() == Some(function);
        let of_it = groups.filter(|group| group["frames"].as_array().unwrap().iter().any(is_in));
        of_it.map(|group| group["outstanding_bytes"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((of("victim_reserve"), of("victim_commit"), of("victim_map")), (0, 4 * MIB, 8 * MIB));
    // The summary has a line for each heap.
    let stderr = &recording.outcome.stderr;
    assert!(stderr.contains("of malloc") && stderr.contains("of mmap"), "{stderr}");
}
