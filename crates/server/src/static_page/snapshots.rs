//! Recorded answers about V8 snapshots, the most important first.

use serde_json::{Value, json};

use super::recorder::Recorder;
use crate::entry::Content;
use crate::error::Result;
use crate::snapshot_file::SnapshotFile;

/// Number of rows per table.
const ROWS: usize = 500;
/// Number of classes whose objects are recorded.
const CLASSES: usize = 60;
/// Number of objects of a class, and of rows below an object.
const OBJECTS: usize = 100;
/// Number of objects that are recorded with their retainers.
const OPENED: usize = 300;
/// Number of these that are recorded with the paths from roots, which take most of the time.
const WITH_PATHS: usize = 40;
/// Number of levels of trees below the root.
const LEVELS: usize = 4;
/// Number of suspects whose objects are recorded with what retains them.
const SUSPECTS: usize = 12;
const LISTS: [&str; 7] =
    ["strings", "collections", "shapes", "fanout", "detached", "unreachable", "closures"];

pub(super) fn record(
    recorder: &mut Recorder<'_>,
    file: usize,
    snapshot: &SnapshotFile,
    step: usize,
) -> Result<()> {
    match step {
        0 => first(recorder, file),
        1 => second(recorder, file, snapshot),
        _ => third(recorder, file),
    }
}

fn summary_body(file: usize, sort: &str) -> Value {
    json!({"file": file, "sort": sort, "limit": ROWS})
}

fn first(recorder: &mut Recorder<'_>, file: usize) -> Result<()> {
    if recorder.begin(&format!("summary of file {file}")) {
        recorder.record("snapshot/summary", summary_body(file, "retained"))?;
        recorder.record("snapshot/statistics", json!({"file": file}))?;
        let suspects = recorder.read("snapshot/suspects", json!({"files": [file], "top": 20}))?;
        open_suspects(recorder, file, &suspects.unwrap_or_default())?;
        for by in ["dominators", "classes"] {
            recorder.record(
                "snapshot/treemap",
                json!({"file": file, "by": by, "least_share": 0.0005, "nodes_max": 5000}),
            )?;
        }
    }
    Ok(())
}

fn second(recorder: &mut Recorder<'_>, file: usize, snapshot: &SnapshotFile) -> Result<()> {
    let mut objects = Vec::new();
    if recorder.begin(&format!("objects of file {file}")) {
        let classes = recorder.read("snapshot/summary", summary_body(file, "retained"))?.unwrap_or_default();
        for class in classes["rows"].as_array().into_iter().flatten().take(CLASSES) {
            let body =
                json!({"file": file, "class_key": class["class_key"], "sort": "retained", "limit": OBJECTS});
            let answer = recorder.read("snapshot/objects", body)?.unwrap_or_default();
            objects.extend(ids(&answer).into_iter().take(8));
        }
    }
    if recorder.begin(&format!("containment and dominators of file {file}")) {
        let root = json!(snapshot.facts().map(|facts| facts.root_id));
        for (kind, start) in [("containment", Value::Null), ("dominators", root)] {
            let mut level = vec![start];
            for _ in 0..LEVELS {
                let mut below = Vec::new();
                for id in level.iter().take(OBJECTS) {
                    let answer = below_of(recorder, file, kind, id)?.unwrap_or_default();
                    below.extend(ids(&answer).into_iter().take(12));
                }
                objects.extend(below.iter().take(40).cloned());
                level = below;
            }
        }
    }
    if recorder.begin(&format!("retainers of file {file}")) {
        for (number, id) in objects.iter().take(OPENED).enumerate() {
            open(recorder, file, id)?;
            if number < WITH_PATHS {
                paths(recorder, file, id)?;
            }
        }
    }
    Ok(())
}

