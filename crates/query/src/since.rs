//! Allocations of a growing recording since the last reading of it: only new events are read.

use heapr_ledger::{Cause, Death, Ledger, Observer, ProcessEnds, SummaryBuilder};
use heapr_trace::{Block, Damage, ProcessIndex, StackIndex, StackTotals, ThreadIndex, Trace};

use crate::ended_processes::written_summary;
use crate::error::Result;
use crate::intervals::differences;
use crate::recorded_span::RecordedSpan;
use crate::replay::{Progress, Replay};
use crate::run::{is_without_events, whole_summary};

/// State between two readings of one recording. The recording may grow in between and continue in
/// another file. Each file is to be read once more after its end.
#[derive(Debug, Default)]
pub struct Since {
    ledger: Ledger,
    counted: Option<SummaryBuilder>,
    before: Vec<StackTotals>,
    process_count: usize,
    /// Time at which the file continues the previous one.
    goes_on_at_ns: Option<u64>,
    /// Time of the last event that was read, and the number of events read with that time.
    last_ns: u64,
    at_last: u64,
}

impl Since {
    /// Returns, by stack, the allocations since the last call and the live amounts; and the damage
    /// of the events. Over all calls, up to one after the recording's end, the allocations add up
    /// to those of a report.
    ///
    /// # Errors
    /// The events cannot be read.
    pub fn advance(&mut self, trace: &Trace) -> Result<(Vec<StackTotals>, Vec<Damage>)> {
        let goes_on_at_ns = RecordedSpan::of(trace).goes_on_at_ns();
        if goes_on_at_ns != self.goes_on_at_ns {
            let progress: &mut Progress<'_> = &mut |_, _| {};
            let mut replay = Replay::new(trace, progress);
            *self = Self { goes_on_at_ns, before: replay.taken_on()?, ..Self::default() };
        }
        let has_summary = matches!(written_summary(trace), Ok(Some(_)));
        let (now, damage) = if has_summary || is_without_events(trace) {
            let (whole, damage) = whole_summary(trace)?;
            (whole.by_stack, damage)
        } else {
            let damage = self.read(trace)?;
            (self.counted.clone().unwrap_or_default().finish().by_stack, damage)
        };
        let rows = differences(&self.before, &now, None);
        self.before = now;
        Ok((rows, damage))
    }

    /// Replays the new events.
    fn read(&mut self, trace: &Trace) -> Result<Vec<Damage>> {
        for (index, process) in trace.processes().iter().enumerate().skip(self.process_count) {
            self.ledger.add_process(ProcessIndex(index as u32), process.origin, process.start_ns);
        }
        self.process_count = trace.processes().len();
        let counted = self.counted.get_or_insert_with(|| SummaryBuilder::of_samples(trace.sampling()));
        for period in trace.sampling().periods() {
            if !counted.sampling().is_some_and(|known| known.periods().contains(period)) {
                counted.add_sampling(*period);
            }
        }
        let mut ends = new_ends(trace, &self.ledger);
        let mut events = trace.events(self.last_ns, u64::MAX);
        let mut known = self.at_last;
        while let Some(batch) = events.next_batch()? {
            for event in batch {
                if event.time_ns == self.last_ns && known > 0 {
                    known -= 1;
                    continue;
                }
                if event.time_ns != self.last_ns {
                    (self.last_ns, self.at_last) = (event.time_ns, 0);
                }
                self.at_last += 1;
                end_before(&mut ends, event.time_ns, &mut self.ledger, counted);
                self.ledger.apply(event, trace.process_of(event.thread), counted);
            }
        }
        // The recording continues; ended processes hold no blocks any more.
        end_before(&mut ends, u64::MAX, &mut self.ledger, counted);
        Ok(events.damage().to_vec())
    }
}

/// The ends of processes that a ledger does not know yet. (Blocks that were read before an end was
/// known counted as live until then.)
fn new_ends(trace: &Trace, ledger: &Ledger) -> ProcessEnds {
    let processes = (0..).map(ProcessIndex).zip(trace.processes());
    let new = processes.filter(|&(index, _)| !ledger.has_ended(index));
    ProcessEnds::new(new.filter_map(|(index, process)| Some((process.end_ns?, index))).collect())
}

#[inline(always)]
fn end_before(ends: &mut ProcessEnds, time_ns: u64, ledger: &mut Ledger, counted: &mut SummaryBuilder) {
    while let Some((end_ns, process)) = ends.take_before(time_ns) {
        ledger.end_process(process, end_ns, &mut Leaving(counted));
    }
}

/// Counts the blocks of an ended process as freed. (A report of the whole shows them as
/// outstanding.)
struct Leaving<'a>(&'a mut SummaryBuilder);

impl Observer for Leaving<'_> {
    fn alloc_ns(&self, block: &Block) -> u64 {
        self.0.alloc_ns(block)
    }

    fn left(&mut self, block: &Block, time_ns: u64) {
        let (thread, stack) = (ThreadIndex(0), StackIndex::EMPTY);
        let death = Death { time_ns, thread, stack, is_temporary: false, cause: Cause::Free };
        self.0.died(block, &death);
    }
}
