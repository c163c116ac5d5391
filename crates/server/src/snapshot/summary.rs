//! Classes of a snapshot, and statistics of its contents.

use std::cmp::Reverse;
use std::sync::Arc;

use heapr_table::SortRows as _;
use heapr_v8::devtools::{Filter, Heap, NodeSet};
use heapr_v8::view::ObjectOrder;
use heapr_v8::{StoredClass, StoredSummary};
use serde::Serialize;
use serde_json::json;

use super::first_objects;
use super::lists::{ListRequest, open};
use super::rows::distance;
use crate::error::{Error, Result};
use crate::request::{Answer, Context, json as answer_json};
use crate::snapshot_file::{Passing, SnapshotFile, SummaryFilter};

impl SummaryFilter {
    /// Objects that pass the filter; cached by filter.
    pub(super) fn passing(&self, context: &Context<'_>, file: &SnapshotFile) -> Result<Arc<Passing>> {
        let generation = |file: usize| context.files.entry(file).map(|entry| entry.generation());
        let others =
            [self.allocated_after, self.allocated_before].map(|file| file.map(generation).transpose());
        let [after, before] = others;
        let key = (self.clone(), [after?, before?]);
        file.passing.get(&key, context.cancel, |_| {
            let heap = file.heap(context.cancel)?;
            let nodes = self.nodes(context, &heap)?;
            context.cancel.check()?;
            let summary = StoredSummary::of_some(&heap, nodes.as_ref());
            Ok(Passing { nodes, summary })
        })
    }

    fn nodes(&self, context: &Context<'_>, heap: &Heap) -> Result<Option<NodeSet>> {
        use heapr_v8::devtools::ContextOwner;
        let mut filters = Vec::new();
        for kind in &self.kind {
            filters.push(match kind.as_str() {
                "duplicated-strings" => Filter::DuplicatedStrings,
                "detached-nodes" => Filter::RetainedByDetachedNodes,
                "console" => Filter::RetainedByConsole,
                "event-handlers" => Filter::RetainedByEventHandlers,
                "contexts" => Filter::RetainedByContexts,
                "shared-context" => Filter::NativeContext(ContextOwner::Shared),
                "no-context" => Filter::NativeContext(ContextOwner::None),
                kind => return Err(Error::bad("filter", format!("{kind:?} is no kind of filter"))),
            });
        }
        if let Some(id) = &self.native_context {
            let node = id.trim_start_matches('@').parse().ok().and_then(|id| heap.snapshot().node_of_id(id));
            let node = node.ok_or_else(|| Error::NotFound { what: "native context", name: id.clone() })?;
            filters.push(Filter::NativeContext(ContextOwner::One(node)));
        }
        let max_id = |file: usize| -> Result<u64> {
            Ok(context.files.snapshot(file)?.heap(context.cancel)?.max_js_id())
        };
        if self.allocated_after.is_some() || self.allocated_before.is_some() {
            let after = self.allocated_after.map_or(Ok(0), max_id)?;
            let before = self.allocated_before.map_or_else(|| Ok(heap.max_js_id()), max_id)?;
            filters.push(Filter::AllocatedBetween(after, before));
        }
        let mut passing: Option<NodeSet> = None;
        for filter in filters {
            context.cancel.check()?;
            let set = filter.nodes(heap);
            passing = Some(match passing {
                None => set,
                Some(known) => {
                    let mut both = NodeSet::new(heap.snapshot().node_count());
                    known.nodes().filter(|&node| set.contains(node)).for_each(|node| {
                        both.insert(node);
                    });
                    both
                }
            });
        }
        Ok(passing)
    }
}

/// Classes of the request, in its order.
fn sorted_classes<'a>(request: &ListRequest, summary: &'a StoredSummary) -> Result<Vec<&'a StoredClass>> {
    let mut lines: Vec<&StoredClass> =
        summary.classes.iter().filter(|line| request.is_match(&line.name)).collect();
    match request.sort() {
        "retained" => lines.sort_rows_by_key(|line| Reverse(line.retained_bytes)),
        "shallow" => lines.sort_rows_by_key(|line| Reverse(line.self_bytes)),
        "count" => lines.sort_rows_by_key(|line| Reverse(line.object_count)),
        "distance" => lines.sort_rows_by_key(|line| line.distance),
        "name" => lines.sort_rows_by(|one, other| one.name.cmp(&other.name)),
        sort => {
            return Err(Error::bad(
                "sort",
                format!("{sort:?} is none of retained, shallow, count, distance, name"),
            ));
        }
    }
    if !request.descending {
        lines.reverse();
    }
    Ok(lines)
}

/// A class.
#[derive(Debug, Serialize)]
struct ClassRow {
    class: String,
    class_key: String,
    /// Location of the constructor.
    place: Option<String>,
    object_count: u64,
    distance: i32,
    shallow_bytes: u64,
    retained_bytes: u64,
}

fn class_rows(file: &SnapshotFile, request: &ListRequest, lines: &[&StoredClass]) -> Vec<ClassRow> {
    let row = |line: &StoredClass| ClassRow {
        class: line.name.clone(),
        class_key: line.key.clone(),
        place: line.place.as_deref().map(|place| file.view.original_place(place)),
        object_count: line.object_count,
        distance: distance(line.distance).0,
        shallow_bytes: line.self_bytes,
        retained_bytes: line.retained_bytes,
    };
    lines.iter().skip(request.offset).take(request.limit()).map(|line| row(line)).collect()
}

pub(super) fn summary(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, file) = open(context, body)?;
    let whole = file.summary()?;
    let passing;
    let mut command = vec!["--sort", request.sort()];
    let summary = if request.filter == SummaryFilter::default() {
        whole
    } else {
        passing = request.filter.passing(context, &file)?;
        command.extend(request.filter.kind.iter().flat_map(|kind| ["--filter", kind]));
        &passing.summary
    };
    let lines = sorted_classes(&request, summary)?;
    // The user opens one of these classes next.
    if request.filter == SummaryFilter::default()
        && request.asks_for_all()
        && let Some(order) = order_inside(request.sort())
    {
        let classes = lines.iter().map(|line| (line.key.as_str(), line.object_count));
        first_objects::prepare(&file, classes, (order, request.descending));
    }
    let rows = class_rows(&file, &request, &lines);
    answer_json(&json!({
        "schema": "heapr.view.snapshot.summary/1",
        "command": file.command("summary", &command),
        "total_bytes": whole.statistics.total_bytes,
        "row_count": lines.len(),
        "offset": request.offset,
        "rows": rows,
    }))
}

/// Order of a class's objects for an order of the classes; `None` if the objects need no
/// preparation.
fn order_inside(sort: &str) -> Option<ObjectOrder> {
    match sort {
        "shallow" => Some(ObjectOrder::Shallow),
        "distance" => Some(ObjectOrder::Distance),
        "name" => Some(ObjectOrder::Name),
        _ => None,
    }
}

pub(super) fn statistics(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (_, file) = open(context, body)?;
    let command = file.command("statistics", &[]);
    let kinds = file.trace().map(|trace| context.files.host.graph_kinds(trace)).unwrap_or_default();
    if !kinds.is_empty() {
        return answer_json(&json!({
            "schema": "heapr.view.snapshot.statistics/1",
            "command": command,
            "rows": kinds,
        }));
    }
    let found = &file.summary()?.statistics;
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
    answer_json(&json!({
        "schema": "heapr.view.snapshot.statistics/1",
        "command": command,
        "rows": rows.map(|(kind, bytes)| json!({"kind": kind, "bytes": bytes})),
    }))
}
