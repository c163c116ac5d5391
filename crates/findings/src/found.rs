//! All findings of a recording, the weightiest first.

use heapr_query::engine::SymbolTree;
use heapr_query::{Confidence, SymbolSource};
use heapr_trace::Trace;

use crate::finding::{Finding, Kind};
use crate::growth::growing;
use crate::judged::Judged;
use crate::recording::Recording;
use crate::site::Site;
use crate::unread::{self, Sight};
use crate::{churn, held, peak, seen};

/// Most findings of an answer.
const FINDINGS_MAX: usize = 5;
/// Most of one kind.
const OF_KIND_MAX: usize = 3;

/// What is found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The weightiest first, at most five.
    pub findings: Vec<Finding>,
    /// A sentence that stands above them, or in their place.
    pub verdict: String,
    /// The most that was live; of a recording.
    pub peak_bytes: Option<u64>,
    /// When the program had done its work and began to free all; `None`: it never did.
    pub work_end_ns: Option<u64>,
    /// A file of which nothing could be read: nothing can be judged.
    pub is_unread: bool,
}

/// Of a recording.
///
/// # Errors
/// It cannot be read.
pub fn of_recording(
    trace: &Trace,
    judged: Judged<'_>,
    symbols: &mut dyn SymbolSource,
) -> heapr_query::Result<Found> {
    Ok(found(&Recording::new(trace, judged, symbols)?))
}

/// As [`of_recording`], with names that are known.
///
/// # Errors
/// As [`of_recording`].
pub fn of_named_recording(
    trace: &Trace,
    judged: Judged<'_>,
    names: &SymbolTree,
) -> heapr_query::Result<Found> {
    Ok(found(&Recording::with_names(trace, judged, names)?))
}

fn found(recording: &Recording<'_>) -> Found {
    let growing = growing(recording);
    let sites: Vec<&Site> = growing.iter().map(|growing| growing.site).collect();
    let mut findings: Vec<Finding> =
        growing.iter().take(OF_KIND_MAX).map(|growing| growing.finding(recording)).collect();
    findings.extend(unread::unread(recording));
    findings.extend(seen::loss(recording));
    findings.extend(seen::frees(recording));
    findings.extend(seen::resident(recording));
    findings.extend(peak::peak(recording, &sites));
    findings.extend(churn::churn(recording));
    findings.extend(held::idle(recording));
    findings.extend(held::small_blocks(recording));
    let verdict = verdict(&findings, Sight::of(recording), || peak::largest(recording));
    Found {
        work_end_ns: recording.work_end_ns(),
        is_unread: unread::is_unread(recording),
        findings: ranked(findings),
        verdict,
        peak_bytes: Some(recording.summary.totals.peak_bytes),
    }
}

/// The weightiest first: by certainty, then by what harms most.
pub(crate) fn ranked(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| {
        std::cmp::Reverse((finding.confidence, std::cmp::Reverse(harm(finding.kind)), finding.bytes))
    });
    findings.truncate(FINDINGS_MAX);
    findings
}

/// Order of kinds: what goes on to do harm comes first.
fn harm(kind: Kind) -> u8 {
    match kind {
        Kind::Growth => 0,
        Kind::Unseen => 1,
        Kind::Frees => 2,
        Kind::Resident => 3,
        Kind::Peak => 4,
        Kind::Churn => 5,
        Kind::Duplicates => 6,
        Kind::Idle => 7,
        Kind::Overhead => 8,
    }
}

/// What is said where little is found; of what was not seen nothing is said.
pub(crate) fn verdict(
    findings: &[Finding],
    sight: Sight,
    largest: impl FnOnce() -> Option<String>,
) -> String {
    let grows =
        findings.iter().any(|finding| finding.kind == Kind::Growth && finding.confidence > Confidence::Low);
    let seen = match sight {
        Sight::Whole => "",
        Sight::Part => " in the part that was recorded and read",
        Sight::Nothing if findings.is_empty() => {
            return "No allocation was recorded: nothing can be said of the program's memory.".to_owned();
        }
        Sight::Nothing => return String::new(),
    };
    match (grows, findings.is_empty()) {
        (true, _) => String::new(),
        (false, false) => format!("Nothing grows{seen}."),
        (false, true) => {
            let largest = largest().map(|largest| format!(" {largest}")).unwrap_or_default();
            format!("Nothing grows{seen}; nothing stands out.{largest}")
        }
    }
}
