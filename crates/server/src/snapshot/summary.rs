//! Classes of a snapshot, and statistics of its contents.

use std::cmp::Reverse;
use std::sync::Arc;

use heapr_table::SortRows as _;
use heapr_v8::devtools::{ContextOwner, Filter, Heap, NodeSet};
use heapr_v8::view::ObjectOrder;
use heapr_v8::{StoredClass, StoredSummary};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::first_objects;
use super::lists::List;
use super::rows::distance;
use crate::choices::text_of;
use crate::error::{Error, Result};
use crate::page_rows::Descending;
use crate::request::{Answer, Context, json as answer_json};
use crate::snapshot_file::{FilterKind, Passing, SnapshotFile, SummaryFilter};

impl From<FilterKind> for Filter {
    fn from(kind: FilterKind) -> Self {
        match kind {
            FilterKind::DuplicatedStrings => Self::DuplicatedStrings,
            FilterKind::DetachedNodes => Self::RetainedByDetachedNodes,
            FilterKind::Console => Self::RetainedByConsole,
            FilterKind::EventHandlers => Self::RetainedByEventHandlers,
            FilterKind::Contexts => Self::RetainedByContexts,
            FilterKind::SharedContext => Self::NativeContext(ContextOwner::Shared),
            FilterKind::NoContext => Self::NativeContext(ContextOwner::None),
        }
    }
}

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
        let mut filters: Vec<Filter> = self.kind.iter().map(|&kind| kind.into()).collect();
        if let Some(id) = &self.native_context {
            let node = id.trim_start_matches('@').parse().ok().and_then(|id| heap.snapshot().node_of_id(id));
            let node = node.ok_or_else(|| Error::NotFound { what: "native context", name: id.clone() })?;
            filters.push(Filter::NativeContext(ContextOwner::One(node)));
        }
        let max_id = |file: usize| -> Result<u64> {
            Ok(context.files.snapshot(file)?.heap(context.cancel)?.max_js_id())
        };
        if self.allocated_after.is_some() || self.allocated_before.is_some() {
            if heap.snapshot().meta().dialect.is_some() {
                let message = "only V8 numbers objects in the order of allocation: compare the files instead";
                return Err(Error::bad("allocated_after", message));
            }
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

/// Order of the classes.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum ClassOrder {
    #[default]
    Retained,
    Shallow,
    Count,
    Distance,
    Name,
}

impl ClassOrder {
    fn sort(self, lines: &mut [&StoredClass]) {
        match self {
            Self::Retained => lines.sort_rows_by_key(|line| Reverse(line.retained_bytes)),
            Self::Shallow => lines.sort_rows_by_key(|line| Reverse(line.self_bytes)),
            Self::Count => lines.sort_rows_by_key(|line| Reverse(line.object_count)),
            Self::Distance => lines.sort_rows_by_key(|line| line.distance),
            Self::Name => lines.sort_rows_by(|one, other| one.name.cmp(&other.name)),
        }
    }

    /// Order of a class's objects for this order of the classes; `None` if the objects need no
    /// preparation.
    fn inside(self) -> Option<ObjectOrder> {
        match self {
            Self::Shallow => Some(ObjectOrder::Shallow),
            Self::Distance => Some(ObjectOrder::Distance),
            Self::Name => Some(ObjectOrder::Name),
            Self::Retained | Self::Count => None,
        }
    }
}

/// Classes of the request, in its order.
fn sorted_classes<'a>(list: &List<ClassOrder>, summary: &'a StoredSummary) -> Vec<&'a StoredClass> {
    let text = list.page.text();
    let is_match = |line: &&StoredClass| text.is_empty() || line.name.to_lowercase().contains(&text);
    let mut lines: Vec<&StoredClass> = summary.classes.iter().filter(is_match).collect();
    list.sort().sort(&mut lines);
    if !list.direction().0 {
        lines.reverse();
    }
    lines
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
    /// Bytes of native memory that would be freed with all objects of the class, whatever the
    /// filter is.
    #[serde(skip_serializing_if = "Option::is_none")]
    native_bytes: Option<u64>,
}

fn class_rows(list: &List<ClassOrder>, lines: &[&StoredClass]) -> Vec<ClassRow> {
    let file = &list.file;
    let row = |line: &&StoredClass| ClassRow {
        class: line.name.clone(),
        class_key: line.key.clone(),
        place: line.place.as_deref().map(|place| list.file.view.original_place(place)),
        object_count: line.object_count,
        distance: distance(line.distance).0,
        shallow_bytes: line.self_bytes,
        retained_bytes: line.retained_bytes,
        native_bytes: file.native().map(|native| native.of_class(&line.key)),
    };
    // The lines are in the requested direction.
    list.page.of(lines, Descending(true)).map(row).collect()
}

pub(super) fn summary(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let list: List<ClassOrder> = List::open(context, body)?;
    let file = &list.file;
    let whole = file.summary()?;
    let passing = list.filter().map(|filter| filter.passing(context, file)).transpose()?;
    let summary = passing.as_ref().map_or(whole, |passing| &passing.summary);
    let lines = sorted_classes(&list, summary);
    // The user opens one of these classes next.
    if passing.is_none()
        && list.asks_for_all()
        && let Some(order) = list.sort().inside()
    {
        let classes = lines.iter().map(|line| (line.key.as_str(), line.object_count));
        first_objects::prepare(file, classes, (order, list.direction().0));
    }
    let rows = class_rows(&list, &lines);
    let kinds = list.filter().into_iter().flat_map(|filter| &filter.kind);
    let words = kinds.flat_map(|kind| ["--filter".to_owned(), text_of(kind)]);
    let words: Vec<String> = ["--sort".to_owned(), text_of(&list.sort())].into_iter().chain(words).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    answer_json(&json!({
        "schema": "heapr.view.snapshot.summary/1",
        "command": file.command("summary", &words),
        "total_bytes": whole.statistics.total_bytes,
        "row_count": lines.len(),
        "offset": list.page.offset,
        "rows": rows,
    }))
}

pub(super) fn statistics(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let List { file, .. } = List::<IgnoredAny>::open(context, body)?;
    let command = file.command("statistics", &[]);
    let kinds = file.graph().map(|graph| context.files.host.graph_kinds(graph)).unwrap_or_default();
    if !kinds.is_empty() {
        return answer_json(&json!({
            "schema": "heapr.view.snapshot.statistics/1",
            "command": command,
            "rows": kinds,
        }));
    }
    let rows = file.summary()?.bytes_by_kind();
    let rows = rows.into_iter().map(|(kind, _, bytes)| json!({"kind": kind, "bytes": bytes}));
    answer_json(&json!({
        "schema": "heapr.view.snapshot.statistics/1",
        "command": command,
        "rows": rows.collect::<Vec<_>>(),
    }))
}
