//! Findings judged by thresholds.

use std::path::Path;

use anyhow::ensure;
use heapr_findings::{Finding, Kind};
use heapr_table::quantity::{bytes, bytes_within};

use super::answer::Subject;
use super::findings::of_trace;
use crate::own_arguments::OwnArguments;
use crate::report::names::NameArguments;
use crate::thresholds::Threshold;
use crate::trace_file::open;

/// Returns sentences on the thresholds that a trace exceeds.
pub(crate) fn failures(file: &Path, thresholds: &[Threshold]) -> anyhow::Result<Vec<String>> {
    let (names, own) = (NameArguments::default(), OwnArguments::default());
    let subject = of_trace(file, &open(file)?, &names, &own, &[])?;
    ensure!(!subject.is_unread, "{}: nothing could be read, so that --fail-on judges nothing", subject.name);
    // A peak has a sentence of its own, with the allowed amount.
    let of_kind =
        |finding: &&Finding| finding.kind != Kind::Peak && is_failure(&subject, finding, thresholds);
    let mut failures: Vec<String> =
        subject.findings.iter().filter(of_kind).map(|finding| finding.sentence.clone()).collect();
    failures.extend(passed_peaks(&subject, thresholds));
    Ok(failures)
}

/// Whether a finding exceeds one of the thresholds.
pub(super) fn is_failure(subject: &Subject, finding: &Finding, thresholds: &[Threshold]) -> bool {
    thresholds.iter().any(|threshold| {
        threshold.is_passed_by(finding) || finding.kind == Kind::Peak && passes_peak(subject, *threshold)
    })
}

/// Returns sentences on peaks that are too large.
pub(super) fn passed_peaks<'a>(
    subject: &'a Subject,
    thresholds: &'a [Threshold],
) -> impl Iterator<Item = String> + 'a {
    thresholds.iter().filter(|threshold| passes_peak(subject, **threshold)).map(|threshold| {
        let most = threshold.peak_bytes().unwrap_or(0);
        let peak = bytes_within(subject.peak_bytes.unwrap_or(0), subject.peak_bytes_plus_minus);
        format!("{}: the peak is {peak}, and {} are allowed", subject.name, bytes(most))
    })
}

/// Whether the subject's peak exceeds the threshold.
fn passes_peak(subject: &Subject, threshold: Threshold) -> bool {
    threshold.peak_bytes().zip(subject.peak_bytes).is_some_and(|(most, peak)| peak > most)
}
