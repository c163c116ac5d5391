//! Names of programs whose files are removed before the recording ends.

use std::fs;

use crate::stage::{Stage, steady_program};

#[test]
fn a_program_that_is_deleted_while_it_is_recorded_keeps_its_names() {
    let stage = Stage::new();
    let program = stage.argument("gone");
    fs::copy(steady_program(), &program).unwrap();
    let release = stage.argument("release");
    stage.heapr(&["start", "s", "-o", "s.heapr", "--", &program, &release, "200"]).ok();
    stage.wait_for("s", "an event", |status| status["event_count"].as_u64() > Some(0));
    fs::remove_file(&program).unwrap();
    stage.heapr(&["stop", "s"]).ok();
    let report = stage.heapr(&["report", "s.heapr"]).ok().stdout;
    assert!(report.contains("gone!main") && !report.contains("gone+0x"), "{report}");
}
