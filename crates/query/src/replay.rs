//! Replays of the events that a query needs.
//!
//! | query | events read | live set at the start |
//! |---|---|---|
//! | no condition on time, no summary in the file | all events | empty |
//! | size, lifetime, thread and the like | all events | empty |
//! | range | the events of the range | empty: earlier allocations do not count |
//! | type `aofi`, `aofo` | from the last checkpoint before the range to its end | the checkpoint's |
//! | at a time | from the last checkpoint before the time to the time | the checkpoint's |
//! | in a snapshot | the snapshot's blocks | the snapshot's |
//! | at the peak | as at a time, once the peak's time is known: from the summary, or from a replay for chosen processes, sizes or a range | the checkpoint's |

use heapr_ledger::{Cause, CourseTaker, Ledger, Observer, ProcessEnds, SummaryBuilder};
use heapr_trace::{
    Block, ChunkKind, Damage, Event, EventReader, ProcessIndex, StackIndex, StackTable, StackTotals, Summary,
    Trace,
};

use crate::choice::Choice;
use crate::collector::{Collected, Collector, Counted, Death};
use crate::ended_processes::{process_ends, written_summary};
use crate::error::{Error, Result};
use crate::filter::{Filter, Moment, Span};
use crate::query::Query;
use crate::recorded_span::RecordedSpan;

/// A range of all times.
const ALWAYS: Span = Span { from: 0, to: u64::MAX };

/// Callback that receives the number of chunks read so far, and of all chunks.
pub type Progress<'a> = dyn FnMut(usize, usize) + 'a;

/// Replays events of one trace.
pub struct Replay<'a, 't> {
    /// The trace.
    pub trace: &'t Trace,
    /// Receives the progress.
    pub progress: &'a mut Progress<'a>,
    /// Chunks of events that could not be used.
    pub damage: Vec<Damage>,
    /// Ends of processes; computed at the first replay.
    ends: Option<ProcessEnds>,
}

impl std::fmt::Debug for Replay<'_, '_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Replay").field("damage", &self.damage).finish_non_exhaustive()
    }
}

/// Peak of the chosen blocks.
#[derive(Debug, Clone, Copy)]
struct Peak {
    bytes: u64,
    time_ns: u64,
}

impl<'a, 't> Replay<'a, 't> {
    /// A replay of a trace; `progress` receives its progress.
    pub fn new(trace: &'t Trace, progress: &'a mut Progress<'a>) -> Self {
        Self { trace, progress, damage: Vec::new(), ends: None }
    }
}

