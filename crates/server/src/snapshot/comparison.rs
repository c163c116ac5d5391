//! Two snapshots compared by class.

use std::cmp::Reverse;
use std::sync::Arc;

use heapr_table::SortRows as _;
use heapr_v8::analysis::{ClassDifference, Comparison, MatchedBy, ObjectDifference, compare, compare_class};
use heapr_v8::devtools::ScriptPaths;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rows::heap_object;
use crate::command_line::command;
use crate::error::{Error, Result};
use crate::page_rows::{Descending, PageRows};
use crate::request::{Answer, Context, json as answer_json, read_with};
use crate::snapshot_file::SnapshotFile;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiffRequest {
    before: usize,
    after: usize,
    #[serde(default)]
    class_key: Option<String>,
    #[serde(default)]
    sort: Option<DiffOrder>,
    #[serde(default)]
    descending: Descending,
}

/// Column by which classes are sorted.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DiffOrder {
    #[default]
    BytesDelta,
    CountDelta,
    NewBytes,
    DeletedBytes,
    NewCount,
    DeletedCount,
    RefilledCount,
    Name,
}

impl DiffOrder {
    fn sort(self, lines: &mut [&ClassDifference]) {
        match self {
            Self::BytesDelta => lines.sort_rows_by_key(|line| Reverse(line.bytes_delta())),
            Self::CountDelta => lines.sort_rows_by_key(|line| Reverse(line.count_delta())),
            Self::NewBytes => lines.sort_rows_by_key(|line| Reverse(line.new_bytes)),
            Self::DeletedBytes => lines.sort_rows_by_key(|line| Reverse(line.deleted_bytes)),
            Self::NewCount => lines.sort_rows_by_key(|line| Reverse(line.new_count)),
            Self::DeletedCount => lines.sort_rows_by_key(|line| Reverse(line.deleted_count)),
            Self::RefilledCount => lines.sort_rows_by_key(|line| Reverse(line.refilled_count)),
            Self::Name => {
                lines.sort_rows_by(|one, other| one.class.name_text().cmp(&other.class.name_text()))
            }
        }
    }
}

/// Both files and their comparison.
struct Compared {
    before: Arc<SnapshotFile>,
    after: Arc<SnapshotFile>,
    comparison: Arc<Comparison>,
}

impl Compared {
    fn open(context: &Context<'_>, request: &DiffRequest) -> Result<Self> {
        let before = context.files.snapshot(request.before)?;
        let after = context.files.snapshot(request.after)?;
        let generation = |file: usize| context.files.entry(file).map(|entry| (file, entry.generation()));
        let key = [generation(request.before)?, generation(request.after)?];
        let comparison = context.files.comparisons.get(&key, context.cancel, |_| {
            let heaps = (before.heap(context.cancel)?, after.heap(context.cancel)?);
            Ok(compare(&heaps.0, &heaps.1))
        })?;
        Ok(Self { before, after, comparison })
    }

    fn command(&self, rest: &[&str]) -> String {
        let paths = [&self.before, &self.after].map(|file| file.path.display().to_string());
        let words: Vec<&str> =
            ["snapshot", "diff", &paths[0], &paths[1]].into_iter().chain(rest.iter().copied()).collect();
        command(&words)
    }

    fn warnings(&self) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        if self.comparison.matched_by == MatchedBy::Place {
            warnings.push(
                "the snapshots number their objects differently (V8 does so anew after each connection of an inspector, and for \
                 each thread and process): objects were matched by their places instead"
                    .to_owned(),
            );
        }
        if self.comparison.is_reversed {
            warnings
                .push("the second snapshot is the older one: they are given in the wrong order".to_owned());
        }
        if self.before.summary()?.exposes_internals != self.after.summary()?.exposes_internals {
            warnings.push(
                "the snapshots were taken in different ways: one exposes V8's internal objects, so sizes differ without any \
                 change"
                    .to_owned(),
            );
        }
        Ok(warnings)
    }
}

