//! Memory that goes on growing while the program works.
//!
//! Whether it goes on is judged by the work that the program does, told by the blocks that it
//! makes: a service that waits does not grow, and has stopped growing no more than one that is held
//! up.

use heapr_query::{Confidence, Trend};
use heapr_table::quantity::{bytes, count, duration, percent, plural};

use crate::finding::{Chosen, Finding, Kind};
use crate::recording::Recording;
use crate::site::Site;
use crate::work_time::WorkTime;

/// The parts of a process's time and of its work in which it warms up.
const WARM_UP_TIME: f64 = 0.1;
const WARM_UP_WORK: f64 = 0.15;
/// Moments without which no growth is seen.
const MOMENTS_MIN: usize = 6;
/// Growth of less is not worth a word: bytes, and share of what is live at the end of work.
const GROWTH_MIN_BYTES: u64 = 16 << 10;
const GROWTH_MIN_SHARE: f64 = 0.05;
/// What grows does not fall back by more of its growth…
const FALL_MAX: f64 = 0.25;
/// …does not grow in one step…
const STEP_MAX: f64 = 0.6;
/// …and still grows in the last third of the work: by so much of its growth.
const LATE_MIN: f64 = 0.12;

/// A site that grows.
#[derive(Debug)]
pub(crate) struct Growing<'a> {
    pub(crate) site: &'a Site,
    growth_bytes: u64,
    from: usize,
    to: usize,
    trend: Trend,
    largest_fall: f64,
    late: f64,
    /// Share of the blocks made meanwhile that are still live.
    kept: f64,
}

/// All that grows, the most first.
pub(crate) fn growing<'a>(recording: &'a Recording<'_>) -> Vec<Growing<'a>> {
    let mut found: Vec<Growing<'a>> = recording
        .sites
        .iter()
        .filter(|site| recording.is_telling(site))
        .filter_map(|site| judge(recording, site, &recording.processes[site.process.0 as usize]))
        .collect();
    found.sort_by_key(|growing| std::cmp::Reverse(growing.growth_bytes));
    found
}

fn judge<'a>(recording: &Recording<'_>, site: &'a Site, work: &WorkTime) -> Option<Growing<'a>> {
    let moments = work.end.saturating_sub(work.first);
    if moments < MOMENTS_MIN {
        return None;
    }
    let to = work.end.checked_sub(1)?;
    let (begun, done) = (recording.work_done[work.first], recording.work_done[to]);
    // The first moment at which a share of the work was done.
    let after = |share: f64| {
        let wanted = begun + (done.saturating_sub(begun) as f64 * share) as u64;
        work.first + recording.work_done[work.first..=to].partition_point(|&done| done < wanted)
    };
    let from = after(WARM_UP_WORK).max(work.first + (moments as f64 * WARM_UP_TIME).ceil() as usize);
    if to + 1 < from + MOMENTS_MIN {
        return None;
    }
    let held = &site.held[from..=to];
    let (first, last) = (held.first()?.bytes, held.last()?.bytes);
    let growth = last.checked_sub(first)?;
    if growth < GROWTH_MIN_BYTES || (growth as f64) < work.last_bytes() as f64 * GROWTH_MIN_SHARE {
        return None;
    }
    let (mut most, mut largest_fall, mut largest_step) = (first, 0_u64, 0_u64);
    for pair in held.windows(2) {
        most = most.max(pair[1].bytes);
        largest_fall = largest_fall.max(most - pair[1].bytes);
        largest_step = largest_step.max(pair[1].bytes.saturating_sub(pair[0].bytes));
    }
    let share = |bytes: u64| bytes as f64 / growth as f64;
    let since = |share: f64| last.saturating_sub(site.held[after(share).clamp(from, to)].bytes);
    let late = share(since(1.0 - (1.0 - WARM_UP_WORK) / 3.0));
    let is_going_on = late >= LATE_MIN && since(1.0 - (1.0 - WARM_UP_WORK) / 6.0) > 0;
    if share(largest_fall) > FALL_MAX || share(largest_step) > STEP_MAX || !is_going_on {
        return None;
    }
    let points: Vec<(u64, u64)> =
        (from..=to).map(|place| (recording.times_ns[place], site.held[place].bytes)).collect();
    let trend = Trend::of(&points)?;
    let made = held.last()?.made.saturating_sub(held.first()?.made);
    let kept = held.last()?.count.saturating_sub(held.first()?.count) as f64 / made.max(1) as f64;
    (trend.chance <= 0.05).then_some(Growing {
        site,
        growth_bytes: growth,
        from,
        to,
        trend,
        largest_fall: share(largest_fall),
        late,
        kept,
    })
}