impl<'t> Replay<'_, 't> {
    /// The summary that an unfinished file would have had.
    pub fn summary(&mut self) -> Result<Summary> {
        let since_ns = RecordedSpan::of(self.trace).since_ns.unwrap_or(0);
        let course = CourseTaker::since(since_ns);
        let mut observer = self.with_course(course.until(self.last_event_ns()))?;
        if !observer.course.is_exact() {
            // The last events are of no block.
            observer = self.with_course(CourseTaker::since(since_ns))?;
        }
        let mut summary = observer.summary.finish();
        summary.course = observer.course.finish();
        summary.event_count = self.trace.event_count();
        summary.duration_ns = self.trace.duration_ns();
        Ok(summary)
    }

    fn with_course(&mut self, course: CourseTaker) -> Result<WithCourse<'t>> {
        let summary = SummaryBuilder::of_samples(self.trace.sampling());
        let mut observer = WithCourse { summary, course, stacks: self.trace.stacks() };
        let mut ledger = self.new_ledger();
        self.feed((0, u64::MAX), &mut ledger, &mut observer, |_| false)?;
        Ok(observer)
    }

    /// Time of the last event by the chunks' headers.
    fn last_event_ns(&self) -> u64 {
        let events = self.trace.chunks().iter().filter(|chunk| chunk.kind == Some(ChunkKind::Events));
        events.map(|chunk| chunk.last_ns).max().unwrap_or(0)
    }

    /// Totals by stack of the blocks that a later file of a session took over from earlier files.
    /// They were allocated there, not in this file. Empty for other files.
    pub(crate) fn taken_on(&mut self) -> Result<Vec<StackTotals>> {
        let Some(since_ns) = RecordedSpan::of(self.trace).goes_on_at_ns() else { return Ok(Vec::new()) };
        let mut summary = SummaryBuilder::of_samples(self.trace.sampling());
        let mut ledger = self.new_ledger();
        self.feed((0, since_ns.saturating_add(1)), &mut ledger, &mut summary, |_| false)?;
        Ok(summary.finish().by_stack)
    }

    /// Sums the blocks that a query counts. `has_required`: whether each stack has the required
    /// frames.
    pub fn collect(
        &mut self,
        query: &Query,
        choice: &Choice,
        has_required: Option<&[bool]>,
    ) -> Result<Collected> {
        let filter = &query.filter;
        let range = filter.range.unwrap_or(ALWAYS);
        let new_collector = |counted| {
            Collector::new(choice, filter, counted, range, has_required, query.is_by_thread())
                .with_histograms(&query.histograms)
                .of_samples(self.trace.sampling())
                .until(range.to.min(self.trace.duration_ns()))
        };
        match filter.at {
            Some(Moment::At { time_ns }) => {
                self.collect_live(new_collector(Counted::Live), filter, time_ns, None)
            }
            Some(Moment::Peak) => {
                let peak = self.peak(filter, choice)?;
                let collector = new_collector(Counted::Live);
                self.collect_live(collector, filter, peak.time_ns, Some(peak.bytes))
            }
            Some(Moment::Snapshot { number }) => self.collect_snapshot(new_collector(Counted::Live), number),
            None => {
                let counted = filter.allocation_type.map_or(Counted::Born, Counted::Type);
                self.collect_born(new_collector(counted), filter, range)
            }
        }
    }

    fn collect_born(
        &mut self,
        mut collector: Collector<'_>,
        filter: &Filter,
        range: Span,
    ) -> Result<Collected> {
        let mut ledger = self.new_ledger();
        if filter.allocation_type.is_some_and(|kind| !kind.is_allocated_inside()) {
            self.build_live_set(&mut ledger, range.from, &mut (), |()| false)?;
            ledger.live_blocks().for_each(|block| collector.was_live(&block));
        }
        self.feed((range.from, range.to), &mut ledger, &mut collector, |_| false)?;
        let end_ns = range.to.min(self.trace.duration_ns());
        ledger.live_blocks().for_each(|block| collector.is_live_at_end(&block, end_ns));
        Ok(collector.finish())
    }

    /// Sums the blocks of a snapshot; the age of a block is its lifetime.
    fn collect_snapshot(&mut self, mut collector: Collector<'_>, number: u32) -> Result<Collected> {
        let present = self.trace.snapshots().len();
        let snapshot = self.trace.snapshot(number).ok_or(Error::NoSuchSnapshot { number, present })?;
        let time_ns = snapshot.time_ns;
        let damage =
            self.trace.for_each_snapshot_block(snapshot, |block| collector.is_live_at_end(block, time_ns))?;
        self.damage.extend(damage);
        let mut collected = collector.finish();
        collected.set_peak_time(time_ns);
        Ok(collected)
    }

    /// Sums the blocks that are live after the events at `time_ns`. With `until_bytes` the replay
    /// stops as soon as that many bytes are live. With a range, only blocks allocated in it count.
    fn collect_live(
        &mut self,
        mut collector: Collector<'_>,
        filter: &Filter,
        time_ns: u64,
        until_bytes: Option<u64>,
    ) -> Result<Collected> {
        let mut ledger = self.new_ledger();
        let end_ns = time_ns.saturating_add(1);
        let is_reached =
            |collector: &Collector<'_>| until_bytes.is_some_and(|bytes| collector.live_bytes() >= bytes);
        match filter.range {
            None => self.build_live_set(&mut ledger, end_ns, &mut collector, is_reached)?,
            Some(range) => {
                let span = (range.from, end_ns.min(range.to));
                self.feed(span, &mut ledger, &mut collector, is_reached)?;
            }
        }
        ledger.live_blocks().for_each(|block| collector.is_live_at_end(&block, time_ns));
        // The replay's start depends on checkpoints: oddities seen before the moment are no answer.
        collector.forget_oddities();
        let mut collected = collector.finish();
        collected.set_peak_time(time_ns);
        Ok(collected)
    }

    /// The peak of the chosen processes, heaps, threads and sizes inside the range. Other filters
    /// do not change it.
    fn peak(&mut self, filter: &Filter, choice: &Choice) -> Result<Peak> {
        if choice.is_everything()
            && filter.range.is_none()
            && let Ok(Some(summary)) = written_summary(self.trace)
        {
            return Ok(Peak { bytes: summary.totals.peak_bytes, time_ns: summary.totals.peak_time_ns });
        }
        let range = filter.range.unwrap_or(ALWAYS);
        let nothing_else = Filter::default();
        let mut collector = Collector::new(choice, &nothing_else, Counted::Live, range, None, false)
            .of_samples(self.trace.sampling());
        let mut ledger = self.new_ledger();
        self.feed((range.from, range.to), &mut ledger, &mut collector, |_| false)?;
        let (bytes, time_ns) = collector.peak();
        Ok(Peak { bytes, time_ns })
    }

    pub(crate) fn new_ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        for (index, process) in self.trace.processes().iter().enumerate() {
            ledger.add_process(ProcessIndex(index as u32), process.origin, process.start_ns);
        }
        ledger
    }

    /// Brings an empty ledger to the state before `time_ns`, or to the first state with
    /// `is_reached`. Starts at the last checkpoint before the last nanosecond, so that earlier
    /// events are not read.
    fn build_live_set<O: LiveObserver>(
        &mut self,
        ledger: &mut Ledger,
        time_ns: u64,
        observer: &mut O,
        is_reached: impl Fn(&O) -> bool,
    ) -> Result<()> {
        let before = time_ns.checked_sub(2);
        // A damaged checkpoint is no loss: the events give the same state.
        let checkpoint = before.and_then(|before| self.trace.checkpoint_before(before).unwrap_or(None));
        let Some(mut checkpoint) = checkpoint else {
            return self.feed((0, time_ns), ledger, observer, is_reached);
        };
        let mut ends = self.ends();
        end_before(&mut ends, checkpoint.time_ns, ledger, observer);
        let taken = ledger.load(std::mem::take(&mut checkpoint.blocks));
        taken.iter().for_each(|block| observer.was_live(block));
        let events = self.trace.events_after(&checkpoint, time_ns);
        self.feed_events((events, time_ns), ledger, observer, is_reached)
    }

    fn ends(&mut self) -> ProcessEnds {
        self.ends.get_or_insert_with(|| process_ends(self.trace)).clone()
    }

    /// Replays the events of a range of times until it ends or `is_reached`.
    pub(crate) fn feed<O: Observer>(
        &mut self,
        (from_ns, to_ns): (u64, u64),
        ledger: &mut Ledger,
        observer: &mut O,
        is_reached: impl Fn(&O) -> bool,
    ) -> Result<()> {
        self.feed_events((self.trace.events(from_ns, to_ns), to_ns), ledger, observer, is_reached)
    }

    /// Replays the events of a reader, which end before `to_ns`.
    fn feed_events<O: Observer>(
        &mut self,
        (mut events, to_ns): (EventReader<'_>, u64),
        ledger: &mut Ledger,
        observer: &mut O,
        is_reached: impl Fn(&O) -> bool,
    ) -> Result<()> {
        let mut ends = self.ends();
        let mut is_over = false;
        'chunks: while let Some(batch) = events.next_batch()? {
            for event in batch {
                if is_reached(observer) {
                    is_over = true;
                    break 'chunks;
                }
                if ends.next_ns() < event.time_ns {
                    end_before(&mut ends, event.time_ns, ledger, observer);
                }
                ledger.apply(event, self.trace.process_of(event.thread), observer);
            }
            let (read, all) = events.progress();
            (self.progress)(read, all);
        }
        if !is_over && !is_reached(observer) {
            end_before(&mut ends, to_ns, ledger, observer);
        }
        for damage in events.damage() {
            if !self.damage.contains(damage) {
                self.damage.push(*damage);
            }
        }
        Ok(())
    }
}

