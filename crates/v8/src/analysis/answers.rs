//! Answers as tables and JSON, for the command line and the server.

use heapr_table::{Cell, Column, Table, row};
use serde_json::{Value, json};

use super::{Collected, Confidence, Doubt, LargeOwner, PathStep, Suspect, Suspects};
use crate::objects::Objects;

impl Confidence {
    /// Name of the confidence: `high`, `medium` or `low`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// Converts a path's steps, root first, to JSON. Names can be as long as the program's strings;
/// `shown` shortens each for display.
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

/// Table of the owners that grew, with the doubts about the comparison.
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

/// Table of the objects that retain most in one snapshot.
#[must_use]
pub fn owner_table<H: Objects + ?Sized>(
    schema: &'static str,
    heap: &H,
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
            heap.id(owner.node),
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

impl Doubt {
    /// Name of the doubt in JSON, and key of its sentence in the web page.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::OtherProgram { .. } => "other-program",
            Self::OtherNumbering { .. } => "other-numbering",
            Self::WrongOrder { .. } => "wrong-order",
            Self::EntriesMissing { .. } => "entries-missing",
            Self::OtherCaptureMode { .. } => "other-capture-mode",
        }
    }

    /// Index of the later snapshot, from 0.
    #[must_use]
    pub fn snapshot(&self) -> usize {
        match *self {
            Self::OtherProgram { snapshot, .. }
            | Self::OtherNumbering { snapshot }
            | Self::WrongOrder { snapshot }
            | Self::EntriesMissing { snapshot }
            | Self::OtherCaptureMode { snapshot } => snapshot,
        }
    }
}

fn doubt_json(doubt: &Doubt) -> Value {
    let mut told = json!({ "doubt": doubt.word(), "snapshot": doubt.snapshot() });
    if let Doubt::OtherProgram { kept_percent, .. } = *doubt {
        told["kept_percent"] = kept_percent.into();
    }
    told
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the doubt after `doubt`, so that a test visits each variant. A new variant does not
    /// compile until it is listed here.
    fn after(doubt: Option<&Doubt>) -> Option<Doubt> {
        let snapshot = 1;
        Some(match doubt {
            None => Doubt::OtherProgram { snapshot, kept_percent: 3 },
            Some(Doubt::OtherProgram { .. }) => Doubt::OtherNumbering { snapshot },
            Some(Doubt::OtherNumbering { .. }) => Doubt::WrongOrder { snapshot },
            Some(Doubt::WrongOrder { .. }) => Doubt::EntriesMissing { snapshot },
            Some(Doubt::EntriesMissing { .. }) => Doubt::OtherCaptureMode { snapshot },
            Some(Doubt::OtherCaptureMode { .. }) => return None,
        })
    }

    #[test]
    fn the_page_has_a_sentence_for_every_doubt() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/src/snapshot/suspects-view.tsx");
        let page = std::fs::read_to_string(page).unwrap();
        let mut doubt = after(None);
        let mut count = 0;
        while let Some(one) = doubt {
            let key = format!("'{}': '", one.word());
            assert!(page.contains(&key), "ui/src/snapshot/suspects-view.tsx has no {key}");
            assert_eq!(doubt_json(&one)["snapshot"], 1);
            count += 1;
            doubt = after(Some(&one));
        }
        assert_eq!(count, 5);
    }
}
