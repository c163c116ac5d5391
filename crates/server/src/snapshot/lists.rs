//! Lists by page: objects of a class, containment, retainers, dominators.

use std::sync::Arc;

use heapr_v8::devtools::RetainersView;
use heapr_v8::view::{FieldOrder, Listed, ObjectOrder, ObjectQuery, ObjectRow, Page};
use serde::Deserialize;
use serde_json::json;

use super::first_objects::{KEPT_ROWS, query_of};
use super::rows::{EdgeRow, HeapObject, edge, object};
use crate::error::{Error, Result};
use crate::request::{Answer, Context, json as answer_json, read};
use crate::snapshot_file::SummaryFilter;
use crate::snapshot_file::{FirstObjects, SnapshotFile};

/// Largest number of rows in an answer.
const ROWS_MAX: usize = 10_000;

/// Request for a list of a snapshot.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ListRequest {
    pub(super) file: usize,
    pub(super) filter: SummaryFilter,
    id: Option<u64>,
    class_key: Option<String>,
    ignore: Vec<u64>,
    sort: Option<String>,
    pub(super) descending: bool,
    pub(super) offset: usize,
    limit: usize,
    r#match: String,
}

impl Default for ListRequest {
    fn default() -> Self {
        Self {
            file: usize::MAX,
            filter: SummaryFilter::default(),
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
    pub(super) fn limit(&self) -> usize {
        self.limit.min(ROWS_MAX)
    }

    /// True if the request has no search text.
    pub(super) fn asks_for_all(&self) -> bool {
        self.r#match.is_empty()
    }

    /// Whether the requested rows are among the cached ones.
    fn is_among_the_first(&self) -> bool {
        self.offset.saturating_add(self.limit()) <= KEPT_ROWS
    }

    pub(super) fn sort(&self) -> &str {
        self.sort.as_deref().unwrap_or("retained")
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.r#match.is_empty() || text.to_lowercase().contains(&self.r#match.to_lowercase())
    }

    /// The page, in the order of the lists.
    fn page(&self) -> Page {
        Page { first: self.offset, count: self.limit() }
    }

    /// Reads a page of a list; a list in ascending order is read from its end.
    fn ask<T>(
        &self,
        file: &SnapshotFile,
        list: impl Fn(Page) -> heapr_v8::Result<Listed<T>>,
    ) -> Result<Listed<T>> {
        let told = |error| file.error(&error);
        if self.descending {
            return list(self.page()).map_err(told);
        }
        let total_count = list(Page { first: 0, count: 0 }).map_err(told)?.total_count as usize;
        let end = total_count.saturating_sub(self.offset);
        let first = end.saturating_sub(self.limit());
        let mut listed = list(Page { first, count: end - first }).map_err(told)?;
        listed.rows.reverse();
        Ok(listed)
    }
}

pub(super) fn open(context: &Context<'_>, body: &[u8]) -> Result<(ListRequest, Arc<SnapshotFile>)> {
    let request: ListRequest = read(body)?;
    let file = context.files.snapshot(request.file)?;
    Ok((request, file))
}

/// Order by its name.
pub(super) fn order(sort: &str) -> Result<ObjectOrder> {
    Ok(match sort {
        "retained" => ObjectOrder::Retained,
        "shallow" => ObjectOrder::Shallow,
        "count" | "id" => ObjectOrder::Id,
        "distance" => ObjectOrder::Distance,
        "name" => ObjectOrder::Name,
        sort => {
            return Err(Error::bad(
                "sort",
                format!("{sort:?} is none of retained, shallow, id, distance, name"),
            ));
        }
    })
}

/// Answer of a list of objects.
pub(super) fn objects_answer(
    file: &SnapshotFile,
    (schema, command): (&str, String),
    offset: usize,
    listed: &Listed<ObjectRow>,
) -> Result<Answer> {
    let rows: Vec<HeapObject> = listed.rows.iter().map(|row| object(file.view.objects(), row)).collect();
    answer_json(&json!({
        "schema": schema, "command": command, "row_count": listed.total_count, "offset": offset, "rows": rows,
    }))
}

pub(super) fn objects(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, file) = open(context, body)?;
    let key = request.class_key.as_deref().ok_or_else(|| Error::bad("class_key", "no class is given"))?;
    let mut classes = file.view.classes_named(key).map_err(|error| file.error(&error))?;
    if classes.is_empty() {
        return Err(Error::NotFound { what: "class", name: key.to_owned() });
    }
    classes.sort_unstable();
    let order = order(request.sort())?;
    let passing = match &request.filter {
        filter if *filter == SummaryFilter::default() => None,
        filter => Some(filter.passing(context, &file)?),
    };
    let wanted = request.r#match.to_lowercase();
    let name_test = |name: &[u8]| String::from_utf8_lossy(name).to_lowercase().contains(&wanted);
    let is_plain = request.asks_for_all() && passing.is_none() && request.is_among_the_first();
    let listed = if is_plain && !file.has_index() {
        let key = (classes, order, request.descending);
        FirstObjects::of(&file, &key, context.cancel)?.listed(&file, request.offset, request.limit())?
    } else {
        let query = ObjectQuery {
            name: if wanted.is_empty() { None } else { Some(&name_test) },
            ..query_of(&classes, passing.as_ref().and_then(|passing| passing.nodes.as_ref()))
        };
        request.ask(&file, |page| file.view.search(&query, order, page))?
    };
    let command = file.command("summary", &["--class", key]);
    objects_answer(&file, ("heapr.view.snapshot.objects/1", command), request.offset, &listed)
}

pub(super) fn containment(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, file) = open(context, body)?;
    let node = request.id.map_or(Ok(file.view.root()), |id| file.node(id))?;
    let order = match request.sort() {
        "retained" => FieldOrder::Retained,
        "object" => FieldOrder::Object,
        sort => return Err(Error::bad("sort", format!("{sort:?} is neither retained nor object"))),
    };
    let listed = request.ask(&file, |page| file.view.children(node, order, page))?;
    let objects = file.view.objects();
    let rows: Vec<EdgeRow> = listed.rows.iter().map(|row| edge(objects, row)).collect();
    answer_json(&json!({
        "schema": "heapr.view.snapshot.containment/1",
        "command": file.command("containment", &[&format!("@{}", objects.id(node))]),
        "row_count": listed.total_count,
        "offset": request.offset,
        "rows": rows,
    }))
}