/// Ends the processes that had ended before a time.
#[cold]
fn end_before(ends: &mut ProcessEnds, time_ns: u64, ledger: &mut Ledger, observer: &mut impl Observer) {
    while let Some((end_ns, process)) = ends.take_before(time_ns) {
        ledger.end_process(process, end_ns, observer);
    }
}

/// Builds a summary with its course.
struct WithCourse<'t> {
    summary: SummaryBuilder,
    course: CourseTaker,
    stacks: &'t StackTable,
}

impl WithCourse<'_> {
    fn reach(&mut self, time_ns: u64) {
        if time_ns >= self.course.next_ns() {
            self.course.take(time_ns, &self.summary, |stack| self.stacks.parent(stack));
        }
    }
}

impl Observer for WithCourse<'_> {
    fn born(&mut self, block: &Block) {
        self.reach(block.alloc_ns);
        self.summary.born(block);
    }

    fn died(&mut self, block: &Block, death: &heapr_ledger::Death) {
        self.reach(death.time_ns);
        self.summary.died(block, death);
    }

    fn left(&mut self, block: &Block, time_ns: u64) {
        self.reach(time_ns);
        self.summary.left(block, time_ns);
    }

    fn failed(&mut self, event: &Event, process: ProcessIndex, size_bytes: u64, stack: StackIndex) {
        self.summary.failed(event, process, size_bytes, stack);
    }

    fn unmatched_free(&mut self, event: &Event, process: ProcessIndex, is_inherited: bool) {
        self.summary.unmatched_free(event, process, is_inherited);
    }
}

/// An observer that receives blocks that were live before the replay.
trait LiveObserver: Observer {
    fn was_live(&mut self, block: &Block);
}

impl LiveObserver for () {
    fn was_live(&mut self, _block: &Block) {}
}

impl LiveObserver for Collector<'_> {
    fn was_live(&mut self, block: &Block) {
        Collector::was_live(self, block);
    }
}

impl Observer for Collector<'_> {
    #[inline]
    fn born(&mut self, block: &Block) {
        Collector::born(self, block);
    }

    #[inline]
    fn died(&mut self, block: &Block, death: &heapr_ledger::Death) {
        let is_implied = death.cause == Cause::Implied;
        Collector::died(
            self,
            block,
            Death { free_ns: death.time_ns, is_temporary: death.is_temporary, is_implied },
        );
    }

    #[inline]
    fn left(&mut self, block: &Block, _time_ns: u64) {
        Collector::left(self, block);
    }

    fn failed(&mut self, event: &Event, process: ProcessIndex, size_bytes: u64, _stack: StackIndex) {
        Collector::failed(self, event, process, size_bytes);
    }

    fn unmatched_free(&mut self, event: &Event, process: ProcessIndex, is_inherited: bool) {
        self.freed_unknown(event, process, is_inherited);
    }
}