/// New and deleted objects of a class.
#[derive(Debug, Serialize)]
struct ClassDiffRow {
    class: String,
    class_key: String,
    /// Location of the constructor.
    place: Option<String>,
    new_count: u64,
    deleted_count: u64,
    count_delta: i64,
    new_bytes: u64,
    deleted_bytes: u64,
    bytes_delta: i64,
    /// Objects that have nothing of their earlier contents; `None` where contents tell nothing.
    refilled_count: Option<u64>,
}

pub(super) fn diff(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, page): (DiffRequest, PageRows) = read_with(body)?;
    let compared = Compared::open(context, &request)?;
    let wanted = page.text();
    let tells = compared.comparison.do_contents_tell();
    let mut lines: Vec<&ClassDifference> = compared
        .comparison
        .classes
        .iter()
        .filter(|line| tells || line.new_count + line.deleted_count > 0)
        .filter(|line| wanted.is_empty() || line.class.name_text().to_lowercase().contains(&wanted))
        .collect();
    request.sort.unwrap_or_default().sort(&mut lines);
    let paths: ScriptPaths = compared.after.view.objects().script_paths();
    let row = |line: &&ClassDifference| ClassDiffRow {
        class: line.class.name_text().into_owned(),
        class_key: line.class.key(),
        place: line.class.location.map(|(script_id, line, column)| paths.place_at(script_id, line, column)),
        new_count: line.new_count,
        deleted_count: line.deleted_count,
        count_delta: line.count_delta(),
        new_bytes: line.new_bytes,
        deleted_bytes: line.deleted_bytes,
        bytes_delta: line.bytes_delta(),
        refilled_count: tells.then_some(line.refilled_count),
    };
    let rows: Vec<ClassDiffRow> = page.of(&lines, request.descending).map(row).collect();
    answer_json(&json!({
        "schema": "heapr.view.snapshot.diff/1",
        "command": compared.command(&[]),
        "warnings": compared.warnings()?,
        "kept_count": compared.comparison.kept_count,
        "matched_by": compared.comparison.matched_by.key(),
        "by_address_count": tells.then_some(compared.comparison.by_address_count),
        "row_count": lines.len(),
        "offset": page.offset,
        "rows": rows,
    }))
}

pub(super) fn diff_objects(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, page): (DiffRequest, PageRows) = read_with(body)?;
    let compared = Compared::open(context, &request)?;
    let key = request.class_key.as_deref().ok_or_else(|| Error::bad("class_key", "no class is given"))?;
    let line = compared
        .comparison
        .classes
        .iter()
        .find(|line| line.class.key() == key)
        .ok_or_else(|| Error::NotFound { what: "class with a difference", name: key.to_owned() })?;
    let (before, after) = (compared.before.heap(context.cancel)?, compared.after.heap(context.cancel)?);
    let mut objects = compare_class(&before, &after, compared.comparison.matched_by, &line.class);
    // New objects first, and of each kind the largest first.
    objects.sort_rows_by_key(|&object| match object {
        ObjectDifference::New(node) => (0, Reverse(after.snapshot().self_bytes(node))),
        ObjectDifference::Deleted(node) => (1, Reverse(before.snapshot().self_bytes(node))),
    });
    let rows: Vec<Value> = page
        .of(&objects, Descending::default())
        .map(|&object| {
            let (change, heap, node) = match object {
                ObjectDifference::New(node) => ("new", &after, node),
                ObjectDifference::Deleted(node) => ("deleted", &before, node),
            };
            let mut row = serde_json::to_value(heap_object(heap, node)).unwrap_or_default();
            row["change"] = change.into();
            row
        })
        .collect();
    answer_json(&json!({
        "schema": "heapr.view.snapshot.diff-objects/1",
        "command": compared.command(&["--class", key]),
        "row_count": objects.len(),
        "offset": page.offset,
        "rows": rows,
    }))
}
