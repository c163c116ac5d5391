//! All findings of a recording, the weightiest first.

use heapr_query::engine::SymbolTree;
use heapr_query::{Confidence, OwnCode, SymbolSource};
use heapr_trace::Trace;

use crate::finding::{Finding, Kind};
use crate::growth::growing;
use crate::recording::Recording;
use crate::site::Site;
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
}

/// Of a recording; `file`: its name in commands.
///
/// # Errors
/// It cannot be read.
pub fn of_recording(
    trace: &Trace,
    own: &OwnCode,
    symbols: &mut dyn SymbolSource,
    file: &str,
) -> heapr_query::Result<Found> {
    Ok(found(&Recording::new(trace, own, symbols, file.to_owned())?))
}

/// As [`of_recording`], with names that are known.
///
/// # Errors
/// As [`of_recording`].
pub fn of_named_recording(
    trace: &Trace,
    own: &OwnCode,
    names: &SymbolTree,
    file: &str,
) -> heapr_query::Result<Found> {
    Ok(found(&Recording::with_names(trace, own, names, file.to_owned())?))
}

fn found(recording: &Recording<'_>) -> Found {
    let growing = growing(recording);
    let sites: Vec<&Site> = growing.iter().map(|growing| growing.site).collect();
    let mut findings: Vec<Finding> =
        growing.iter().take(OF_KIND_MAX).map(|growing| growing.finding(recording)).collect();
    findings.extend(seen::loss(recording));
    findings.extend(seen::frees(recording));
    findings.extend(seen::resident(recording));
    findings.extend(peak::peak(recording, &sites));
    findings.extend(churn::churn(recording));
    findings.extend(held::idle(recording));
    findings.extend(held::small_blocks(recording));
    let verdict = verdict(&findings, || peak::largest(recording));
    Found { findings: ranked(findings), verdict, peak_bytes: Some(recording.summary.totals.peak_bytes) }
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

/// What is said where little is found.
pub(crate) fn verdict(findings: &[Finding], largest: impl FnOnce() -> Option<String>) -> String {
    let grows =
        findings.iter().any(|finding| finding.kind == Kind::Growth && finding.confidence > Confidence::Low);
    match (grows, findings.is_empty()) {
        (true, _) => String::new(),
        (false, false) => "Nothing grows.".to_owned(),
        (false, true) => {
            let largest = largest().map(|largest| format!(" {largest}")).unwrap_or_default();
            format!("Nothing grows; nothing stands out.{largest}")
        }
    }
}
