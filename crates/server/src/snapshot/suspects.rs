//! What grows over snapshots, and what is large in one.

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
