//! Answers as tables and JSON, for whoever prints or serves them.

use heapr_table::{Cell, Column, Table, row};
use serde_json::{Value, json};

use super::{Collected, Confidence, Doubt, LargeOwner, PathStep, Suspect, Suspects};
use crate::devtools::Heap;

impl Confidence {
    /// `high`, `medium` or `low`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// The steps of a path, from the root. Names are as long as the program's strings: `shown` makes of
/// each what is to be told.
#[must_use]
pub fn path_json(path: &[PathStep], shown: fn(&str) -> String) -> Value {
    let step = |step: &PathStep| {
        json!({
            "name": shown(&step.name),
            "id": step.id,
            "held_as": step.held_as,
            "place": step.place.as_ref().map(ToString::to_string),
        })
    };
    path.iter().map(step).collect()
}

/// Who grew, with what speaks against the comparison.
#[must_use]
pub fn suspect_table(
    schema: &'static str,
    files: &[String],
    found: &Suspects,
    shown: fn(&str) -> String,
) -> Table {
    let columns = [
        Column::number("rank", "").hidden(),
        Column::text("name", "Name"),
        Column::text("confidence", "Confidence"),
        Column::bytes("growth_bytes", "Growth"),
        Column::count("growth_count", "Objects"),
        Column::count("owner_count", "Owners"),
        Column::id("owner_id", "Owner"),
        Column::text("owner_class", "Class"),
        Column::text("place", "Made at"),
        Column::text("collects", "Collects"),
        Column::detail("reasons"),
        Column::detail("growth_bytes_at"),
        Column::detail("retained_bytes_at"),
        Column::detail("also_held_by"),
        Column::detail("path"),
    ];
    let row = |(at, suspect): (usize, &Suspect)| {
        let first = suspect.collects.first().map_or("", |collected| collected.class.as_str());
        row![
            at + 1,
            suspect.name.as_str(),
            suspect.confidence.word(),
            suspect.growth_bytes,
            suspect.growth_count,
            suspect.owner_count,
            suspect.owner_id,
            suspect.owner_class.as_str(),
            suspect.place.as_ref().map(ToString::to_string),
            Cell::worded(suspect.collects.iter().map(collected_json).collect::<Value>(), first),
            json!(suspect.reasons),
            json!(suspect.growth_bytes_at),
            json!(suspect.retained_bytes_at),
            json!(suspect.also_held_by),
            path_json(&suspect.path, shown),
        ]
    };
    let mut table = Table::of(schema, &columns, found.suspects.iter().enumerate().map(row));
    table.call_rows("suspects");
    table.fact("files", files);
    table.fact("growth_bytes", found.growth_bytes);
    table.fact("doubts", found.doubts.iter().map(doubt_json).collect::<Vec<_>>());
    table
}

/// What is large in one snapshot.
#[must_use]
pub fn owner_table(
    schema: &'static str,
    heap: &Heap,
    owners: &[LargeOwner],
    shown: fn(&str) -> String,
) -> Table {
    let columns = [
        Column::number("rank", "").hidden(),
        Column::text("name", "Name"),
        Column::id("id", "Id"),
        Column::bytes("retained_bytes", "Retained"),
        Column::count("count", "Objects"),
        Column::text("class", "Class"),
        Column::count("class_count", "Of it"),
        Column::text("place", "Made at"),
        Column::detail("path"),
    ];
    let row = |(at, owner): (usize, &LargeOwner)| {
        row![
            at + 1,
            shown(&owner.called.whole(None)),
            heap.snapshot().id(owner.node),
            owner.retained_bytes,
            owner.count,
            owner.class.as_str(),
            owner.class_count,
            owner.called.place.as_ref().map(ToString::to_string),
            path_json(&owner.path, shown),
        ]
    };
    let mut table = Table::of(schema, &columns, owners.iter().enumerate().map(row));
    table.call_rows("owners");
    table
}

fn doubt_json(doubt: &Doubt) -> Value {
    match *doubt {
        Doubt::OtherProgram { snapshot, kept_percent } => {
            json!({ "doubt": "other-program", "snapshot": snapshot, "kept_percent": kept_percent })
        }
        Doubt::OtherNumbering { snapshot } => json!({ "doubt": "other-numbering", "snapshot": snapshot }),
        Doubt::WrongOrder { snapshot } => json!({ "doubt": "wrong-order", "snapshot": snapshot }),
        Doubt::EntriesMissing { snapshot } => json!({ "doubt": "entries-missing", "snapshot": snapshot }),
        Doubt::OtherCaptureMode { snapshot } => {
            json!({ "doubt": "other-capture-mode", "snapshot": snapshot })
        }
    }
}

fn collected_json(collected: &Collected) -> Value {
    json!({
        "class": collected.class,
        "count": collected.count,
        "bytes": collected.bytes,
        "example_id": collected.example_id,
        "example_text": collected.example_text,
        "example_allocated_by":
            collected.example_allocated_by.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "example_place": collected.example_place.as_ref().map(|(_, place)| place.to_string()),
    })
}
