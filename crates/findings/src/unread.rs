//! Findings about the parts of a recording that were cut, damaged or never made. Nothing is claimed
//! about them.

use heapr_query::Confidence;
use heapr_table::quantity::{bytes, count as number, plural};
use heapr_trace::{Damage, ProcessIndex};

use crate::finding::{Finding, Kind, quoted};
use crate::recording::Recording;

/// Largest number of processes and of damaged places that are named.
const NAMED_MAX: usize = 3;

/// Extent to which a recording has seen the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// The whole program.
    Whole,
    /// A part: blocks that are missing may be in the rest.
    Part,
    /// No allocation at all.
    Nothing,
}

impl Sight {
    pub(crate) fn of(recording: &Recording<'_>) -> Self {
        let trace = recording.trace;
        let loss = trace.whole_loss();
        if is_empty(recording) {
            Self::Nothing
        } else if !recording.damage.is_empty()
            || !trace.is_complete()
            || loss.missing_events() > 0
            || loss.processes_refused > 0
            || unseen_processes(recording).next().is_some()
        {
            Self::Part
        } else {
            Self::Whole
        }
    }
}

fn is_empty(recording: &Recording<'_>) -> bool {
    let totals = recording.summary.totals;
    // Some tools record bytes and no numbers of blocks.
    let has_bytes = totals.alloc_bytes > 0 || totals.outstanding_bytes > 0 || totals.peak_bytes > 0;
    totals.alloc_count == 0 && totals.unmatched_frees == 0 && totals.outstanding_count == 0 && !has_bytes
}

/// Whether the recording has no contents, because the file ends too early.
pub(crate) fn is_unread(recording: &Recording<'_>) -> bool {
    is_empty(recording) && (!recording.damage.is_empty() || !recording.trace.is_complete())
}

/// Findings about data that could not be read, and about processes that could not be recorded.
pub(crate) fn unread(recording: &Recording<'_>) -> Vec<Finding> {
    damage(recording).into_iter().chain(processes(recording)).collect()
}

fn damage(recording: &Recording<'_>) -> Option<Finding> {
    let unread: u64 = recording.damage.iter().map(|damage| damage.bytes).fold(0, u64::saturating_add);
    let sentence = match (is_empty(recording), recording.damage.is_empty()) {
        (true, false) => format!(
            "Nothing could be read: the file is cut or damaged before its first events ({} of it). What the program \
             did is not known.",
            bytes(unread)
        ),
        (true, true) if !recording.trace.is_complete() => {
            "Nothing was recorded yet: the file holds no event and did not end in order.".to_owned()
        }
        (_, true) => return None,
        (false, false) => format!(
            "A part of the file can't be read: {} are cut off or damaged. What happened there is in none of the numbers.",
            bytes(unread)
        ),
    };
    Some(Finding {
        kind: Kind::Unseen,
        sentence,
        confidence: Confidence::High,
        evidence: recording.damage.iter().take(NAMED_MAX).map(place).collect(),
        command: format!("heapr info {}", quoted(&recording.file)),
        ..Finding::default()
    })
}

fn place(damage: &Damage) -> String {
    format!("{} at offset {}: {}", plural(damage.bytes, "byte"), damage.offset, damage.what)
}

/// Processes without recorded blocks for which the recorder gives a reason.
fn unseen_processes<'a>(recording: &'a Recording<'_>) -> impl Iterator<Item = (ProcessIndex, &'a str)> {
    let has_blocks = |process: ProcessIndex| {
        let mut of_it = recording.summary.by_heap.iter().filter(move |(owner, _, _)| *owner == process);
        of_it.any(|(_, _, totals)| {
            totals.alloc_count > 0 || totals.peak_bytes > 0 || totals.outstanding_bytes > 0
        })
    };
    let notices = recording.trace.notices().iter();
    notices
        .map(|notice| (notice.process, notice.text.as_str()))
        .filter(move |(process, _)| !has_blocks(*process))
}

fn processes(recording: &Recording<'_>) -> Option<Finding> {
    let refused = recording.trace.whole_loss().processes_refused;
    let mut unseen: Vec<(ProcessIndex, &str)> = unseen_processes(recording).collect();
    unseen.dedup_by_key(|(process, _)| *process);
    let count = refused.max(unseen.len() as u64);
    if count == 0 {
        return None;
    }
    let named = unseen.iter().take(NAMED_MAX).map(|(process, text)| {
        let known = recording.trace.processes().get(process.0 as usize);
        let name = known.map_or("process", |process| process.name());
        let pid = known.map_or(process.0, |process| process.pid);
        format!("{name} ({pid}): {text}")
    });
    Some(Finding {
        kind: Kind::Unseen,
        sentence: format!(
            "Of {} no allocation was recorded: what {} is not known.",
            if count == 1 { "1 process".to_owned() } else { format!("{} processes", number(count)) },
            if count == 1 { "it holds" } else { "they hold" },
        ),
        confidence: Confidence::High,
        evidence: named.collect(),
        command: format!("heapr info {}", quoted(&recording.file)),
        ..Finding::default()
    })
}
