//! What grows over snapshots, what is large in one, and which texts are there twice.

use heapr_v8::analysis::{self, LargeOwner, Naming, path_json, suspects_json};
use heapr_v8::devtools::Heap;
use serde::Deserialize;
use serde_json::{Value, json};

use super::rows::short;
use crate::command_line::command;
use crate::error::{Error, Result};
use crate::request::{Answer, Context, json as answer_json, read};

/// Most suspects.
const TOP_MAX: usize = 1_000;
/// Most texts that are there twice.
const STRINGS_MAX: usize = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuspectsRequest {
    files: Vec<usize>,
    #[serde(default = "crate::request::number::<10>")]
    top: usize,
}

pub(super) fn suspects(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: SuspectsRequest = read(body)?;
    let files = request.files.iter().map(|&file| context.files.snapshot(file)).collect::<Result<Vec<_>>>()?;
    let heaps = files.iter().map(|file| file.heap(context.cancel)).collect::<Result<Vec<_>>>()?;
    let paths: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
    let words: Vec<&str> =
        ["snapshot", "suspects"].into_iter().chain(paths.iter().map(String::as_str)).collect();
    let top = request.top.min(TOP_MAX);
    context.cancel.check()?;
    match heaps.as_slice() {
        [] => Err(Error::bad("files", "no snapshot is given")),
        [heap] => {
            let naming = Naming::of(&**heap);
            let owners: Vec<Value> = analysis::large_owners(&**heap, &naming, top)
                .iter()
                .map(|owner| owner_json(heap, owner))
                .collect();
            answer_json(&json!({
                "schema": "heapr.view.snapshot.owners/1", "command": command(&words), "owners": owners,
            }))
        }
        heaps => {
            let found = analysis::suspects(&heaps.iter().map(|heap| &**heap).collect::<Vec<&Heap>>(), top);
            let mut answer = suspects_json("heapr.view.snapshot.suspects/1", &paths, &found, short);
            answer["command"] = command(&words).into();
            answer_json(&answer)
        }
    }
}

fn owner_json(heap: &Heap, owner: &LargeOwner) -> Value {
    json!({
        "name": short(&owner.called.text),
        "id": heap.snapshot().id(owner.node),
        "retained_bytes": owner.retained_bytes,
        "count": owner.count,
        "class": owner.class,
        "class_count": owner.class_count,
        "place": owner.called.place.as_ref().map(ToString::to_string),
        "path": path_json(&owner.path, short),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StringsRequest {
    file: usize,
    #[serde(default = "crate::request::number::<100>")]
    top: usize,
}

pub(super) fn strings(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: StringsRequest = read(body)?;
    let file = context.files.snapshot(request.file)?;
    let heap = file.heap(context.cancel)?;
    let top = request.top.min(STRINGS_MAX);
    // One more tells whether there are more.
    let found = analysis::duplicated_strings(&heap, top + 1);
    let is_cut = found.len() > top;
    let rows = found.into_iter().take(top).map(|found| {
        json!({
            "wasted_bytes": found.wasted_bytes, "total_bytes": found.total_bytes, "count": found.count,
            "example_id": heap.snapshot().id(found.example), "text": short(&found.text), "is_cut": found.is_cut,
        })
    });
    answer_json(&json!({
        "schema": "heapr.view.snapshot.strings/1",
        "command": file.command("strings", &[]),
        "rows": rows.collect::<Vec<_>>(),
        "is_cut": is_cut,
    }))
}
