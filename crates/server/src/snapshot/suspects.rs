//! Growth over snapshots, and large objects in one snapshot.

use heapr_v8::analysis::{self, Naming, owner_table, suspect_table};
use heapr_v8::devtools::Heap;
use serde::Deserialize;

use super::rows::short;
use crate::command_line::command;
use crate::error::{Error, Result};
use crate::request::{Answer, Context, json as answer_json, read};

/// Largest number of suspects.
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
            let owners = analysis::large_owners(&**heap, &naming, top);
            let mut table = owner_table("heapr.view.snapshot.owners/1", &**heap, &owners, short);
            table.fact("command", command(&words));
            answer_json(&table)
        }
        heaps => {
            let found = analysis::suspects(&heaps.iter().map(|heap| &**heap).collect::<Vec<&Heap>>(), top);
            let mut table = suspect_table("heapr.view.snapshot.suspects/1", &paths, &found, short);
            table.fact("command", command(&words));
            answer_json(&table)
        }
    }
}
