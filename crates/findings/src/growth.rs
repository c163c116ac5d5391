//! Memory that keeps growing while the program works.
//!
//! Growth is judged by the program's work, which is measured in allocated blocks, and not by time.
//! A service that waits does not grow, and has not stopped growing either.

mod beside_steps;
mod stopped;
mod told;

use std::cell::OnceCell;

use heapr_query::{Confidence, Trend};
use heapr_table::SortRows as _;
use heapr_trace::{ProcessIndex, StackIndex, half_interval};

use self::beside_steps::beside_steps;
use crate::doubling::{Doubling, doubling};
use crate::recording::Recording;
use crate::site::{Held, Site};
use crate::sites::NO_SITE;
use crate::stays::{PassesRules, Stays};
use crate::whole_course::MOMENTS_MIN;
use crate::work_time::{GROWTH_MIN_BYTES, WorkTime};

/// Shares of a process's moments and of its work that count as warm-up.
const WARM_UP_TIME: f64 = 0.1;
const WARM_UP_WORK: f64 = 0.15;
/// Smallest growth that is reported, as a share of the live bytes at the end of work.
const GROWTH_MIN_SHARE: f64 = 0.05;
/// Smallest share of rising steps for small growth: below `GROWTH_MIN_SHARE` of the most that was
/// ever live.
const RISING_MIN: f64 = 0.5;
/// Largest fall during the growth, as a share of the growth…
const FALL_MAX: f64 = 0.25;
/// …largest share of the growth in one step…
const STEP_MAX: f64 = 0.6;
/// …and smallest share of the growth in the last third of the work.
const LATE_MIN: f64 = 0.12;

/// Site that grows.
#[derive(Debug)]
pub(crate) struct Growing<'a> {
    pub(crate) site: &'a Site,
    pub(crate) growth_bytes: u64,
    manner: Manner,
    /// Stack that grows most, if it is known.
    stack: Option<StackIndex>,
    from: usize,
    to: usize,
    /// Amounts at `from` and `to`, of the part that is judged.
    first: Held,
    last: Held,
    /// Number of judged amounts.
    count: usize,
    trend: Trend,
    largest_fall: f64,
    late: f64,
    /// Share of the blocks made during the growth that are still live.
    kept: f64,
    /// Whether the site hardly grew in the first half of the work: its growth is the last of
    /// several phases.
    pub(crate) begins_late: bool,
}

/// Manner in which memory grows.
#[derive(Debug, Clone, PartialEq)]
enum Manner {
    /// All that the site holds grows.
    Whole,
    /// The part grows that stays; other blocks may come and go.
    Part,
    /// A container doubles.
    Doubles(Doubling),
}

/// Largest share of the growth by the middle of the work, for growth that begins late.
const LATE_START_SHARE: f64 = 0.1;
/// Smallest share of live blocks among those made, for the sentence that no block is freed.
const KEPT_ALL: f64 = 0.98;

/// All sites that grow, the largest growth first.
pub(crate) fn growing<'a>(recording: &'a Recording<'_>) -> Vec<Growing<'a>> {
    // Only needed for sites that neither double nor grow as a whole.
    let stays: Vec<OnceCell<Option<Stays>>> = recording.processes.iter().map(|_| OnceCell::new()).collect();
    let passes: PassesRules =
        |times_ns, work_done, site, work| judge(times_ns, work_done, site, work).is_some();
    let stays_of = |process: ProcessIndex| {
        stays[process.0 as usize].get_or_init(|| Stays::of(recording, process, passes)).as_ref()
    };
    let mut found: Vec<Growing<'a>> = recording
        .sites
        .iter()
        .filter(|site| recording.is_telling(site))
        .filter_map(|site| {
            let work = &recording.processes[site.process.0 as usize];
            let (times_ns, work_done) = (&recording.times_ns[..], &recording.work_done[..]);
            doubles(times_ns, work_done, site, work)
                .or_else(|| judge(times_ns, work_done, site, work))
                .or_else(|| part(stays_of(site.process)?, site))
                .or_else(|| beside_steps(times_ns, stays_of(site.process)?, site))
        })
        .collect();
    found.sort_rows_by_key(|growing| std::cmp::Reverse(growing.growth_bytes));
    found
}

