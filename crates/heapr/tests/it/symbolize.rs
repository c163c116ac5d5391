//! `heapr symbolize`: what it refuses, and what it leaves behind.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::bounded_run::{self, Outcome};
use crate::recording::HEAPR;

const STORED: &[u8] = include_bytes!("../../../trace/tests/data/version-1.heapr");

fn heapr(scratch: &Path, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(HEAPR);
    command.args(arguments).current_dir(scratch).env("XDG_CACHE_HOME", scratch.join("cache"));
    bounded_run::run(command, scratch, Duration::from_secs(30))
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
    // A copy is made all the same, and no other file is overwritten.
    assert_eq!(heapr(scratch.path(), &["symbolize", "x.heapr", "-o", "copy.heapr"]).status, 0);
    assert!(std::fs::read(scratch.path().join("copy.heapr")).unwrap() == once);
    let refused = heapr(scratch.path(), &["symbolize", "copy.heapr", "-o", "x.heapr"]);
    assert!(refused.status == 2 && refused.stderr.contains("x.heapr exists"), "{refused:?}");
    assert!(std::fs::read(&file).unwrap() == once);
}
