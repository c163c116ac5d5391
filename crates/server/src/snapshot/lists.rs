//! Summary, objects of a class, containment, retainers, dominators, statistics.

use std::cmp::Reverse;
use std::sync::Arc;

use heapr_v8::devtools::{Heap, RetainersView};
use heapr_v8::{EdgeKind, StoredClass};
use serde::Deserialize;
use serde_json::{Value, json};

use super::rows::{EdgeJson, ObjectJson, edge, object};
use super::snapshot_file::SnapshotFile;
use crate::api::{Answer, Context, json, read};
use crate::command_line::command;
use crate::error::{Error, Result};

/// Most rows of an answer.
const ROWS_MAX: usize = 10_000;

/// A list of a snapshot; fields that a list has no use for are refused by it.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ListRequest {
    file: usize,
    id: Option<u64>,
    class_key: Option<String>,
    ignore: Vec<u64>,
    sort: Option<String>,
    descending: bool,
    offset: usize,
    limit: usize,
    r#match: String,
}

impl Default for ListRequest {
    fn default() -> Self {
        Self {
            file: usize::MAX,
            id: None,
            class_key: None,
            ignore: Vec::new(),
            sort: None,
            descending: true,
            offset: 0,
            limit: 200,
            r#match: String::new(),
        }
    }
}

impl ListRequest {
    fn limit(&self) -> usize {
        self.limit.min(ROWS_MAX)
    }

    fn is_match(&self, texts: &[&str]) -> bool {
        let wanted = self.r#match.to_lowercase();
        wanted.is_empty() || texts.iter().any(|text| text.to_lowercase().contains(&wanted))
    }

    /// The rows that are asked for, in the asked order.
    fn cut<T>(&self, mut rows: Vec<T>) -> Vec<T> {
        if !self.descending {
            rows.reverse();
        }
        rows.into_iter().skip(self.offset).take(self.limit()).collect()
    }
}

/// The node of an id.
pub(super) fn node(heap: &Heap, id: u64) -> Result<u32> {
    heap.snapshot().node_of_id(id).ok_or_else(|| Error::NotFound { what: "object", name: format!("@{id}") })
}

fn open(context: &Context<'_>, body: &[u8]) -> Result<(ListRequest, Arc<SnapshotFile>)> {
    let request: ListRequest = read(body)?;
    let file = context.files.snapshot(request.file)?;
    Ok((request, file))
}

/// `heapr snapshot WHAT FILE …`.
pub(super) fn snapshot_command(file: &SnapshotFile, what: &str, rest: &[&str]) -> String {
    let path = file.path.display().to_string();
    let words: Vec<&str> = ["snapshot", what, &path].into_iter().chain(rest.iter().copied()).collect();
    command(&words)
}

/// A distance as rows have it.
fn distance_json(distance: i32) -> i32 {
    let base = heapr_v8::devtools::BASE_SYSTEM_DISTANCE;
    if distance >= base { distance - base } else { distance.max(-1) }
}

pub(super) fn summary(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, file) = open(context, body)?;
    let summary = file.summary();
    let mut lines: Vec<&StoredClass> =
        summary.classes.iter().filter(|line| request.is_match(&[&line.name])).collect();
    match request.sort.as_deref().unwrap_or("retained") {
        "retained" => lines.sort_by_key(|line| Reverse(line.retained_bytes)),
        "shallow" => lines.sort_by_key(|line| Reverse(line.self_bytes)),
        "count" => lines.sort_by_key(|line| Reverse(line.object_count)),
        "distance" => lines.sort_by_key(|line| line.distance),
        "name" => lines.sort_by(|one, other| one.name.cmp(&other.name)),
        sort => {
            return Err(Error::bad(
                "sort",
                format!("{sort:?} is none of retained, shallow, count, distance, name"),
            ));
        }
    }
    let row_count = lines.len();
    let rows: Vec<Value> = request
        .cut(lines)
        .into_iter()
        .map(|line| {
            json!({
                "class": line.name, "class_key": line.key, "place": line.place, "object_count": line.object_count,
                "distance": distance_json(line.distance), "shallow_bytes": line.self_bytes, "retained_bytes": line.retained_bytes,
            })
        })
        .collect();
    json(&json!({
        "schema": "heapr.view.snapshot.summary/1",
        "command": snapshot_command(&file, "summary", &[]),
        "total_bytes": summary.statistics.total_bytes,
        "row_count": row_count,
        "offset": request.offset,
        "rows": rows,
    }))
}

/// Sorts nodes by what rows show of them.
pub(super) fn sort_nodes(heap: &Heap, nodes: &mut [u32], sort: &str) -> Result<()> {
    let snapshot = heap.snapshot();
    match sort {
        "retained" => nodes.sort_by_key(|&node| (Reverse(heap.retained()[node as usize]), snapshot.id(node))),
        "shallow" => nodes.sort_by_key(|&node| (Reverse(snapshot.self_bytes(node)), snapshot.id(node))),
        "count" => nodes.sort_by_key(|&node| snapshot.id(node)),
        "distance" => nodes.sort_by_key(|&node| (heap.distances()[node as usize], snapshot.id(node))),
        "name" => nodes.sort_by_cached_key(|&node| (heap.display_text(node), snapshot.id(node))),
        sort => {
            return Err(Error::bad(
                "sort",
                format!("{sort:?} is none of retained, shallow, count, distance, name"),
            ));
        }
    }
    Ok(())
}

