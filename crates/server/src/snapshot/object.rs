//! One object: its details, and the paths from roots to it.

use std::collections::HashSet;

use heapr_v8::analysis::path_json;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::rows;
use crate::error::Result;
use crate::request::{Answer, Context, json as answer_json, read};

/// Largest number of paths.
const PATHS_MAX: usize = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectRequest {
    file: usize,
    id: u64,
}

pub(super) fn object(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: ObjectRequest = read(body)?;
    let file = context.files.snapshot(request.file)?;
    let details = file.view.details(file.node(request.id)?).map_err(|error| file.error(&error))?;
    answer_json(&ObjectAnswer {
        schema: "heapr.view.snapshot.object/1",
        command: file.command("object", &[&format!("@{}", request.id)]),
        object: rows::object(&file, &details.row),
        dominator: rows::object(&file, &details.dominator),
        dominated_count: details.dominated_count,
        trace_node_id: (details.trace_node_id != 0).then_some(details.trace_node_id),
        text: details.row.name,
        place: details.place,
    })
}

/// Details of an object.
#[derive(Serialize)]
struct ObjectAnswer {
    schema: &'static str,
    command: Option<String>,
    object: rows::HeapObject,
    /// Whole name, or whole string.
    text: String,
    place: Option<String>,
    dominator: rows::HeapObject,
    dominated_count: u32,
    trace_node_id: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathsRequest {
    file: usize,
    id: u64,
    #[serde(default)]
    ignore: Vec<u64>,
    #[serde(default = "crate::request::number::<3>")]
    paths: usize,
}

/// Paths from roots, each a list of objects.
pub(super) fn paths(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: PathsRequest = read(body)?;
    let file = context.files.snapshot(request.file)?;
    let node = file.node(request.id)?;
    let ignored = request.ignore.iter().map(|&id| file.node(id)).collect::<Result<HashSet<u32>>>()?;
    let found = file
        .view
        .retaining_paths(node, &ignored, request.paths.min(PATHS_MAX))
        .map_err(|error| file.error(&error))?;
    answer_json(&json!({
        "schema": "heapr.view.snapshot.paths/1",
        "command": file.command("retainers", &[&format!("@{}", request.id)]),
        "paths": found.paths.iter().map(|path| path_json(path, rows::short)).collect::<Vec<_>>(),
        "is_cut": found.is_cut,
    }))
}
