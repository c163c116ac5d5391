//! Processes one after the other: their live blocks end with them.

use crate::header::Header;
use crate::recording::{Settings, record};
use crate::victim_build::{build, sources};

const MIB: u64 = 1 << 20;

#[test]
fn the_peak_is_what_lived_at_one_moment_however_many_processes_there_were() {
    let header = Header::read(&sources().join("leaves_ten.c"));
    let program = build("leaves_ten.c", &header, &[]);
    let program = program.to_str().unwrap();
    let one_by_one = format!("{program}; {program} _; {program}");
    let options = &["--fail-on", "peak=15M"];
    let settings = Settings { options, ..Settings::default() };
    let recording = record(&["sh".to_owned(), "-c".to_owned(), one_by_one], &settings);
    let stderr = &recording.outcome.stderr;
    assert_eq!(recording.outcome.status, 0, "{stderr}");
    assert!(stderr.contains("each process as it was when it ended"), "{stderr}");
    let totals = &recording.json(&["report", "--totals"])["totals"];
    let number = |name: &str| totals[name].as_u64().unwrap();
    assert!((10 * MIB..11 * MIB).contains(&number("peak_bytes")), "{totals}");
    assert!((30 * MIB..31 * MIB).contains(&number("outstanding_bytes")), "{totals}");
    // A replay gives the same totals.
    let replayed = &recording.json(&["report", "--totals", "--size", "0", "1T"])["totals"];
    assert_eq!(replayed["peak_bytes"], totals["peak_bytes"]);
    let at_peak = &recording.json(&["report", "--totals", "--at", "peak"])["totals"];
    assert_eq!(at_peak["outstanding_bytes"], totals["peak_bytes"]);
}

#[test]
fn processes_that_live_at_the_same_time_are_added_up() {
    let header = Header::read(&sources().join("leaves_ten.c"));
    let program = build("leaves_ten.c", &header, &[]);
    // Each waits until the other has its blocks.
    let folder = tempfile::tempdir().unwrap();
    let both = format!("cd {}; {1} both & {1} both; wait", folder.path().display(), program.display());
    let recording = record(&["sh".to_owned(), "-c".to_owned(), both], &Settings::default());
    assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
    let totals = &recording.json(&["report", "--totals"])["totals"];
    let peak_bytes = totals["peak_bytes"].as_u64().unwrap();
    assert!((20 * MIB..21 * MIB).contains(&peak_bytes), "{totals}");
}
