//! Moment with much more live memory than usual, and the code that allocated it.

use heapr_query::Confidence;
use heapr_table::quantity::percent;

use crate::finding::{Chosen, Finding, Kind, OwnFrame};
use crate::recording::Recording;
use crate::site::Site;
use crate::together::{self, AtPeak, Together};
use crate::work_time::WorkTime;

/// Smallest ratio of a peak to the usual live bytes, and smallest difference in bytes.
const PEAK_TIMES: f64 = 1.8;
const PEAK_MORE_BYTES: u64 = 256 << 10;
/// Smallest share of the work, up to its end, in which memory stays near the peak. Such a peak is
/// no spike.
const STAYS_SHARE: f64 = 0.2;
/// Smallest peak that is reported without being a spike, if one function or part of the calls holds
/// `MOST_SHARE` of it.
const LARGE_BYTES: u64 = 64 << 20;
/// Smallest share of the peak for a function that explains it.
const MOST_SHARE: f64 = 0.4;

/// Smallest share of the peak for a function by itself. Below it, the finding names the part of the
/// calls that holds most.
pub(crate) const ALONE_SHARE: f64 = 0.2;

/// Finding about the peak, unless a growing site explains it.
pub(crate) fn peak(
    recording: &Recording<'_>,
    at_peak: &AtPeak<'_, '_>,
    growing: &[&Site],
) -> Option<Finding> {
    let totals = recording.summary.totals;
    let site = recording
        .sites
        .iter()
        .filter(|site| recording.is_telling(site))
        .max_by_key(|site| site.amounts.peak_bytes)?;
    if growing.iter().any(|other| std::ptr::eq(*other, site)) {
        return None;
    }
    let alone = site.amounts.peak_bytes as f64 / totals.peak_bytes.max(1) as f64;
    let together = match alone < ALONE_SHARE {
        true => Some(at_peak.of_all()?),
        false => None,
    };
    let held = together.as_ref().map_or(site.amounts.peak_bytes, |together| together.bytes);
    let share = held as f64 / totals.peak_bytes.max(1) as f64;
    let work = &recording.processes[site.process.0 as usize];
    let said = recording.said;
    let (usual, last) = recording.usual(work);
    let is_spike = is_spike(recording, work, usual)
        && has_passed(totals.peak_bytes, last, |bytes| said.half_of_bytes(bytes));
    let is_large = totals.peak_bytes >= LARGE_BYTES && share >= MOST_SHARE;
    if !is_spike && !is_large {
        return None;
    }
    let (own_frame, who, path) = holder(recording, site, together.as_ref());
    let sentence = format!(
        "The peak is {} {}{}: {who}.",
        said.bytes_of(recording.peak()),
        recording.when(totals.peak_time_ns),
        if is_spike { format!(", where {} are usual", recording.bytes(usual)) } else { String::new() },
    );
    let mut evidence = evidence(recording, site, together.is_some(), held, (usual, last));
    evidence.extend(path);
    let is_sure =
        together.is_none() && is_spike && share >= 0.5 && totals.peak_bytes as f64 >= usual as f64 * 2.5;
    let chosen = Chosen {
        at: Some("peak".to_owned()),
        require_frames: recording.required(&own_frame),
        ..Chosen::default()
    };
    let finding = Finding {
        kind: Kind::Peak,
        sentence,
        confidence: match (is_sure, together.is_some() || share >= MOST_SHARE) {
            (true, _) => Confidence::High,
            (false, true) => Confidence::Medium,
            // The rest of the peak is of others.
            (false, false) => Confidence::Low,
        },
        curve_plus_minus: if together.is_none() { recording.halves(site) } else { Vec::new() },
        bytes_plus_minus: match together {
            Some(_) => 0,
            None => site.amounts.at_peak().bytes_plus_minus(),
        },
        curve: match together {
            Some(_) => together::curve(recording, work),
            None => recording.curve(site),
        },
        own_frame: Some(own_frame),
        bytes: held,
        is_left: false,
        evidence,
        ..Finding::default()
    };
    Some(finding.choosing(chosen, &recording.file))
}

/// Whether the peak is far above the usual bytes, and passes.
fn is_spike(recording: &Recording<'_>, work: &WorkTime, usual: u64) -> bool {
    let peak_bytes = recording.summary.totals.peak_bytes;
    peak_bytes as f64 >= usual as f64 * PEAK_TIMES
        && peak_bytes - usual >= PEAK_MORE_BYTES
        // Estimates differ by chance, too.
        && peak_bytes - usual > recording.half_of_bytes(peak_bytes.saturating_add(usual))
        && work.live_bytes.len() >= 3
        // Otherwise all was made after the last moment, and the usual amount is unknown.
        && work.live_bytes.iter().any(|&live_bytes| live_bytes > 0)
        && !stays(recording, work)
}

/// Whether memory has fallen from the peak by more than chance at the end of work. Otherwise it may
/// still rise: samples of growth look like a peak near the end. `half_of`: half of the interval of
/// bytes in samples; 0 for counts.
fn has_passed(peak_bytes: u64, last_bytes: u64, half_of: impl Fn(u64) -> u64) -> bool {
    let fallen = peak_bytes.saturating_sub(last_bytes);
    half_of(peak_bytes) == 0 || fallen > half_of(fallen)
}

