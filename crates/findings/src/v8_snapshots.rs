//! Findings of V8's heap snapshots: objects that grow from one to the next, and duplicated strings.

use heapr_query::Confidence;
use heapr_table::plain::is_harmless;
use heapr_table::quantity::{bytes, count, plural, signed_bytes};
use heapr_v8::analysis::{self, DuplicatedString, Naming, PathStep, Place, Suspect};
use heapr_v8::devtools::Heap;

use crate::finding::{Finding, Kind, OwnFrame, quoted};
use crate::found::{Found, NoGrowth, ranked, verdict};
use crate::unread::Sight;

/// Largest number of suspects examined.
const SUSPECTS_MAX: usize = 5;
/// Smallest amount of duplicates that is reported: in bytes, and as a share of the heap.
const DUPLICATES_MIN_BYTES: u64 = 256 << 10;
const DUPLICATES_MIN_SHARE: f64 = 0.03;
/// Largest number of strings examined.
const TEXTS_MAX: usize = 100;
/// Root of the objects of Python that no variable leads to and that have more references than those
/// of other objects.
const NATIVE_HOLDER: &str = "(held by native code)";
/// Half of the largest number of characters shown of a name or string.
const TEXT_SHOWN: usize = 40;

/// Finds what stands out in one snapshot, or in several of one program in order of time. `files`
/// are their names in commands.
#[must_use]
pub fn of_v8_snapshots(heaps: &[&Heap], files: &[String]) -> Found {
    let Some(last) = heaps.last() else { return Found::default() };
    let words: Vec<String> = files.iter().map(|file| quoted(file)).collect();
    let last_file = words.last().map_or("", String::as_str);
    let mut findings: Vec<Finding> = Vec::new();
    if heaps.len() > 1 {
        let found = analysis::suspects(heaps, SUSPECTS_MAX);
        let command = format!("heapr snapshot suspects {}", words.join(" "));
        findings.extend(found.suspects.iter().filter_map(|suspect| growth(suspect, &command)));
    }
    findings.extend(duplicates(last, last_file));
    let largest = || {
        let naming = Naming::of(*last);
        let owner = analysis::large_owners(*last, &naming, 1).into_iter().next()?;
        Some(format!(
            "The largest collection is {}: it retains {} in {} of {}.",
            shortened(&owner.called.whole(None)),
            bytes(owner.retained_bytes),
            plural(owner.class_count, "object"),
            shortened(&owner.class)
        ))
    };
    let no_growth = if heaps.len() > 1 { NoGrowth::Seen } else { NoGrowth::OneMoment };
    let verdict = verdict(&findings, Sight::Whole, no_growth, largest);
    Found { findings: ranked(findings), verdict, ..Found::default() }
}

fn growth(suspect: &Suspect, command: &str) -> Option<Finding> {
    let confidence = match suspect.confidence {
        analysis::Confidence::High => Confidence::High,
        analysis::Confidence::Medium => Confidence::Medium,
        // Low confidence means only that the object grew.
        analysis::Confidence::Low => return None,
    };
    let steps: Vec<String> = suspect.growth_by_interval().map(signed_bytes).collect();
    let collects = suspect.collects.first().map(|collected| {
        format!(
            " and collects {} more of {}",
            count(u64::try_from(collected.count).unwrap_or(0)),
            shortened(&collected.class)
        )
    });
    let made = suspect.place.as_ref().map(|place| format!(", made at {place}")).unwrap_or_default();
    let mut evidence = vec![format!("it {}", suspect.reasons.join("; it "))];
    let retained: Vec<String> = suspect
        .retained_bytes_at
        .iter()
        .map(|retained| retained.map_or_else(|| "not there".to_owned(), bytes))
        .collect();
    evidence.push(format!("it retains {} (@{})", retained.join(", then "), suspect.owner_id));
    evidence.extend(
        suspect
            .path
            .iter()
            .map(|step| shortened(&step.name))
            .reduce(|path, step| path + " > " + &step)
            .map(|path| format!("held by {path}")),
    );
    Some(Finding {
        kind: Kind::Growth,
        sentence: format!(
            "Memory grows: {}{made} grew by {}{}{}.",
            shortened(&suspect.name),
            steps.join(", then "),
            collects.unwrap_or_default(),
            native_references(&suspect.path).unwrap_or_default(),
        ),
        confidence,
        own_frame: Some(own_frame(&suspect.name, suspect.place.as_ref())),
        bytes: u64::try_from(suspect.growth_bytes).unwrap_or(0),
        is_left: true,
        evidence,
        command: command.to_owned(),
        ..Finding::default()
    })
}

