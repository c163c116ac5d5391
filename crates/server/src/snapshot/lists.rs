//! Lists by page: objects of a class, containment, retainers, dominators.

use std::sync::Arc;

use heapr_v8::devtools::RetainersView;
use heapr_v8::view::{FieldOrder, Listed, ObjectOrder, ObjectQuery, ObjectRow, Page};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::json;

use super::first_objects::{KEPT_ROWS, query_of};
use super::rows::{EdgeRow, HeapObject, edge, object};
use crate::error::{Error, Result};
use crate::page_rows::{Descending, PageRows};
use crate::request::{Answer, Context, json as answer_json, read_with};
use crate::snapshot_file::{FirstObjects, SnapshotFile, SummaryFilter};

/// Request for a list of a snapshot; `S`: its orders.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ListRequest<S> {
    file: usize,
    filter: SummaryFilter,
    id: Option<u64>,
    class_key: Option<String>,
    ignore: Vec<u64>,
    sort: Option<S>,
    descending: Descending,
}

impl<S> Default for ListRequest<S> {
    fn default() -> Self {
        Self {
            file: usize::MAX,
            filter: SummaryFilter::default(),
            id: None,
            class_key: None,
            ignore: Vec::new(),
            sort: None,
            descending: Descending::default(),
        }
    }
}

/// Order of objects.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ObjectSort {
    #[default]
    Retained,
    Shallow,
    #[serde(alias = "count")]
    Id,
    Distance,
    Name,
}

impl From<ObjectSort> for ObjectOrder {
    fn from(sort: ObjectSort) -> Self {
        match sort {
            ObjectSort::Retained => Self::Retained,
            ObjectSort::Shallow => Self::Shallow,
            ObjectSort::Id => Self::Id,
            ObjectSort::Distance => Self::Distance,
            ObjectSort::Name => Self::Name,
        }
    }
}

/// Order of fields.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FieldSort {
    #[default]
    Retained,
    Object,
}

impl From<FieldSort> for FieldOrder {
    fn from(sort: FieldSort) -> Self {
        match sort {
            FieldSort::Retained => Self::Retained,
            FieldSort::Object => Self::Object,
        }
    }
}

/// Requested list, with its opened snapshot.
pub(super) struct List<S> {
    request: ListRequest<S>,
    pub(super) page: PageRows,
    pub(super) file: Arc<SnapshotFile>,
}

impl<S: DeserializeOwned + Default + Copy> List<S> {
    pub(super) fn open(context: &Context<'_>, body: &[u8]) -> Result<Self> {
        let (request, page): (ListRequest<S>, PageRows) = read_with(body)?;
        let file = context.files.snapshot(request.file)?;
        Ok(Self { request, page, file })
    }

    pub(super) fn sort(&self) -> S {
        self.request.sort.unwrap_or_default()
    }
}

impl<S> List<S> {
    pub(super) fn direction(&self) -> Descending {
        self.request.descending
    }

    /// Filter of the objects; `None`: all pass.
    pub(super) fn filter(&self) -> Option<&SummaryFilter> {
        Some(&self.request.filter).filter(|filter| **filter != SummaryFilter::default())
    }

    /// True if the request has no search text.
    pub(super) fn asks_for_all(&self) -> bool {
        self.page.r#match.is_empty()
    }

    /// Whether the requested rows are among the cached ones.
    fn is_among_the_first(&self) -> bool {
        self.page.offset.saturating_add(self.page.limit()) <= KEPT_ROWS
    }

    /// Node of the requested object; the root by default.
    fn node(&self) -> Result<u32> {
        self.request.id.map_or(Ok(self.file.view.root()), |id| self.file.node(id))
    }

    /// Reads the requested page of a list; a list in ascending order is read from its end.
    fn rows<T>(&self, list: impl Fn(Page) -> heapr_v8::Result<Listed<T>>) -> Result<Listed<T>> {
        let told = |error| self.file.error(&error);
        let (offset, limit) = (self.page.offset, self.page.limit());
        if self.request.descending.0 {
            return list(Page { first: offset, count: limit }).map_err(told);
        }
        let total_count = list(Page { first: 0, count: 0 }).map_err(told)?.total_count as usize;
        let end = total_count.saturating_sub(offset);
        let first = end.saturating_sub(limit);
        let mut listed = list(Page { first, count: end - first }).map_err(told)?;
        listed.rows.reverse();
        Ok(listed)
    }
}

