//! Requests with a choice or a field that does not exist: the error names the field and lists what
//! is known.

use serde_json::json;

use crate::made::{Running, write_live, write_snapshot};

#[test]
fn an_unknown_choice_is_refused_with_its_field_and_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.heapr", "b.heapsnapshot", "c.heapsnapshot"].map(|name| folder.path().join(name));
    write_live(&paths[0], 100, None);
    paths[1..].iter().for_each(|path| write_snapshot(path, 5));
    let server = Running::start(&paths);
    let of = json!([{"file": 0, "number": 1}]);
    for (name, mut body, field, known) in [
        ("report", json!({"file": 0}), "by", "`stacks`, `frames`, `lines`, `images`"),
        ("report", json!({"file": 0}), "sort", "soc"),
        ("functions", json!({"file": 0}), "sort", "soc"),
        ("frame", json!({"file": 0, "frame": "f1"}), "sort", "soc"),
        ("leaks", json!({"file": 0}), "sort", "`mean_age`"),
        ("diff", json!({"before": {"file": 0}, "after": {"file": 0}}), "by", "`images`"),
        ("diff-flame", json!({"before": {"file": 0}, "after": {"file": 0}}), "value", "temporary_bytes"),
        ("flame", json!({"file": 0}), "value", "temporary_bytes"),
        ("flame", json!({"file": 0}), "direction", "`top-down` or `bottom-up`"),
        ("export", json!({"file": 0, "to": "csv"}), "sort", "soc"),
        ("export", json!({"file": 0}), "to", "csv, json"),
        ("timeline", json!({"file": 0}), "by", "`none`, `process`, `thread`, `image`, `frame`, `stack`"),
        ("timeline", json!({"file": 0}), "value", "`alloc_count`, `resident`"),
        ("native/summary", json!({"file": 0}), "by", "`stacks`, `frames`, `images`"),
        ("native/summary", json!({"file": 0}), "sort", "`bytes`, `count`, `oldest`, `youngest`"),
        ("native/diff", json!({"of": of}), "sort", "`change`, `growth`, `new`, `gone`, `steady`"),
        ("native/suspects", json!({"files": [0]}), "sort", "`oldest`, `rate`, `growth`"),
        ("native/treemap", json!({"file": 0}), "value", "`bytes` or `blocks`"),
        ("snapshot/summary", json!({"file": 1}), "sort", "`retained`, `shallow`, `count`"),
        ("snapshot/objects", json!({"file": 1}), "sort", "`retained`, `shallow`"),
        ("snapshot/containment", json!({"file": 1}), "sort", "`retained` or `object`"),
        ("snapshot/search", json!({"file": 1, "text": "a"}), "in", "`any`, `class`, `name`, `string`"),
        ("snapshot/treemap", json!({"file": 1}), "by", "`dominators` or `classes`"),
        ("snapshot/series", json!({"files": [1, 2]}), "sort", "`steady`, `growth`"),
        ("snapshot/diff", json!({"before": 1, "after": 2}), "sort", "`bytes_delta`, `count_delta`"),
    ] {
        body[field] = json!("colour");
        let reply = server.ask(name, &body.to_string());
        let answer = reply.json();
        let told = answer["error"].as_str().unwrap_or_default();
        assert_eq!((reply.status, &answer["field"]), (400, &json!(field)), "{name} {body}: {answer}");
        assert!(told.contains("colour") && told.contains(known), "{name} {body}: {told}");
    }
}

#[test]
fn an_unknown_field_is_refused_with_the_known_ones_of_all_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.heapr");
    write_live(&path, 100, None);
    let server = Running::start(&[path]);
    for (name, body) in [
        ("report", json!({"file": 0, "limits": 2})),
        ("leaks", json!({"file": 0, "limits": 2})),
        ("native/summary", json!({"file": 0, "limits": 2})),
    ] {
        let reply = server.ask(name, &body.to_string());
        let answer = reply.json();
        let told = answer["error"].as_str().unwrap_or_default();
        assert_eq!((reply.status, &answer["field"]), (400, &json!("limits")), "{name}: {answer}");
        for known in ["`limits`", "`file`", "`filter`", "`descending`", "`offset`", "`limit`", "`match`"] {
            assert!(told.contains(known), "{name}: {told}");
        }
    }
}
