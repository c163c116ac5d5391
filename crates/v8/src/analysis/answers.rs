//! Answers in JSON, for whoever prints or serves them.

use serde_json::{Value, json};

use super::{Confidence, Doubt, PathStep, Suspect, Suspects};

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

/// Who grew, in the words of schema `heapr.snapshot.suspects/1`, with what speaks against the
/// comparison.
#[must_use]
pub fn suspects_json(schema: &str, files: &[String], found: &Suspects, shown: fn(&str) -> String) -> Value {
    json!({
        "schema": schema,
        "files": files,
        "growth_bytes": found.growth_bytes,
        "doubts": found.doubts.iter().map(doubt_json).collect::<Vec<_>>(),
        "suspects": found.suspects.iter().map(|suspect| suspect_json(suspect, shown)).collect::<Vec<_>>(),
    })
}

fn doubt_json(doubt: &Doubt) -> Value {
    match *doubt {
        Doubt::OtherProgram { snapshot, kept_percent } => {
            json!({ "doubt": "other-program", "snapshot": snapshot, "kept_percent": kept_percent })
        }
        Doubt::OtherNumbering { snapshot } => json!({ "doubt": "other-numbering", "snapshot": snapshot }),
        Doubt::WrongOrder { snapshot } => json!({ "doubt": "wrong-order", "snapshot": snapshot }),
        Doubt::OtherCaptureMode { snapshot } => {
            json!({ "doubt": "other-capture-mode", "snapshot": snapshot })
        }
    }
}

fn suspect_json(suspect: &Suspect, shown: fn(&str) -> String) -> Value {
    let collects = suspect.collects.iter().map(|collected| {
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
    });
    json!({
        "name": suspect.name,
        "confidence": suspect.confidence.word(),
        "reasons": suspect.reasons,
        "owner_id": suspect.owner_id,
        "owner_class": suspect.owner_class,
        "owner_count": suspect.owner_count,
        "place": suspect.place.as_ref().map(ToString::to_string),
        "growth_bytes": suspect.growth_bytes,
        "growth_count": suspect.growth_count,
        "growth_bytes_at": suspect.growth_bytes_at,
        "retained_bytes_at": suspect.retained_bytes_at,
        "collects": collects.collect::<Vec<_>>(),
        "also_held_by": suspect.also_held_by,
        "path": path_json(&suspect.path, shown),
    })
}