/// The objects of a class that have a size, as DevTools lists them.
pub(super) fn nodes_of_class(heap: &Heap, key: &str) -> Result<Vec<u32>> {
    let classes = heap.classes();
    let wanted: Vec<u32> = (0..classes.count()).filter(|&class| classes.get(class).key() == key).collect();
    if wanted.is_empty() {
        return Err(Error::NotFound { what: "class", name: key.to_owned() });
    }
    let snapshot = heap.snapshot();
    let is_wanted = |&node: &u32| wanted.contains(&classes.of_node(node)) && snapshot.self_bytes(node) != 0;
    Ok((0..snapshot.node_count()).filter(is_wanted).collect())
}

pub(super) fn objects(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, file) = open(context, body)?;
    let heap = &file.heap;
    let key = request.class_key.as_deref().ok_or_else(|| Error::bad("class_key", "no class is given"))?;
    let mut nodes = nodes_of_class(heap, key)?;
    if !request.r#match.is_empty() {
        nodes.retain(|&node| request.is_match(&[&heap.display_text(node)]));
    }
    context.cancel.check()?;
    sort_nodes(heap, &mut nodes, request.sort.as_deref().unwrap_or("retained"))?;
    let row_count = nodes.len();
    let rows: Vec<ObjectJson> = request.cut(nodes).into_iter().map(|node| object(heap, node)).collect();
    json(&json!({
        "schema": "heapr.view.snapshot.objects/1",
        "command": snapshot_command(&file, "summary", &["--class", key]),
        "row_count": row_count,
        "offset": request.offset,
        "rows": rows,
    }))
}

fn edges_answer(
    schema: &str,
    command: String,
    request: &ListRequest,
    row_count: usize,
    rows: &[EdgeJson],
) -> Result<Answer> {
    json(
        &json!({ "schema": schema, "command": command, "row_count": row_count, "offset": request.offset, "rows": rows }),
    )
}

pub(super) fn containment(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, file) = open(context, body)?;
    let heap = &file.heap;
    let snapshot = heap.snapshot();
    let node = request.id.map_or(Ok(snapshot.root()), |id| node(heap, id))?;
    let mut edges: Vec<u32> = snapshot
        .graph()
        .edges(node)
        .filter(|&edge| snapshot.edge_kind(edge) != EdgeKind::INVISIBLE)
        .collect();
    match request.sort.as_deref().unwrap_or("retained") {
        "retained" => {
            edges.sort_by_key(|&edge| Reverse(heap.retained()[snapshot.graph().target(edge) as usize]))
        }
        "object" => {}
        sort => return Err(Error::bad("sort", format!("{sort:?} is neither retained nor object"))),
    }
    let row_count = edges.len();
    let rows: Vec<EdgeJson> =
        request.cut(edges).into_iter().map(|one| edge(heap, one, snapshot.graph().target(one))).collect();
    let id = format!("@{}", snapshot.id(node));
    let command = snapshot_command(&file, "containment", &[&id]);
    edges_answer("heapr.view.snapshot.containment/1", command, &request, row_count, &rows)
}

pub(super) fn retainers(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, file) = open(context, body)?;
    let heap = &file.heap;
    let id = request.id.ok_or_else(|| Error::bad("id", "no object is given"))?;
    let of = node(heap, id)?;
    let ignored = request.ignore.iter().map(|&id| node(heap, id)).collect::<Result<Vec<u32>>>()?;
    let view = RetainersView::new(heap, &ignored);
    let edges = view.edges_into(of);
    let row_count = edges.len();
    let rows: Vec<EdgeJson> = request
        .cut(edges)
        .into_iter()
        .map(|one| edge(heap, one, heap.snapshot().graph().source(one)))
        .collect();
    let command = snapshot_command(&file, "retainers", &[&format!("@{id}")]);
    edges_answer("heapr.view.snapshot.retainers/1", command, &request, row_count, &rows)
}

pub(super) fn dominators(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, file) = open(context, body)?;
    let heap = &file.heap;
    let of = request.id.map_or(Ok(heap.snapshot().root()), |id| node(heap, id))?;
    let mut nodes = heap.dominator_tree().children(of).to_vec();
    sort_nodes(heap, &mut nodes, "retained")?;
    let row_count = nodes.len();
    let rows: Vec<ObjectJson> = request
        .cut(nodes)
        .into_iter()
        .map(|node| object(heap, node).with_children(heap.dominator_tree().children(node).len()))
        .collect();
    json(&json!({
        "schema": "heapr.view.snapshot.dominators/1",
        "command": snapshot_command(&file, "dominators", &[&format!("@{}", heap.snapshot().id(of))]),
        "row_count": row_count,
        "offset": request.offset,
        "rows": rows,
    }))
}

pub(super) fn statistics(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (_, file) = open(context, body)?;
    let found = &file.summary().statistics;
    let rows = [
        ("code", found.code_bytes),
        ("strings", found.string_bytes),
        ("js_arrays", found.js_array_bytes),
        ("typed_arrays", found.typed_array_bytes),
        ("system", found.system_bytes),
        ("other_js", found.other_js_bytes()),
        ("other_native", found.other_native_bytes()),
        ("v8_heap", found.v8_heap_bytes),
        ("native", found.native_bytes),
        ("total", found.total_bytes),
    ];
    json(&json!({
        "schema": "heapr.view.snapshot.statistics/1",
        "command": snapshot_command(&file, "statistics", &[]),
        "rows": rows.map(|(kind, bytes)| json!({"kind": kind, "bytes": bytes})),
    }))
}
