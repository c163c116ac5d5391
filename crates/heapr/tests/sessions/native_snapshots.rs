//! `heapr snapshot take` and `every` on processes with a native heap, with and without a session
//! that records them.

use serde_json::Value;

use crate::stage::Stage;

fn pid_of(status: &Value) -> String {
    let processes = status["processes"].as_array().unwrap();
    let alive = processes.iter().find(|process| process["is_alive"] == true).unwrap();
    alive["pid"].as_u64().unwrap().to_string()
}

#[test]
fn the_session_that_records_a_process_takes_its_snapshots() {
    let stage = Stage::new();
    stage.start_steady("web", &["-o", "web.heapr"]).ok();
    let status = stage.wait_for("web", "its blocks", |status| status["live_bytes"].as_u64() > Some(100_000));
    let pid = pid_of(&status);
    let taken = stage.json(&["snapshot", "take", &pid, "--name", "first"]);
    assert_eq!(taken["snapshots"][0]["session"], "web", "{taken}");
    assert!(taken["snapshots"][0]["block_count"].as_u64() > Some(1000), "{taken}");
    stage.heapr(&["snapshot", "every", "1", &pid]).ok();
    let count = |summary: &Value| summary["snapshots"].as_array().unwrap().len() as u64;
    heapr_testkit::wait_until("two have been taken by themselves", || {
        let text = stage.heapr(&["snapshot", "summary", "web.heapr", "--format", "json"]).stdout;
        serde_json::from_str(&text).is_ok_and(|summary| count(&summary) >= 3).then_some(())
    });
    stage.heapr(&["snapshot", "every", "--off", &pid]).ok();
    let last = stage.json(&["snapshot", "take", &pid]);
    stage.heapr(&["stop", "web", "-q"]).ok();
    let summary = stage.json(&["snapshot", "summary", "web.heapr"]);
    assert_eq!(last["snapshots"][0]["number"].as_u64(), Some(count(&summary)), "{summary}");
    assert_eq!(summary["snapshots"][0]["name"], "first");
    assert_eq!(summary["snapshots"][1]["trigger"], "every 1.000 s");
    let by_name = stage.json(&["report", "web.heapr", "--totals", "--snapshot", "first"]);
    assert_eq!(by_name["totals"]["outstanding_count"], taken["snapshots"][0]["block_count"]);
}

#[test]
fn a_process_that_no_session_records_is_attached_to_for_one_snapshot() {
    let stage = Stage::new();
    let mut child = stage.spawn_steady(200);
    let pid = child.id().to_string();
    let taken = stage.json(&["snapshot", "take", &pid, "-o", "one.heapr"]);
    assert_eq!(taken["snapshots"][0]["session"], Value::Null, "{taken}");
    let notes = taken["snapshots"][0]["notes"].to_string();
    assert!(notes.contains("was attached to"), "what it could not see is said: {taken}");
    assert!(child.try_wait().unwrap().is_none(), "it runs on");
    assert_eq!(stage.runtime_files(), Vec::<String>::new(), "no session stays");
    let summary = stage.json(&["snapshot", "summary", "one.heapr"]);
    assert_eq!(summary["snapshots"][0]["trigger"], "asked for");

    // With `--keep`, the new session takes the next snapshot.
    stage.heapr(&["snapshot", "take", "--keep", &pid, "-o", "kept.heapr"]).ok();
    let name = format!("snapshot-{pid}");
    stage.wait_for(&name, "events", |status| status["event_count"].as_u64() > Some(1000));
    let taken = stage.json(&["snapshot", "take", &pid]);
    assert_eq!(taken["snapshots"][0]["session"], name.as_str());
    assert_eq!(taken["snapshots"][0]["number"], 2);
    stage.heapr(&["stop", &name, "-q"]).ok();
    stage.release();
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

#[test]
fn processes_that_are_not_there_are_refused() {
    let stage = Stage::new();
    stage.heapr(&["snapshot", "take", "--native", "4000000"]).fails_with(&["4000000"]);
    stage.heapr(&["snapshot", "every", "--native", "1"]).fails_with(&["no process given"]);
    stage.heapr(&["snapshot", "every", "--off", "4000000"]).fails_with(&["no session records 4000000"]);
}
