//! Suspects in plain words.

use std::io::Write;
use std::path::PathBuf;

use heapr_v8::analysis::{Collected, Confidence, Doubt, Suspect, Suspects};

use super::path_text::path_lines;
use crate::plain_text::one_line;
use heapr_table::quantity::{bytes, count, plural, signed_bytes};

/// Steps shown of the paths to all suspects but the first.
const END_OF_PATH: usize = 5;

pub(super) fn write(out: &mut impl Write, files: &[PathBuf], found: &Suspects) -> std::io::Result<()> {
    for doubt in &found.doubts {
        writeln!(out, "{}", doubt_in_words(files, *doubt))?;
        writeln!(out)?;
    }
    writeln!(
        out,
        "{} from {} to {}{}",
        signed_bytes(i128::from(found.growth_bytes)),
        files.first().map(|file| file.display().to_string()).unwrap_or_default(),
        files.last().map(|file| file.display().to_string()).unwrap_or_default(),
        found.left_out.as_ref().map(|words| format!(", {words}")).unwrap_or_default(),
    )?;
    if found.suspects.iter().all(|suspect| suspect.confidence == Confidence::Low) {
        writeln!(out, "nothing is likely to be a leak")?;
    }
    for (number, suspect) in found.suspects.iter().enumerate() {
        writeln!(out)?;
        write_suspect(out, number + 1, suspect)?;
    }
    Ok(())
}

fn doubt_in_words(files: &[PathBuf], doubt: Doubt) -> String {
    let name =
        |snapshot: usize| files.get(snapshot).map(|file| file.display().to_string()).unwrap_or_default();
    let first = name(0);
    match doubt {
        Doubt::OtherProgram { snapshot, kept_percent } => format!(
            "{} has only {kept_percent} % of the objects of {first}: they are of different programs or threads, and \
             what follows means little",
            name(snapshot)
        ),
        Doubt::OtherNumbering { snapshot } => format!(
            "{} numbers its objects otherwise than {first} (each connection to a process, and each process, has its \
             own ids): they were matched by their places",
            name(snapshot)
        ),
        Doubt::WrongOrder { snapshot } => format!(
            "{} is older than {first}: the snapshots are given in the wrong order, and what shrank is said to grow",
            name(snapshot)
        ),
        Doubt::EntriesMissing { snapshot } => format!(
            "{} has no references from Maps and Sets to their entries (Bun writes none): no way leads to what they \
             keep, and its owner is told by the size of a table",
            name(snapshot)
        ),
        Doubt::OtherCaptureMode { snapshot } => format!(
            "only one of {first} and {} shows the engine's internal objects (exposeInternals): sizes do not compare",
            name(snapshot)
        ),
        _ => "the snapshots may not compare".to_owned(),
    }
}

fn write_suspect(out: &mut impl Write, number: usize, suspect: &Suspect) -> std::io::Result<()> {
    let confidence = match suspect.confidence {
        Confidence::High => "almost certainly a leak",
        Confidence::Medium => "likely a leak",
        Confidence::Low => "probably not a leak",
    };
    writeln!(out, "{number}. {}: {confidence}", one_line(&suspect.name))?;
    let owners = match suspect.owner_count {
        0 | 1 => String::new(),
        more => format!(" in {} owners", count(more)),
    };
    let steps: Vec<String> = suspect.growth_by_interval().map(signed_bytes).collect();
    writeln!(out, "   grew by    {}{owners}", steps.join(", then "))?;
    let collected: Vec<String> = suspect.collects.iter().map(collected_in_words).collect();
    for (line, text) in collected.iter().enumerate() {
        writeln!(out, "   {:10} {text}", if line == 0 { "collects" } else { "" })?;
    }
    let place = suspect.place.as_ref().map(|place| one_line(&place.to_string()));
    if let Some(place) = place {
        writeln!(out, "   made at    {place}")?;
    }
    let retained: Vec<String> = suspect
        .retained_bytes_at
        .iter()
        .map(|retained| retained.map_or_else(|| "not there".to_owned(), bytes))
        .collect();
    let largest = if suspect.owner_count > 1 { "the largest of them, " } else { "" };
    let class = one_line(&suspect.owner_class);
    writeln!(out, "   retains    {} ({largest}{class} @{})", retained.join(" -> "), suspect.owner_id)?;
    for other in &suspect.also_held_by {
        writeln!(out, "   also in    {}", one_line(other))?;
    }
    writeln!(out, "   because    it {}", suspect.reasons.join("; it "))?;
    let mut lines = path_lines(&suspect.path);
    // The path to the first suspect is shown whole; of the others the end says most.
    if number > 1 && lines.len() > END_OF_PATH {
        lines.drain(..lines.len() - END_OF_PATH);
        lines.insert(0, "…".to_owned());
    }
    for (line, text) in lines.into_iter().enumerate() {
        writeln!(out, "   {:10} {text}", if line == 0 { "held by" } else { "" })?;
    }
    Ok(())
}

fn collected_in_words(collected: &Collected) -> String {
    let mut text = format!(
        "{} more of {} ({})",
        count(u64::try_from(collected.count).unwrap_or(0)),
        one_line(&collected.class),
        bytes(u64::try_from(collected.bytes).unwrap_or(0))
    );
    if let Some(id) = collected.example_id {
        text.push_str(&format!(", one is @{id}"));
    }
    if let Some(example) = &collected.example_text {
        text.push_str(&format!(" \"{}\"", one_line(example)));
    }
    if let Some((name, place)) = &collected.example_place {
        let name = if *name == collected.class { "made".to_owned() } else { one_line(name) };
        text.push_str(&format!(", {name} at {}", one_line(&place.to_string())));
    }
    if let Some(function) = collected.example_allocated_by.first() {
        text.push_str(&format!(", allocated by {}", one_line(&function.to_string())));
    }
    text
}

/// Formats a number of objects.
pub(super) fn objects(number: u64) -> String {
    plural(number, "object")
}
