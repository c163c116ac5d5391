//! A moment at which much more is live than at others, and who made it.

use heapr_query::Confidence;
use heapr_table::quantity::{bytes, duration, percent, plural};

use crate::finding::{Chosen, Finding, Kind};
use crate::recording::Recording;
use crate::site::Site;
use crate::work_time::WorkTime;

/// A peak is so many times what is live in the middle of the time, and so much more.
const PEAK_TIMES: f64 = 1.8;
const PEAK_MORE_BYTES: u64 = 256 << 10;
/// What stays as high for this share of the work, until its end, is no spike.
const STAYS_SHARE: f64 = 0.2;
/// Where most of so large a peak is one function's, it is told even if the program stays there.
const LARGE_BYTES: u64 = 64 << 20;

/// The finding, unless one of the sites that grow explains the peak.
pub(crate) fn peak(recording: &Recording<'_>, growing: &[&Site]) -> Option<Finding> {
    let totals = recording.summary.totals;
    let site = recording
        .sites
        .iter()
        .filter(|site| recording.is_telling(site))
        .max_by_key(|site| site.amounts.peak_bytes)?;
    let held = site.amounts.peak_bytes;
    let share = held as f64 / totals.peak_bytes.max(1) as f64;
    if growing.iter().any(|other| std::ptr::eq(*other, site)) || share < 0.2 {
        return None;
    }
    let work = &recording.processes[site.process.0 as usize];
    let usual = work.median_bytes();
    let is_spike = totals.peak_bytes as f64 >= usual as f64 * PEAK_TIMES
        && totals.peak_bytes - usual >= PEAK_MORE_BYTES
        && work.live_bytes.len() >= 3
        && !stays(recording, work);
    let is_large = totals.peak_bytes >= LARGE_BYTES && share >= 0.4;
    if !is_spike && !is_large {
        return None;
    }
    let (own_frame, name) = recording.name(site);
    let sentence = format!(
        "The peak is {} at {}{}: {name} holds {} of it, {} in {}.",
        bytes(totals.peak_bytes),
        duration(totals.peak_time_ns),
        if is_spike { format!(", where {} are usual", bytes(usual)) } else { String::new() },
        percent(held, totals.peak_bytes),
        bytes(held),
        plural(site.amounts.peak_count, "block"),
    );
    let mut evidence = vec![format!(
        "live are {} in the middle of the time and {} at the end of the program's work",
        bytes(usual),
        bytes(work.last_bytes()),
    )];
    if site.amounts.outstanding_bytes < held / 2 {
        let left = match site.amounts.outstanding_bytes {
            0 => "nothing".to_owned(),
            left => bytes(left),
        };
        evidence.push(format!("{left} of it is left when the recording ends"));
    }
    let is_sure = is_spike && share >= 0.5 && totals.peak_bytes as f64 >= usual as f64 * 2.5;
    let chosen = Chosen {
        at: Some("peak".to_owned()),
        require_frames: recording.required(&own_frame),
        ..Chosen::default()
    };
    let finding = Finding {
        kind: Kind::Peak,
        sentence,
        confidence: if is_sure { Confidence::High } else { Confidence::Medium },
        curve: recording.curve(site),
        own_frame: Some(own_frame),
        bytes: held,
        is_left: false,
        evidence,
        ..Finding::default()
    };
    Some(finding.choosing(chosen, &recording.file))
}

/// Whether what is live stays near the peak from there to the end of work.
fn stays(recording: &Recording<'_>, work: &WorkTime) -> bool {
    let totals = recording.summary.totals;
    let behind = recording.times_ns.partition_point(|&time_ns| time_ns <= totals.peak_time_ns);
    let lives = work.live_bytes.get(behind.saturating_sub(work.first)..).unwrap_or_default();
    lives.len() as f64 >= work.live_bytes.len() as f64 * STAYS_SHARE
        && lives.iter().all(|&live| live as f64 * PEAK_TIMES > totals.peak_bytes as f64)
}

/// Who holds most at the peak: said where nothing stands out.
pub(crate) fn largest(recording: &Recording<'_>) -> Option<String> {
    let totals = recording.summary.totals;
    let site =
        recording.sites.iter().max_by_key(|site| (recording.is_telling(site), site.amounts.peak_bytes))?;
    (site.amounts.peak_bytes > 0).then(|| {
        format!(
            "Of the {} at the peak {} holds {}.",
            bytes(totals.peak_bytes),
            recording.name(site).1,
            percent(site.amounts.peak_bytes, totals.peak_bytes)
        )
    })
}