impl Growing<'_> {
    fn confidence(&self, work: &WorkTime) -> Confidence {
        let is_steady = self.trend.chance <= 0.001 && self.largest_fall <= 0.1 && self.late >= 0.2;
        let is_large = self.growth_bytes as f64 >= work.last_bytes() as f64 * 0.15;
        match (is_steady, is_large) {
            (true, true) => Confidence::High,
            (true, false) | (false, true) => Confidence::Medium,
            (false, false) => Confidence::Low,
        }
    }

    /// In words.
    pub(crate) fn finding(&self, recording: &Recording<'_>) -> Finding {
        let (own_frame, name) = recording.name(self.site);
        let work = &recording.processes[self.site.process.0 as usize];
        let (first, last) = (self.site.held[self.from], self.site.held[self.to]);
        let (first_ns, last_ns) = (recording.times_ns[self.from], recording.times_ns[self.to]);
        let per_second = (self.growth_bytes as f64 / (last_ns - first_ns).max(1) as f64 * 1e9) as u64;
        let rate = match per_second {
            0..1024 => format!("{} an hour", bytes(per_second.saturating_mul(3600))),
            _ => format!("{} a second", bytes(per_second)),
        };
        let is_left = self.site.amounts.outstanding_bytes.saturating_mul(2) >= last.bytes;
        // What comes behind the cut, or later, is not known.
        let is_cut = !recording.trace.is_complete() || !recording.damage.is_empty();
        let fate = match (is_left, self.kept >= 0.98) {
            (true, true) if is_cut => "none of it is freed in the part that was read".to_owned(),
            (true, true) => "none of it is ever freed".to_owned(),
            (true, false) => format!(
                "{:.0} % of the blocks that it makes are {}",
                self.kept * 100.0,
                if is_cut { "not freed in the part that was read" } else { "never freed" }
            ),
            (false, true) => "none of it is freed before the program ends".to_owned(),
            (false, false) => {
                format!(
                    "{:.0} % of the blocks that it makes are not freed before the program ends",
                    self.kept * 100.0
                )
            }
        };
        let map = if self.kept >= 0.5 && recording.fills_a_map(self.site) {
            " It goes into a map that nothing is taken out of: a cache or a registry without eviction."
        } else {
            ""
        };
        let sentence = format!(
            "Memory grows: {name} holds {} in {} after {}, {rate} more; {fate}.{map}",
            bytes(last.bytes),
            plural(last.count, "block"),
            duration(last_ns),
        );
        let mut evidence = vec![
            format!(
                "{} at {}, {} at {}: it rises in {:.0} % of the steps between {} moments",
                bytes(first.bytes),
                duration(first_ns),
                bytes(last.bytes),
                duration(last_ns),
                self.trend.rising_share * 100.0,
                self.to - self.from + 1,
            ),
            format!(
                "{} blocks were made meanwhile, {} more are live; {} of all that is live then",
                // What grew by realloc was made before.
                count(last.made.saturating_sub(first.made).max(last.count.saturating_sub(first.count))),
                count(last.count.saturating_sub(first.count)),
                percent(last.bytes, work.last_bytes()),
            ),
        ];
        if let Some((freed, took_ns)) = work.teardown {
            evidence.push(format!(
                "the program frees {} in its last {}: that is its end, and left out",
                bytes(freed),
                duration(took_ns)
            ));
        }
        let chosen = Chosen {
            at: Some(format!("{last_ns}ns")),
            require_frames: recording.required(&own_frame),
            ..Chosen::default()
        };
        let finding = Finding {
            kind: Kind::Growth,
            sentence,
            confidence: self.confidence(work),
            own_frame: Some(own_frame),
            bytes: last.bytes,
            is_left,
            evidence,
            curve: recording.curve(self.site),
            ..Finding::default()
        };
        finding.choosing(chosen, &recording.file)
    }
}
