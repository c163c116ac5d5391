//! Live blocks of all stacks at a moment, from the summary, the events, or the moments that a
//! recorder keeps.

use heapr_query::{Filter, Moment, Result};
use heapr_trace::{Amounts, CourseMoment, CourseRow, HeapId, ProcessIndex, StackTotals};

use crate::explorer::{Explorer, Found};

/// Live blocks at a moment, without mappings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LiveThen {
    /// Time of the moment.
    pub time_ns: u64,
    /// Blocks of each stack, as outstanding amounts.
    pub rows: Vec<StackTotals>,
    /// Sums of stacks that have no rows, each with its deepest known caller as its stack. Only
    /// recordings without events have them.
    pub rests: Vec<StackTotals>,
}

impl LiveThen {
    fn live_bytes(&self) -> u64 {
        let all = self.rows.iter().chain(&self.rests);
        all.map(|row| row.amounts.outstanding_bytes).fold(0, u64::saturating_add)
    }
}

impl Explorer {
    /// Live blocks of the processes `pids` (all if empty) at a moment. A recording without events
    /// knows the moments that its recorder kept: the last one until `at` answers.
    ///
    /// # Errors
    /// The moment is not known, the trace cannot be read, or the call was cancelled.
    pub fn live_then(
        &self,
        pids: &[u32],
        at: Moment,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<LiveThen> {
        let whole = Filter { pids: pids.to_vec(), ..Filter::default() };
        if at == Moment::Peak && self.needs_no_events(&whole, Found::default()) {
            let selection = self.select(&whole, Found::default(), is_cancelled)?;
            let rows = rows_of(&selection, at_peak)?;
            return Ok(LiveThen { time_ns: selection.totals.peak_time_ns, rows, rests: Vec::new() });
        }
        let is_of_snapshot = matches!(at, Moment::Snapshot { .. });
        if !is_of_snapshot
            && self.is_without_events()
            && let Some(then) = self.of_course(pids, at)?
        {
            return Ok(then);
        }
        let selection = self.select(&Filter { at: Some(at), ..whole }, Found::default(), is_cancelled)?;
        let time_ns = match at {
            Moment::Peak => selection.totals.peak_time_ns,
            Moment::At { time_ns } => time_ns.min(self.trace().duration_ns()),
            Moment::Snapshot { number } => {
                self.trace().snapshot(number).map_or(0, |snapshot| snapshot.time_ns)
            }
        };
        Ok(LiveThen { time_ns, rows: rows_of(&selection, |amounts| *amounts)?, rests: Vec::new() })
    }

    /// Live blocks at a kept moment; `None` if the file has no such moments.
    fn of_course(&self, pids: &[u32], at: Moment) -> Result<Option<LiveThen>> {
        let Some(course) = self.trace().course()? else { return Ok(None) };
        let told = course.moments.iter().filter(|moment| moment.is_whole());
        let moment = match at {
            Moment::At { time_ns } => {
                let until = told.clone().filter(|moment| moment.time_ns <= time_ns);
                until.max_by_key(|moment| moment.time_ns).or_else(|| told.clone().next())
            }
            _ if pids.is_empty() => told.clone().max_by_key(|moment| moment.live_bytes),
            // The peak of the chosen processes is not that of all.
            _ => told.clone().max_by_key(|moment| self.of_moment(pids, moment).live_bytes()),
        };
        Ok(moment.map(|moment| self.of_moment(pids, moment)))
    }

    fn of_moment(&self, pids: &[u32], moment: &CourseMoment) -> LiveThen {
        let trace = self.trace();
        let is_chosen = |row: &StackTotals| {
            let process = trace.processes().get(row.process.0 as usize);
            pids.is_empty() || process.is_some_and(|process| pids.contains(&process.pid))
        };
        let rows = moment.rows.iter().map(|row| {
            let process = trace.stacks().process(row.stack).unwrap_or(ProcessIndex(0));
            totals_of(row, process)
        });
        let rests = moment.rests.iter().map(|rest| totals_of(&rest.row, rest.process));
        LiveThen {
            time_ns: moment.time_ns,
            rows: rows.filter(is_chosen).collect(),
            rests: rests.filter(is_chosen).collect(),
        }
    }
}

/// Rows of a selection that have live bytes, without mappings.
fn rows_of(
    selection: &crate::selection::Selection,
    live: impl Fn(&Amounts) -> Amounts,
) -> Result<Vec<StackTotals>> {
    let mut rows = Vec::new();
    selection.rows.for_each(|row| {
        let amounts = live(&row.amounts);
        if row.heap != HeapId::MMAP && amounts.outstanding_bytes > 0 {
            rows.push(StackTotals { amounts, ..*row });
        }
    })?;
    Ok(rows)
}

/// Blocks at the peak, as outstanding ones.
fn at_peak(amounts: &Amounts) -> Amounts {
    let mut live =
        Amounts { outstanding_count: amounts.peak_count, outstanding_bytes: amounts.peak_bytes, ..*amounts };
    live.variances.outstanding_count = amounts.variances.peak_count;
    live.variances.outstanding_bytes = amounts.variances.peak_bytes;
    live
}

fn totals_of(row: &CourseRow, process: ProcessIndex) -> StackTotals {
    let mut amounts = Amounts {
        outstanding_count: row.live_count,
        outstanding_bytes: row.live_bytes,
        ..Amounts::default()
    };
    amounts.variances.outstanding_count = row.variances.count;
    amounts.variances.outstanding_bytes = row.variances.bytes_kib2;
    StackTotals { stack: row.stack, process, amounts, ..StackTotals::default() }
}
