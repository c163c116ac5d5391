//! Allocations and live memory, interval by interval, in one replay.

use heapr_ledger::{Ledger, SummaryBuilder};
use heapr_trace::{Amounts, Damage, HeapId, ProcessIndex, StackIndex, StackTotals, Trace, Variances};

use crate::error::{Error, Result};
use crate::recorded_span::RecordedSpan;
use crate::replay::Replay;
use crate::run::{is_without_events, whole_summary};

/// An interval, with the stacks that have amounts in it.
#[derive(Debug)]
pub struct Interval<'a> {
    /// Start of the interval.
    pub from_ns: u64,
    /// End, exclusive; for the last interval the end of the recording.
    pub to_ns: u64,
    /// Rows in order of stacks. Allocations are those within the interval, and live amounts those
    /// at its end. Amounts at the peak are in the interval of the peak.
    pub rows: &'a [StackTotals],
}

/// Passes the intervals to `visit` in turn; returns the damage of the events. The allocations of
/// all intervals add up to those of a report. (A report of a later file of a session includes the
/// blocks taken over from earlier files, which no interval has.) The last interval holds the
/// report's live amounts.
///
/// # Errors
/// The events cannot be read; there are neither events nor totals; or an error of `visit`.
pub fn for_each_interval<E: From<Error>>(
    trace: &Trace,
    interval_ns: u64,
    visit: &mut dyn FnMut(Interval<'_>) -> Result<(), E>,
) -> Result<Vec<Damage>, E> {
    let interval_ns = interval_ns.max(1);
    let (whole, damage) = whole_summary(trace)?;
    if is_without_events(trace) || whole.event_count == 0 {
        visit(Interval { from_ns: 0, to_ns: whole.duration_ns, rows: &whole.by_stack })?;
        return Ok(damage);
    }
    let progress: &mut crate::replay::Progress<'_> = &mut |_, _| {};
    let mut replay = Replay::new(trace, progress);
    replay.damage = damage;
    let mut ledger: Ledger = replay.new_ledger();
    let mut counted = SummaryBuilder::of_samples(trace.sampling());
    let mut before: Vec<StackTotals> = replay.taken_on().map_err(E::from)?;
    let goes_on_at_ns = RecordedSpan::of(trace).goes_on_at_ns().unwrap_or(0);
    let peak_ns = whole.totals.peak_time_ns;
    let duration_ns = whole.duration_ns.max(trace.duration_ns());
    let mut from_ns = goes_on_at_ns - goes_on_at_ns % interval_ns;
    let mut is_first = true;
    loop {
        let to_ns = from_ns.saturating_add(interval_ns);
        let is_last = to_ns > duration_ns;
        replay
            .feed(
                (if is_first { 0 } else { from_ns }, if is_last { u64::MAX } else { to_ns }),
                &mut ledger,
                &mut counted,
                |_| false,
            )
            .map_err(E::from)?;
        let mut now = counted.clone().finish().by_stack;
        if is_last {
            // The last interval ends with the totals of the whole recording.
            now.clone_from(&whole.by_stack);
        }
        let has_peak = (from_ns..to_ns).contains(&peak_ns)
            || is_last && peak_ns >= to_ns
            || is_first && peak_ns < from_ns;
        let rows = differences(&before, &now, has_peak.then_some(&whole.by_stack));
        visit(Interval { from_ns, to_ns: if is_last { duration_ns } else { to_ns }, rows: &rows })?;
        if is_last {
            return Ok(replay.damage);
        }
        before = now;
        (from_ns, is_first) = (to_ns, false);
    }
}

/// Key of a row, in the order of a summary.
fn key(row: &StackTotals) -> (StackIndex, HeapId, ProcessIndex) {
    (row.stack, row.heap, row.process)
}

pub(crate) fn differences(
    before: &[StackTotals],
    now: &[StackTotals],
    peak: Option<&Vec<StackTotals>>,
) -> Vec<StackTotals> {
    let earlier = |row: &StackTotals| {
        let place = before.binary_search_by_key(&key(row), key).ok()?;
        Some(before[place].amounts)
    };
    let mut rows: Vec<StackTotals> = now
        .iter()
        .map(|row| {
            let amounts = row.amounts.since(&earlier(row).unwrap_or_default());
            StackTotals { amounts, ..*row }
        })
        .collect();
    for held in peak.into_iter().flatten() {
        if let Ok(place) = rows.binary_search_by_key(&key(held), key) {
            rows[place].amounts.set_peak(&held.amounts);
        } else if held.amounts.peak_bytes > 0 {
            let mut amounts = Amounts::default();
            amounts.set_peak(&held.amounts);
            let place = rows.partition_point(|row| key(row) < key(held));
            rows.insert(place, StackTotals { amounts, ..*held });
        }
    }
    rows.retain(|row| Amounts { variances: Variances::default(), ..row.amounts } != Amounts::default());
    rows
}
