//! Session that runs: it grows on the page, is marked and ended from there, and its end is shown.

use std::fs;

use heapr_testkit::Stage;
use serde_json::{Value, json};

use crate::HEAPR;
use crate::viewer::Viewer;

/// Steady program of the tests of sessions: allocates until the file `argv[1]` exists.
const STEADY: &str = include_str!("../sessions/steady.c");

fn stage(options: &[&str]) -> Stage {
    let stage = Stage::new(HEAPR);
    let program = stage.compile("steady", STEADY, &["-g", "-O1"]);
    stage
        .heapr(&[&["start", "web", "-o", "a.heapr"], options, &["--", &program, "release", "5000"]].concat());
    stage
}

fn release(stage: &Stage) {
    fs::write(stage.path("release"), "").unwrap();
}

fn generation(file: &Value) -> u64 {
    file["generation"].as_u64().unwrap()
}

#[test]
fn a_session_grows_while_it_is_shown_and_its_finished_file_stays() {
    let stage = stage(&[]);
    let viewer = Viewer::start(&stage, &["web"]);
    let first = viewer.wait_for("first picture", |file| file["trace"]["event_count"].as_u64() > Some(0));
    assert_eq!(first["session"]["state"], "recording");
    assert_eq!(first["warnings"], json!([]), "that it is not complete is no fault of it");
    let totals = viewer.totals();
    let second = viewer.wait_for("growth", |file| generation(file) >= generation(&first) + 2);
    assert!(second["trace"]["event_count"].as_u64() > first["trace"]["event_count"].as_u64());
    assert!(second["session"]["shown_until_ns"].as_u64() > first["session"]["shown_until_ns"].as_u64());
    assert!(viewer.totals()["alloc_count"].as_u64() > totals["alloc_count"].as_u64());
    assert!(second["session"]["status"]["live_count"].as_u64() > Some(0), "{second}");

    viewer.ask("session/mark", json!({"file": 0, "text": "from the page"}));
    let taken = viewer.ask("session/snapshot", json!({"file": 0, "name": "here"}));
    assert!(taken["block_count"].as_u64() > Some(900), "{taken}");
    let shown = viewer.wait_for("marker and snapshot", |file| {
        file["trace"]["markers"][0]["text"] == "from the page"
            && file["trace"]["snapshots"][0]["name"] == "here"
    });
    let summary = viewer.ask("native/summary", json!({"file": 0, "number": taken["number"]}));
    assert_eq!(summary["total_count"], taken["block_count"]);
    let status = viewer.ask("session/status", json!({"file": 0}));
    let moments = status["history"]["time_ns"].as_array().unwrap();
    assert!(moments.len() >= 2, "{status}");

    release(&stage);
    let stopped = viewer.ask("session/stop", json!({"file": 0}));
    // The end is known a moment before the whole file is shown.
    let ended = viewer.wait_for("end", |file| {
        file["session"]["state"] == "ended" && file["trace"]["event_count"] == stopped["event_count"]
    });
    assert!(generation(&ended) > generation(&shown));
    assert_eq!([&ended["state"], &ended["warnings"]], [&json!("ready"), &json!([])]);
    let said = stage.json(&["report", "a.heapr", "--totals"]);
    for (name, value) in viewer.totals().as_object().unwrap() {
        assert_eq!(Some(value), said["totals"].get(name), "{name}");
    }
    let (status, answer) = viewer.reply("session/mark", &json!({"file": 0, "text": "late"}));
    assert_eq!(status, 410, "{answer}");
}

#[test]
fn a_file_that_a_session_writes_is_shown_as_that_session_and_under_its_new_name() {
    let stage = stage(&[]);
    let viewer = Viewer::start(&stage, &["a.heapr"]);
    viewer.wait_for("session", |file| file["session"]["name"] == "web" && file["state"] == "ready");
    release(&stage);
    stage.heapr(&["stop", "web", "-q", "-o", "b.heapr"]).ok();
    let path = stage.path("b.heapr").display().to_string();
    let file = viewer.wait_for("new name", |file| {
        file["session"]["state"] == "ended" && file["path"].as_str() == Some(&path)
    });
    assert_eq!(file["state"], "ready", "{file}");
    assert!(!stage.path("a.heapr").exists());
}

#[test]
fn a_cancelled_session_stays_as_it_was_shown_last() {
    let stage = stage(&[]);
    let viewer = Viewer::start(&stage, &[]);
    viewer.wait_for("events", |file| file["trace"]["event_count"].as_u64() > Some(0));
    release(&stage);
    stage.heapr(&["cancel", "web"]).ok();
    let file = viewer.wait_for("end", |file| file["session"]["state"] == "cancelled");
    assert!(file["trace"]["event_count"].as_u64() > Some(0), "{file}");
    assert!(viewer.totals()["alloc_count"].as_u64() > Some(0));
}

#[test]
fn a_recorder_that_is_killed_leaves_what_it_had_written() {
    let stage = stage(&[]);
    let viewer = Viewer::start(&stage, &["web"]);
    let file = viewer.wait_for("events", |file| file["trace"]["event_count"].as_u64() > Some(0));
    let recorder = file["session"]["status"]["recorder_pid"].as_u64().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-KILL", &recorder]).status().unwrap().success());
    release(&stage);
    let file = viewer.wait_for("end", |file| file["session"]["state"] == "lost");
    assert!(file["warnings"].to_string().contains("did not end in order"), "{file}");
    assert!(viewer.totals()["alloc_count"].as_u64() > Some(0));
}

#[test]
fn a_session_that_keeps_no_events_shows_its_snapshots_and_its_history() {
    let stage = stage(&["--mode", "snapshot"]);
    let viewer = Viewer::start(&stage, &["web"]);
    viewer.wait_for("status", |file| file["session"]["status"]["live_count"].as_u64() > Some(900));
    viewer.ask("session/snapshot", json!({"file": 0, "name": "one"}));
    viewer.wait_for("snapshot", |file| file["trace"]["snapshots"][0]["name"] == "one");
    let summary = viewer.ask("native/summary", json!({"file": 0}));
    assert!(summary["rows"].to_string().contains("steady_alloc"), "{summary}");
    release(&stage);
    viewer.ask("session/stop", json!({"file": 0}));
    viewer.wait_for("end", |file| file["session"]["state"] == "ended");
}

#[test]
fn a_word_that_names_nothing_is_refused_in_words() {
    let stage = Stage::new(HEAPR);
    for (words, said) in [
        (&["view", "nothing"][..], "is no file, and no session has this name"),
        (&["view"], "no session is running"),
        (&["view", "."], "is no file"),
    ] {
        stage.heapr(words).fails_with(&[said]);
    }
}
