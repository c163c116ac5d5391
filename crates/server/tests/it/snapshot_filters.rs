//! Filter results of a V8 snapshot are cached, and computed anew when a file that the filter names
//! has changed.

use serde_json::{Value, json};

use crate::made::{Running, write_snapshot};

/// Number of orders that pass, once the snapshots are open.
fn orders(server: &Running, filter: &Value) -> u64 {
    let body = json!({"file": 1, "filter": filter}).to_string();
    let reply = heapr_testkit::wait_until("the snapshots are open", || {
        Some(server.ask("snapshot/summary", &body)).filter(|reply| reply.status != 409)
    });
    assert_eq!(reply.status, 200, "{reply:?}");
    let answer = reply.json();
    let rows = answer["rows"].as_array().unwrap();
    rows.iter().filter(|row| row["class"] == "Order").filter_map(|row| row["object_count"].as_u64()).sum()
}

#[test]
fn what_came_after_another_snapshot_changes_with_that_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["before.heapsnapshot", "after.heapsnapshot"].map(|name| folder.path().join(name));
    write_snapshot(&paths[0], 10);
    write_snapshot(&paths[1], 50);
    let server = Running::start(&paths);
    let after_it = json!({"allocated_after": 0});
    assert_eq!(orders(&server, &json!({})), 50);
    assert_eq!([orders(&server, &after_it), orders(&server, &after_it)], [40, 40], "found once, and kept");
    assert_eq!(orders(&server, &json!({"allocated_before": 0})), 10);
    assert_eq!(orders(&server, &json!({"allocated_after": 0, "allocated_before": 1})), 40);

    std::fs::remove_file(&paths[0]).unwrap();
    write_snapshot(&paths[0], 30);
    assert_eq!(orders(&server, &after_it), 40, "the file that was opened is still what is compared with");
    assert_eq!(server.ask("reopen", "{\"file\":0}").status, 200);
    assert_eq!(orders(&server, &after_it), 20);
    assert_eq!(orders(&server, &json!({"allocated_before": 0})), 30);
}

#[test]
fn a_filter_that_names_nothing_is_refused_and_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.heapsnapshot", "b.heapsnapshot"].map(|name| folder.path().join(name));
    paths.iter().for_each(|path| write_snapshot(path, 5));
    let server = Running::start(&paths);
    assert_eq!(orders(&server, &json!({})), 5);
    for (filter, status) in [
        (json!({"allocated_after": 7}), 404),
        (json!({"kind": ["nonsense"]}), 400),
        (json!({"native_context": "@99999"}), 404),
        (json!({"unknown": 1}), 400),
    ] {
        let body = json!({"file": 1, "filter": filter}).to_string();
        for _ in 0..2 {
            assert_eq!(server.ask("snapshot/summary", &body).status, status, "{body}");
        }
    }
    assert_eq!(orders(&server, &json!({})), 5);
}

#[test]
fn the_first_objects_of_a_class_are_those_of_the_whole_list_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.heapsnapshot", "b.heapsnapshot"].map(|name| folder.path().join(name));
    paths.iter().for_each(|path| write_snapshot(path, 900));
    let server = Running::start(&paths);
    assert_eq!(orders(&server, &json!({})), 900);
    let summary = server.ask("snapshot/summary", r#"{"file":1,"match":"order"}"#).json();
    let key = summary["rows"][0]["class_key"].clone();
    let ids = |sort: &str, descending: bool, offset: usize, limit: usize| -> Vec<u64> {
        let body = json!({"file": 1, "class_key": key, "sort": sort, "descending": descending, "offset": offset, "limit": limit});
        let reply = server.ask("snapshot/objects", &body.to_string());
        assert_eq!(reply.status, 200, "{reply:?}");
        let answer = reply.json();
        assert_eq!(answer["row_count"], 900);
        answer["rows"].as_array().unwrap().iter().filter_map(|row| row["id"].as_u64()).collect()
    };
    for sort in ["retained", "shallow", "distance", "name", "id"] {
        // The page asks for the classes in an order before it opens one.
        server.ask("snapshot/summary", &json!({"file": 1, "sort": sort}).to_string());
        for descending in [true, false] {
            let whole = ids(sort, descending, 0, 1000);
            assert_eq!(whole.len(), 900);
            for (offset, limit) in [(0, 200), (200, 200), (395, 5), (399, 2), (850, 200), (900, 5)] {
                let expected: Vec<u64> = whole.iter().skip(offset).take(limit).copied().collect();
                assert_eq!(ids(sort, descending, offset, limit), expected, "{sort} {descending} {offset}");
            }
        }
    }
}

#[test]
fn a_list_that_is_cut_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.heapsnapshot", "b.heapsnapshot"].map(|name| folder.path().join(name));
    paths.iter().for_each(|path| write_snapshot(path, 5));
    // Five strings of one text in place of the objects.
    let strings = std::fs::read_to_string(&paths[1]).unwrap().replace(",3,1,", ",2,1,");
    std::fs::write(&paths[1], strings).unwrap();
    let server = Running::start(&paths);
    orders(&server, &json!({}));
    for list in
        ["fanout", "collections", "shapes", "detached", "unreachable", "closures", "pending", "strings"]
    {
        let ask = |top: usize| {
            server.ask(&format!("snapshot/{list}"), &json!({"file": 1, "top": top}).to_string()).json()
        };
        let whole = ask(100);
        let count = whole["rows"].as_array().map(Vec::len).unwrap();
        assert_eq!((&whole["is_cut"], &ask(count)["is_cut"]), (&json!(false), &json!(false)), "{list}");
        let cut = ask(0);
        assert_eq!((&cut["rows"], &cut["is_cut"]), (&json!([]), &json!(count > 0)), "{list}");
        assert_eq!(count, usize::from(list == "strings"), "{list}");
    }
}