/// Judges whether a site's container doubles.
fn doubles<'a>(times_ns: &[u64], work_done: &[u64], site: &'a Site, work: &WorkTime) -> Option<Growing<'a>> {
    let doubling = doubling(work_done, &site.held, work)?;
    let &[earliest, ..] = &doubling.steps[..] else { return None };
    let (from, to) = (earliest - 1, work.end - 1);
    let (first, last) = (site.held[from], site.held[to]);
    let growth = last.bytes.saturating_sub(first.bytes) as f64;
    if freed_after(site, work, last.bytes) as f64 > growth * FALL_MAX {
        return None;
    }
    let points: Vec<(u64, u64)> =
        (from..=to).map(|place| (times_ns[place], site.held[place].bytes)).collect();
    Some(Growing {
        site,
        growth_bytes: last.bytes.saturating_sub(first.bytes),
        manner: Manner::Doubles(doubling),
        stack: None,
        from,
        to,
        first,
        last,
        count: points.len(),
        trend: Trend::of(&points)?,
        largest_fall: 0.0,
        late: 1.0,
        kept: 0.0,
        begins_late: false,
    })
}

/// Judges whether the part of a site grows that stays.
fn part<'a>(stays: &Stays, site: &'a Site) -> Option<Growing<'a>> {
    let least = stays.site(site)?;
    let growing = judge(&stays.times_ns, &stays.work_done, &least, &stays.work)?;
    let (from, to) = (stays.ends[growing.from], stays.ends[growing.to]);
    Some(growing.of_part(site, least.stack, from, to))
}

/// First moment by which a share of a process's work was done. `work_done` is by moment.
fn after(work_done: &[u64], work: &WorkTime, share: f64) -> usize {
    let of_work = &work_done[work.first..work.end];
    let (begun, done) = (of_work[0], of_work[of_work.len() - 1]);
    let wanted = begun + (done.saturating_sub(begun) as f64 * share) as u64;
    work.first + of_work.partition_point(|&done| done < wanted)
}

/// First and last moment of the span in which growth is judged.
pub(crate) fn judged_moments(work_done: &[u64], work: &WorkTime) -> Option<(usize, usize)> {
    let moments = work.end.saturating_sub(work.first);
    if moments < MOMENTS_MIN {
        return None;
    }
    let (to, warm) = (work.end - 1, (moments as f64 * WARM_UP_TIME).ceil() as usize);
    let from = after(work_done, work, WARM_UP_WORK).max(work.first + warm);
    (to + 1 >= from + MOMENTS_MIN).then_some((from, to))
}

/// Bytes of a site that are freed after the last moment, while its process lives on without events.
fn freed_after(site: &Site, work: &WorkTime, last_bytes: u64) -> u64 {
    let (left_bytes, moments) = work.still;
    if moments == 0 {
        return 0;
    }
    let left_bytes = match site.number {
        // The rest of a sum of sites is unknown: it is taken to be as much as that of the process.
        NO_SITE => {
            let share = left_bytes as f64 / work.last_bytes().max(1) as f64;
            (last_bytes as f64 * share) as u64
        }
        _ => site.amounts.outstanding_bytes,
    };
    last_bytes.saturating_sub(left_bytes)
}

/// Bytes by which two amounts of a site may differ by chance; 0 if they are counts.
fn by_chance(one: &Held, other: &Held) -> u64 {
    half_interval(true, one.live().bytes.variance.saturating_add(other.live().bytes.variance))
}