/// Answer of a list of objects.
pub(super) fn objects_answer(
    file: &SnapshotFile,
    (schema, command): (&str, Option<String>),
    offset: usize,
    listed: &Listed<ObjectRow>,
) -> Result<Answer> {
    let rows: Vec<HeapObject> = listed.rows.iter().map(|row| object(file, row)).collect();
    answer_json(&json!({
        "schema": schema, "command": command, "row_count": listed.total_count, "offset": offset, "rows": rows,
    }))
}

pub(super) fn objects(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let list: List<ObjectSort> = List::open(context, body)?;
    let List { request, page, file } = &list;
    let key = request.class_key.as_deref().ok_or_else(|| Error::bad("class_key", "no class is given"))?;
    let mut classes = file.view.classes_named(key).map_err(|error| file.error(&error))?;
    if classes.is_empty() {
        return Err(Error::NotFound { what: "class", name: key.to_owned() });
    }
    classes.sort_unstable();
    let order = ObjectOrder::from(list.sort());
    let passing = list.filter().map(|filter| filter.passing(context, file)).transpose()?;
    let wanted = page.text();
    let name_test = |name: &[u8]| String::from_utf8_lossy(name).to_lowercase().contains(&wanted);
    let is_plain = list.asks_for_all() && passing.is_none() && list.is_among_the_first();
    let listed = if is_plain && !file.has_index() {
        let key = (classes, order, request.descending.0);
        FirstObjects::of(file, &key, context.cancel)?.listed(file, page.offset, page.limit())?
    } else {
        let query = ObjectQuery {
            name: if wanted.is_empty() { None } else { Some(&name_test) },
            ..query_of(&classes, passing.as_ref().and_then(|passing| passing.nodes.as_ref()))
        };
        list.rows(|page| file.view.search(&query, order, page))?
    };
    let command = file.command("summary", &["--class", key]);
    objects_answer(file, ("heapr.view.snapshot.objects/1", command), page.offset, &listed)
}

pub(super) fn containment(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let list: List<FieldSort> = List::open(context, body)?;
    let file = &list.file;
    let node = list.node()?;
    let listed = list.rows(|page| file.view.children(node, list.sort().into(), page))?;
    let objects = file.view.objects();
    let rows: Vec<EdgeRow> = listed.rows.iter().map(|row| edge(file, row)).collect();
    answer_json(&json!({
        "schema": "heapr.view.snapshot.containment/1",
        "command": file.command("containment", &[&format!("@{}", objects.id(node))]),
        "row_count": listed.total_count,
        "offset": list.page.offset,
        "rows": rows,
    }))
}

pub(super) fn retainers(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    // The list has one order.
    let list: List<IgnoredAny> = List::open(context, body)?;
    let List { request, page, file } = &list;
    let id = request.id.ok_or_else(|| Error::bad("id", "no object is given"))?;
    let node = file.node(id)?;
    let listed = if request.ignore.is_empty() {
        list.rows(|page| file.view.retainers(node, page))?
    } else {
        // Distances without some objects are computed over the whole graph.
        let heap = file.heap(context.cancel)?;
        let ignored = request.ignore.iter().map(|&id| file.node(id)).collect::<Result<Vec<u32>>>()?;
        let view = RetainersView::new(&heap, &ignored);
        list.rows(|page| file.view.retainers_ignoring(&view, node, page))?
    };
    let rows: Vec<EdgeRow> = listed.rows.iter().map(|row| edge(file, row)).collect();
    answer_json(&json!({
        "schema": "heapr.view.snapshot.retainers/1",
        "command": file.command("retainers", &[&format!("@{id}")]),
        "row_count": listed.total_count,
        "offset": page.offset,
        "rows": rows,
    }))
}

pub(super) fn dominators(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    // The list has one order.
    let list: List<IgnoredAny> = List::open(context, body)?;
    let file = &list.file;
    let node = list.node()?;
    let listed = list.rows(|page| file.view.dominated(node, page))?;
    let objects = file.view.objects();
    let row = |row: &ObjectRow| object(file, row).with_children(objects.dominated_by_count(row.node));
    let rows: Vec<HeapObject> = listed.rows.iter().map(row).collect();
    answer_json(&json!({
        "schema": "heapr.view.snapshot.dominators/1",
        "command": file.command("dominators", &[&format!("@{}", objects.id(node))]),
        "row_count": listed.total_count,
        "offset": list.page.offset,
        "rows": rows,
    }))
}
