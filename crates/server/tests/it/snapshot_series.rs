//! Several V8 snapshots side by side.

use serde_json::{Value, json};

use crate::made::{Running, write_snapshot};

/// Answer, once the snapshots are open.
fn series(server: &Running, body: &Value) -> (u16, Value) {
    let reply = heapr_testkit::wait_until("the snapshots are open", || {
        Some(server.ask("snapshot/series", &body.to_string())).filter(|reply| reply.status != 409)
    });
    (reply.status, reply.json())
}

#[test]
fn each_class_has_its_numbers_in_each_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.heapsnapshot", "b.heapsnapshot", "c.heapsnapshot"].map(|name| folder.path().join(name));
    for (path, count) in paths.iter().zip([10, 30, 60]) {
        write_snapshot(path, count);
    }
    let server = Running::start(&paths);
    let (status, answer) = series(&server, &json!({"files": [0, 1, 2], "match": "order"}));
    assert_eq!((status, &answer["row_count"]), (200, &json!(1)), "{answer}");
    let row = &answer["rows"][0];
    assert_eq!(row["object_count_at"], json!([10, 30, 60]));
    assert_eq!(row["retained_bytes_at"], json!([160, 480, 960]));
    assert_eq!(
        (&row["count_growth"], &row["growth_bytes"], &row["steadiness"]),
        (&json!(50), &json!(800), &json!(1.0))
    );
    assert!(row["class_keys"].as_array().unwrap().iter().all(Value::is_string), "{row}");
    assert_eq!(answer["total_bytes"].as_array().unwrap().len(), 3);

    // From the last snapshot to the first the class shrinks.
    let (_, answer) = series(&server, &json!({"files": [2, 1, 0], "match": "order", "sort": "growth"}));
    assert_eq!(
        (&answer["rows"][0]["growth_bytes"], &answer["rows"][0]["steadiness"]),
        (&json!(-800), &json!(0.0))
    );
}

#[test]
fn classes_that_are_the_same_in_all_are_shown_if_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.heapsnapshot", "b.heapsnapshot", "c.heapsnapshot"].map(|name| folder.path().join(name));
    for (path, count) in paths.iter().zip([10, 10, 20]) {
        write_snapshot(path, count);
    }
    let server = Running::start(&paths);
    for (files, same, count) in [([0, 1], false, 0), ([0, 1], true, 1), ([0, 2], false, 1)] {
        let (_, answer) = series(&server, &json!({"files": files, "match": "order", "same": same}));
        assert_eq!(answer["row_count"], json!(count), "{files:?} {answer}");
    }
}

#[test]
fn what_makes_no_series_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.heapsnapshot", "b.heapsnapshot"].map(|name| folder.path().join(name));
    paths.iter().for_each(|path| write_snapshot(path, 5));
    let server = Running::start(&paths);
    assert_eq!(series(&server, &json!({"files": [0, 1]})).0, 200);
    for (body, status) in [
        (json!({"files": [0]}), 400),
        (json!({}), 400),
        (json!({"files": [0, 1], "sort": "colour"}), 400),
        (json!({"files": [0, 1], "sort": "2"}), 400),
        (json!({"files": [0, 7]}), 404),
        (json!({"files": [0, 1], "unknown": 1}), 400),
    ] {
        assert_eq!(series(&server, &body).0, status, "{body}");
    }
}
