//! Memory that is held without growing: idle blocks, and many small ones.

use heapr_query::{Confidence, Owner};
use heapr_table::quantity::{bytes, percent};
use heapr_trace::half_interval;

use crate::estimated::as_many_as;
use crate::finding::{Chosen, Finding, Kind};
use crate::recording::Recording;
use crate::site::Site;

/// Smallest amount of idle memory that is reported: in bytes, and as a share of the live bytes.
const IDLE_MIN_BYTES: u64 = 1 << 20;
const IDLE_MIN_SHARE: f64 = 0.3;
/// Divisor of the most ever live: a program is starting as long as less than the quotient is live.
const START_PART: u64 = 64;
/// Share of the moments after the start; idle memory is unchanged from there to the end of work.
const OLD_SHARE: f64 = 0.4;
/// Shortest time without a change, in ns: memory of a program that ends sooner is in use.
const STILL_MIN_NS: u64 = 500_000_000;

/// Smallest overhead that is reported: in bytes, and as a share of live memory with its overhead.
const OVERHEAD_MIN_BYTES: u64 = 1 << 20;
const OVERHEAD_MIN_SHARE: f64 = 0.25;

/// Finding about the site with most old memory that is never freed.
pub(crate) fn idle(recording: &Recording<'_>) -> Option<Finding> {
    let is_idle = |site: &&Site| {
        let work = &recording.processes[site.process.0 as usize];
        let most = work.live_bytes.iter().copied().max().unwrap_or(0);
        let is_start = |live: &&u64| live.saturating_mul(START_PART) < most;
        let first = work.first + work.live_bytes.iter().take_while(is_start).count();
        let moments = work.end.saturating_sub(first);
        if moments < 4 || site.owner != Owner::Program {
            return false;
        }
        let old = first + (moments as f64 * OLD_SHARE) as usize;
        let still_ns = recording.times_ns[work.end - 1].saturating_sub(recording.times_ns[old]);
        if still_ns < STILL_MIN_NS && !recording.trace.sampling().untold().times {
            return false;
        }
        let held = &site.held[old..work.end];
        let (Some(first), Some(last)) = (held.first(), held.last()) else { return false };
        let least = held.iter().map(|held| held.bytes).min().unwrap_or(0);
        let has_stayed =
            least as f64 >= last.bytes as f64 * 0.9 && first.bytes as f64 >= last.bytes as f64 * 0.9;
        // Sites whose blocks are exchanged are in use.
        let is_still = last.made - first.made.min(last.made) <= last.count / 10;
        has_stayed
            && is_still
            && last.bytes >= IDLE_MIN_BYTES
            && last.bytes as f64 >= work.last_bytes() as f64 * IDLE_MIN_SHARE
    };
    let end_of = |site: &Site| recording.processes[site.process.0 as usize].end - 1;
    let site = recording.sites.iter().filter(is_idle).max_by_key(|site| site.held[end_of(site)].bytes)?;
    let work = &recording.processes[site.process.0 as usize];
    let last = site.held[end_of(site)];
    let since =
        (work.first..work.end).find(|&place| site.held[place].bytes as f64 >= last.bytes as f64 * 0.9)?;
    let (own_frame, name) = recording.name(site);
    let mean = last.bytes / last.count.max(1);
    let chosen = Chosen {
        at: Some(format!("{}ns", recording.times_ns[end_of(site)])),
        require_frames: recording.required(&own_frame),
        ..Chosen::default()
    };
    let finding = Finding {
        kind: Kind::Idle,
        sentence: format!(
            "Idle memory: {name} has held {} since {}, {} of what is live, and neither frees nor makes any.",
            recording.said.held(last.live()),
            recording.when(recording.times_ns[since]).trim_start_matches("at "),
            percent(last.bytes, work.last_bytes()),
        ),
        confidence: if last.bytes as f64 >= work.last_bytes() as f64 * 0.6 {
            Confidence::Medium
        } else {
            Confidence::Low
        },
        evidence: vec![match recording.said.tells_counts() {
            true => format!(
                "{} made in all, of {} on average; whether they are read a recording does not tell",
                recording.said.blocks(as_many_as(last.made, last.live().count)),
                bytes(mean)
            ),
            false => "whether they are read, and how many blocks they are, is not told".to_owned(),
        }],
        curve: recording.curve(site),
        curve_plus_minus: recording.halves(site),
        own_frame: Some(own_frame),
        bytes: last.bytes,
        bytes_plus_minus: last.live().bytes_plus_minus(),
        is_left: false,
        ..Finding::default()
    };
    Some(finding.choosing(chosen, &recording.file))
}

/// Estimated overhead of the C library's malloc for the blocks of a site at the peak, from their
/// mean size. A chunk has a header of 8 bytes, and is a multiple of 16 bytes, at least 32.
fn overhead_bytes(site: &Site) -> u64 {
    let amounts = &site.amounts;
    let mean = amounts.peak_bytes / amounts.peak_count.max(1);
    let chunk = mean.saturating_add(8).div_ceil(16).saturating_mul(16).max(32);
    amounts.peak_count.saturating_mul(chunk - mean.min(chunk))
}

/// Finding about the overhead of many small blocks.
pub(crate) fn small_blocks(recording: &Recording<'_>) -> Option<Finding> {
    let totals = recording.summary.totals;
    if !recording.said.tells_counts() {
        return None;
    }
    let site = recording.sites.iter().max_by_key(|site| overhead_bytes(site))?;
    let all: u64 = recording.sites.iter().map(overhead_bytes).fold(0, u64::saturating_add);
    let whole = totals.peak_bytes.saturating_add(all);
    if all < OVERHEAD_MIN_BYTES || (all as f64) < whole as f64 * OVERHEAD_MIN_SHARE {
        return None;
    }
    let (own_frame, name) = recording.name(site);
    let amounts = site.amounts;
    // A number of blocks that is half of chance is not told.
    let count = amounts.at_peak().count;
    if half_interval(false, count.variance).saturating_mul(2) > count.value {
        return None;
    }
    let chosen = Chosen {
        at: Some("peak".to_owned()),
        sort: "soc",
        require_frames: recording.required(&own_frame),
        ..Chosen::default()
    };
    let finding = Finding {
        kind: Kind::Overhead,
        sentence: format!(
            "Many small blocks: {name} holds {} of {} on average at the peak; about {} beside them are the \
             allocator's own.",
            recording.said.blocks(amounts.at_peak().count),
            bytes(amounts.peak_bytes / amounts.peak_count.max(1)),
            recording.said.beside(overhead_bytes(site), amounts.at_peak()),
        ),
        confidence: Confidence::Medium,
        evidence: vec![format!(
            "about {} beside {} live at the peak, as the C library's malloc rounds: {}",
            recording.said.beside(all, recording.peak()),
            recording.said.bytes_of(recording.peak()),
            percent(all, whole)
        )],
        curve: recording.curve(site),
        curve_plus_minus: recording.halves(site),
        own_frame: Some(own_frame),
        bytes: overhead_bytes(site),
        is_left: false,
        ..Finding::default()
    };
    Some(finding.choosing(chosen, &recording.file))
}