/// Frame that holds the peak, the sentence's part about it, and the path of its calls.
fn holder(
    recording: &Recording<'_>,
    site: &Site,
    together: Option<&Together>,
) -> (OwnFrame, String, Option<String>) {
    let peak_bytes = recording.summary.totals.peak_bytes;
    match together {
        Some(together) => {
            let shares = together.shares_text(peak_bytes);
            let (part, held) = (percent(together.bytes, peak_bytes), recording.bytes(together.bytes));
            let who = format!("{}, with what it calls, holds {part} of it, {held}{shares}", together.name);
            (together.own_frame.clone(), who, None)
        }
        None => {
            let (own_frame, name) = recording.name(site);
            let through = recording.through(site.stack);
            let name = through.named(name);
            let part = percent(site.amounts.peak_bytes, peak_bytes);
            let held = recording.said.held(site.amounts.at_peak());
            (own_frame, format!("{name} holds {part} of it, {held}"), through.path)
        }
    }
}

/// Sentences that support the finding. `held`: bytes at the peak; `usual` and `last`: bytes in the
/// middle of the time and at its end.
fn evidence(
    recording: &Recording<'_>,
    site: &Site,
    is_together: bool,
    held: u64,
    (usual, last): (u64, u64),
) -> Vec<String> {
    let said = recording.said;
    let mut evidence = vec![format!(
        "live are {} in the middle of the time and {} where the work that was recorded ends",
        recording.bytes(usual),
        recording.bytes(last),
    )];
    if is_together {
        let most = said.bytes_of(site.amounts.at_peak());
        evidence.push(format!("no function holds more than {most} by itself"));
    } else if site.amounts.outstanding_bytes < held / 2 {
        let left = match site.amounts.outstanding_bytes {
            0 => "nothing".to_owned(),
            _ => said.bytes_of(site.amounts.outstanding()),
        };
        evidence.push(format!("{left} of it is left when the recording ends"));
    }
    evidence
}

/// Whether live memory stays near the peak from there to the end of work.
fn stays(recording: &Recording<'_>, work: &WorkTime) -> bool {
    let totals = recording.summary.totals;
    let behind = recording.times_ns.partition_point(|&time_ns| time_ns <= totals.peak_time_ns);
    let lives = work.live_bytes.get(behind.saturating_sub(work.first)..).unwrap_or_default();
    lives.len() as f64 >= work.live_bytes.len() as f64 * STAYS_SHARE
        && lives.iter().all(|&live| live as f64 * PEAK_TIMES > totals.peak_bytes as f64)
}

/// Smallest share of the peak that the sentence about its largest site tells.
const TOLD_SHARE: f64 = 0.01;

/// Whether a site's part of the peak says anything of the peak.
fn is_worth_telling(part_bytes: u64, peak_bytes: u64) -> bool {
    part_bytes as f64 >= peak_bytes as f64 * TOLD_SHARE
}

/// Sentence about the code that holds most at the peak, for recordings without findings. `None` if
/// no site of the program holds [`TOLD_SHARE`] of it.
pub(crate) fn largest(recording: &Recording<'_>, at_peak: &AtPeak<'_, '_>) -> Option<String> {
    let totals = recording.summary.totals;
    let site =
        recording.sites.iter().max_by_key(|site| (recording.is_telling(site), site.amounts.peak_bytes))?;
    let whole = totals.peak_bytes;
    if site.amounts.peak_bytes == 0 {
        return None;
    }
    let is_alone = site.amounts.peak_bytes as f64 >= whole as f64 * ALONE_SHARE;
    let together = if is_alone { None } else { at_peak.of_all() };
    let who = match together {
        Some(together) => {
            let shares = together.shares_text(whole);
            format!("{}, with what it calls, holds {}{shares}", together.name, percent(together.bytes, whole))
        }
        None if !is_worth_telling(site.amounts.peak_bytes, whole) => return None,
        None => {
            format!("{} holds {}", recording.name(site).1, percent(site.amounts.peak_bytes, whole))
        }
    };
    Some(format!("Of the {} at the peak {who}.", recording.said.bytes_of(recording.peak())))
}

#[test]
fn of_samples_a_peak_that_may_go_on_has_not_passed() {
    // An interval as wide as that of three samples of 512 KiB.
    let half_of = |bytes: u64| (1.96 * (bytes as f64 * f64::from(512 << 10)).sqrt()) as u64;
    assert!(!has_passed(7320 << 10, 5830 << 10, half_of));
    assert!(has_passed(80 << 20, 2 << 20, half_of));
    assert!(has_passed(7320 << 10, 5830 << 10, |_| 0));
}

#[test]
fn a_site_that_holds_next_to_nothing_of_the_peak_is_not_told() {
    assert!(is_worth_telling(1, 10) && is_worth_telling(10, 1000));
    assert!(!is_worth_telling(9, 1000) && !is_worth_telling(160, 1 << 20));
}