pub(super) fn retainers(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, file) = open(context, body)?;
    let id = request.id.ok_or_else(|| Error::bad("id", "no object is given"))?;
    let node = file.node(id)?;
    let listed = if request.ignore.is_empty() {
        request.ask(&file, |page| file.view.retainers(node, page))?
    } else {
        // Distances without some objects are computed over the whole graph.
        let heap = file.heap(context.cancel)?;
        let ignored = request.ignore.iter().map(|&id| file.node(id)).collect::<Result<Vec<u32>>>()?;
        let view = RetainersView::new(&heap, &ignored);
        request.ask(&file, |page| file.view.retainers_ignoring(&view, node, page))?
    };
    let rows: Vec<EdgeRow> = listed.rows.iter().map(|row| edge(file.view.objects(), row)).collect();
    answer_json(&json!({
        "schema": "heapr.view.snapshot.retainers/1",
        "command": file.command("retainers", &[&format!("@{id}")]),
        "row_count": listed.total_count,
        "offset": request.offset,
        "rows": rows,
    }))
}

pub(super) fn dominators(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, file) = open(context, body)?;
    let node = request.id.map_or(Ok(file.view.root()), |id| file.node(id))?;
    let listed = request.ask(&file, |page| file.view.dominated(node, page))?;
    let objects = file.view.objects();
    let row = |row: &ObjectRow| object(objects, row).with_children(objects.dominated_by_count(row.node));
    let rows: Vec<HeapObject> = listed.rows.iter().map(row).collect();
    answer_json(&json!({
        "schema": "heapr.view.snapshot.dominators/1",
        "command": file.command("dominators", &[&format!("@{}", objects.id(node))]),
        "row_count": listed.total_count,
        "offset": request.offset,
        "rows": rows,
    }))
}