/// Records an object as the page opens it.
fn open(recorder: &mut Recorder<'_>, file: usize, id: &Value) -> Result<()> {
    recorder.record("snapshot/object", json!({"file": file, "id": id}))?;
    recorder.record("snapshot/retainers", json!({"file": file, "id": id, "limit": OBJECTS}))?;
    let fields = json!({"file": file, "id": id, "sort": "object", "limit": OBJECTS});
    recorder.record("snapshot/containment", fields).map(drop)
}

fn paths(recorder: &mut Recorder<'_>, file: usize, id: &Value) -> Result<()> {
    recorder.record("snapshot/paths", json!({"file": file, "id": id, "paths": 8})).map(drop)
}

/// Records the objects that suspects name, and those that retain them up to the roots.
fn open_suspects(recorder: &mut Recorder<'_>, file: usize, answer: &Value) -> Result<()> {
    let list = |of: &Value, name: &str| of[name].as_array().cloned().unwrap_or_default();
    let mut named: Vec<Value> = Vec::new();
    for suspect in list(answer, "suspects").iter().chain(&list(answer, "owners")).take(SUSPECTS) {
        named.push(suspect["owner_id"].clone());
        named.push(suspect["id"].clone());
        named.extend(list(suspect, "collects").iter().map(|kind| kind["example_id"].clone()));
        named.extend(list(suspect, "path").iter().map(|step| step["id"].clone()));
    }
    named.retain(Value::is_number);
    let mut known = std::collections::HashSet::new();
    for id in named.iter().filter(|id| known.insert(id.to_string())) {
        open(recorder, file, id)?;
        paths(recorder, file, id)?;
    }
    Ok(())
}

fn third(recorder: &mut Recorder<'_>, file: usize) -> Result<()> {
    if recorder.begin(&format!("lists of file {file}")) {
        for list in LISTS {
            recorder.record(&format!("snapshot/{list}"), json!({"file": file, "top": ROWS}))?;
        }
        for sort in ["shallow", "count", "distance", "name"] {
            recorder.record("snapshot/summary", summary_body(file, sort))?;
        }
    }
    Ok(())
}

fn below_of(recorder: &mut Recorder<'_>, file: usize, kind: &str, id: &Value) -> Result<Option<Value>> {
    let mut body = json!({"file": file, "id": id, "limit": OBJECTS});
    if kind == "containment" {
        body["sort"] = json!("retained");
    }
    recorder.read(&format!("snapshot/{kind}"), body)
}

fn ids(answer: &Value) -> Vec<Value> {
    let rows = answer["rows"].as_array().into_iter().flatten();
    rows.map(|row| row["id"].clone()).filter(|id| !id.is_null()).collect()
}

/// Records comparisons: pairs of snapshots, and all together.
pub(super) fn record_pairs(recorder: &mut Recorder<'_>) -> Result<()> {
    let entries = recorder.files.entries();
    let is_snapshot = |number: &usize| matches!(entries[*number].content(), Content::Snapshot(_));
    let all: Vec<usize> = (0..entries.len()).filter(is_snapshot).collect();
    if all.len() < 2 {
        return Ok(());
    }
    let suspects = recorder.read("snapshot/suspects", json!({"files": all, "top": 20}))?;
    for &file in &all {
        open_suspects(recorder, file, suspects.as_ref().unwrap_or(&Value::Null))?;
    }
    recorder
        .record("snapshot/series", json!({"files": all, "sort": "steady", "limit": ROWS, "same": true}))?;
    for (first, other) in super::traces::pairs(&all) {
        if !recorder.begin(&format!("comparison of files {first} and {other}")) {
            continue;
        }
        let pair = json!({"before": first, "after": other, "sort": "bytes_delta", "limit": ROWS});
        let answer = recorder.read("snapshot/diff", pair)?.unwrap_or_default();
        for class in answer["rows"].as_array().into_iter().flatten().take(CLASSES) {
            let body =
                json!({"before": first, "after": other, "class_key": class["class_key"], "limit": OBJECTS});
            recorder.record("snapshot/diff-objects", body)?;
        }
    }
    Ok(())
}
