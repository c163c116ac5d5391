//! Suspects for programs.

use std::io::Write;
use std::path::PathBuf;

use heapr_v8::analysis::{Suspects, suspects_json};
use serde_json::Value;

use heapr_table::csv::quoted;

pub(super) fn value(files: &[PathBuf], found: &Suspects) -> Value {
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    suspects_json("heapr.snapshot.suspects/1", &files, found, str::to_owned)
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
            suspect.confidence.word(),
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