/// Judges whether a site grows while its process works. `times_ns` and `work_done` are by moment.
pub(crate) fn judge<'a>(
    times_ns: &[u64],
    work_done: &[u64],
    site: &'a Site,
    work: &WorkTime,
) -> Option<Growing<'a>> {
    let (from, to) = judged_moments(work_done, work)?;
    let held = &site.held[from..=to];
    let (first, last) = (held.first()?.bytes, held.last()?.bytes);
    let growth = last.checked_sub(first)?;
    if growth < GROWTH_MIN_BYTES || (growth as f64) < work.last_bytes() as f64 * GROWTH_MIN_SHARE {
        return None;
    }
    let made = held.last()?.made.saturating_sub(held.first()?.made);
    let kept = held.last()?.count.saturating_sub(held.first()?.count) as f64 / made.max(1) as f64;
    // Estimates rise and fall by chance, too. Blocks that stay are the same in both.
    let chance = match kept >= KEPT_ALL {
        true => held.last()?.live().without(held.first()?.live()).bytes_plus_minus(),
        false => by_chance(held.first()?, held.last()?),
    };
    if growth <= chance {
        return None;
    }
    let (mut most, mut largest_fall, mut largest_step) = (held.first()?, 0_u64, 0_u64);
    for pair in held.windows(2) {
        if pair[1].bytes > most.bytes {
            most = &pair[1];
        }
        let fall = most.bytes - pair[1].bytes;
        largest_fall = largest_fall.max(fall.saturating_sub(by_chance(most, &pair[1])));
        let step = pair[1].bytes.saturating_sub(pair[0].bytes);
        largest_step = largest_step.max(step.saturating_sub(by_chance(&pair[0], &pair[1])));
    }
    largest_fall = largest_fall.max(freed_after(site, work, last));
    let share = |bytes: u64| bytes as f64 / growth as f64;
    let since = |share: f64| {
        // The last step tells whether growth goes on, even if much of the work is in it.
        let place = after(work_done, work, share).clamp(from, to - 1);
        last.saturating_sub(site.held[place].bytes)
    };
    let late = share(since(1.0 - (1.0 - WARM_UP_WORK) / 3.0));
    let is_going_on = late >= LATE_MIN && since(1.0 - (1.0 - WARM_UP_WORK) / 6.0) > 0;
    if share(largest_fall) > FALL_MAX || share(largest_step) > STEP_MAX || !is_going_on {
        return None;
    }
    let middle = after(work_done, work, 0.5).clamp(from, to);
    let late_start = share(site.held[middle].bytes.saturating_sub(first));
    let points: Vec<(u64, u64)> =
        (from..=to).map(|place| (times_ns[place], site.held[place].bytes)).collect();
    let trend = Trend::of(&points)?;
    let most_live = work.live_bytes.iter().copied().max().unwrap_or(0);
    let is_little = (growth as f64) < most_live as f64 * GROWTH_MIN_SHARE;
    if is_little && trend.rising_share < RISING_MIN {
        return None;
    }
    (trend.chance <= 0.05).then_some(Growing {
        site,
        growth_bytes: growth,
        manner: Manner::Whole,
        stack: None,
        from,
        to,
        first: *held.first()?,
        last: *held.last()?,
        count: held.len(),
        trend,
        largest_fall: share(largest_fall),
        late,
        kept,
        begins_late: late_start <= LATE_START_SHARE,
    })
}

impl Growing<'_> {
    /// First and last moment of the span that was judged.
    pub(crate) fn moments(&self) -> (usize, usize) {
        (self.from, self.to)
    }

    /// Growth of a part of another site, between two of that site's moments.
    fn of_part(self, site: &Site, stack: StackIndex, from: usize, to: usize) -> Growing<'_> {
        let Growing {
            growth_bytes, first, last, count, trend, largest_fall, late, kept, begins_late, ..
        } = self;
        let (manner, stack) = (Manner::Part, Some(stack));
        Growing {
            site,
            growth_bytes,
            manner,
            stack,
            from,
            to,
            first,
            last,
            count,
            trend,
            largest_fall,
            late,
            kept,
            begins_late,
        }
    }

    pub(crate) fn trend(&self) -> &Trend {
        &self.trend
    }

    pub(crate) fn confidence(&self, work: &WorkTime) -> Confidence {
        let is_steady = self.trend.chance <= 0.001 && self.largest_fall <= 0.1 && self.late >= 0.2;
        let is_large = self.growth_bytes as f64 >= work.last_bytes() as f64 * 0.15;
        match (is_steady, is_large) {
            (true, true) => Confidence::High,
            (true, false) | (false, true) => Confidence::Medium,
            (false, false) => Confidence::Low,
        }
    }
}

#[cfg(test)]
mod tests;
