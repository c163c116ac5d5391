//! Suspects for programs.

use std::io::Write;
use std::path::PathBuf;

use heapr_v8::analysis::{Confidence, Doubt, Suspect, Suspects};
use serde_json::{Value, json};

use super::path_text::path_json;
use crate::report::csv::quoted;

pub(super) fn value(files: &[PathBuf], found: &Suspects) -> Value {
    let doubts: Vec<Value> = found
        .doubts
        .iter()
        .map(|doubt| match *doubt {
            Doubt::OtherProgram { snapshot, kept_percent } => {
                json!({ "doubt": "other-program", "snapshot": snapshot, "kept_percent": kept_percent })
            }
            Doubt::OtherNumbering { snapshot } => json!({ "doubt": "other-numbering", "snapshot": snapshot }),
            Doubt::OtherCaptureMode { snapshot } => {
                json!({ "doubt": "other-capture-mode", "snapshot": snapshot })
            }
            _ => json!({ "doubt": "other" }),
        })
        .collect();
    json!({
        "schema": "heapr.snapshot.suspects/1",
        "files": files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
        "growth_bytes": found.growth_bytes,
        "doubts": doubts,
        "suspects": found.suspects.iter().map(suspect_json).collect::<Vec<_>>(),
    })
}

fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "high",
        Confidence::Medium => "medium",
        Confidence::Low => "low",
    }
}

fn suspect_json(suspect: &Suspect) -> Value {
    let collects: Vec<Value> = suspect
        .collects
        .iter()
        .map(|collected| {
            json!({
                "class": collected.class,
                "count": collected.count,
                "bytes": collected.bytes,
                "example_id": collected.example_id,
                "example_text": collected.example_text,
                "example_place": collected.example_place.as_ref().map(|(_, place)| place.to_string()),
            })
        })
        .collect();
    json!({
        "name": suspect.name,
        "confidence": confidence(suspect.confidence),
        "reasons": suspect.reasons,
        "owner_id": suspect.owner_id,
        "owner_class": suspect.owner_class,
        "owner_count": suspect.owner_count,
        "place": suspect.place.as_ref().map(ToString::to_string),
        "growth_bytes": suspect.growth_bytes,
        "growth_count": suspect.growth_count,
        "growth_bytes_at": suspect.growth_bytes_at,
        "retained_bytes_at": suspect.retained_bytes_at,
        "collects": collects,
        "also_held_by": suspect.also_held_by,
        "path": path_json(&suspect.path),
    })
}

pub(super) fn write_csv(out: &mut impl Write, found: &Suspects) -> std::io::Result<()> {
    writeln!(
        out,
        "rank,name,confidence,growth_bytes,growth_count,owner_count,owner_id,owner_class,place,collects"
    )?;
    for (rank, suspect) in found.suspects.iter().enumerate() {
        let place = suspect.place.as_ref().map(ToString::to_string).unwrap_or_default();
        let collects = suspect.collects.first().map(|collected| collected.class.as_str()).unwrap_or_default();
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{}",
            rank + 1,
            quoted(&suspect.name),
            confidence(suspect.confidence),
            suspect.growth_bytes,
            suspect.growth_count,
            suspect.owner_count,
            suspect.owner_id,
            quoted(&suspect.owner_class),
            quoted(&place),
            quoted(collects),
        )?;
    }
    Ok(())
}