/// Part of a sentence about objects of Python that no variable leads to, and whose counts of
/// references are higher than the references found. An extension may hold them, or may have
/// forgotten to give them back. Another object of that kind may lead to some of them.
fn native_references(path: &[PathStep]) -> Option<&'static str> {
    // The root itself stands first. Objects below another one are held by that.
    let mut steps = path.iter().skip_while(|step| step.name == "(root)");
    let is_native = steps.next().is_some_and(|step| step.name == NATIVE_HOLDER);
    (is_native && steps.next().is_none()).then_some(
        "; no variable leads to them: likely references that native code holds or does not give back",
    )
}

fn own_frame(name: &str, place: Option<&Place>) -> OwnFrame {
    OwnFrame {
        module: None,
        symbol: Some(name.to_owned()),
        file: place.map(|place| place.script.clone()),
        line: place.map(|place| place.line),
    }
}

fn duplicates(heap: &Heap, file: &str) -> Option<Finding> {
    let texts: Vec<DuplicatedString> =
        analysis::duplicated_strings(heap, TEXTS_MAX).into_iter().filter(|text| !text.is_cut).collect();
    let wasted = texts.iter().map(|text| text.wasted_bytes).fold(0, u64::saturating_add);
    let whole = heap.statistics().total_bytes;
    let first = texts.first()?;
    if wasted < DUPLICATES_MIN_BYTES || (wasted as f64) < whole as f64 * DUPLICATES_MIN_SHARE {
        return None;
    }
    Some(Finding {
        kind: Kind::Duplicates,
        sentence: format!(
            "Duplicated strings: the same texts take {} more than once; \"{}\" is there {} times.",
            bytes(wasted),
            shortened(&first.text),
            count(first.count),
        ),
        confidence: Confidence::High,
        own_frame: None,
        bytes: wasted,
        is_left: false,
        evidence: texts
            .iter()
            .take(3)
            .map(|text| {
                format!(
                    "\"{}\": {} strings, {} too many",
                    shortened(&text.text),
                    count(text.count),
                    bytes(text.wasted_bytes)
                )
            })
            .collect(),
        command: format!("heapr snapshot strings {file}"),
        ..Finding::default()
    })
}

/// Shortens a name, which may be as long as a string of the program.
fn shortened(text: &str) -> String {
    let mut short: String =
        text.chars().take(TEXT_SHOWN * 2).map(|c| if is_harmless(c) { c } else { ' ' }).collect();
    if text.chars().nth(TEXT_SHOWN * 2).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_native_code_are_told_only_of_what_nothing_else_leads_to() {
        let path = |names: &[&str]| {
            let step = |name: &&str| PathStep {
                name: (*name).to_owned(),
                id: 0,
                held_as: String::new(),
                place: None,
                is_storage: false,
                is_told: false,
            };
            native_references(&names.iter().map(step).collect::<Vec<_>>()).is_some()
        };
        assert!(path(&["(root)", NATIVE_HOLDER]));
        assert!(!path(&["(root)", NATIVE_HOLDER, "dict"]), "the dict holds them");
        assert!(!path(&["(root)", "(modules)", "dict"]));
        assert!(!path(&["(root)"]) && !path(&[]));
    }
}
