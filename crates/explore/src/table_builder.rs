//! Replay of all events into an [`EventTable`].
//!
//! The ledger reports a block's end without the number of its allocation. A block carries the time
//! of its birth, which the ledger does not use. Here this field carries the number of the
//! allocation instead.

use heapr_ledger::{Cause, Death, Ledger, Observer, ProcessEnds};
use heapr_query::{Error, Progress, Result, process_ends};
use heapr_trace::{Action, Block, ChunkInfo, Event, HeapId, ProcessIndex, Sampling, StackIndex, Trace};

use crate::event_table::{End, EventTable, Failure, Move, Stray, TableLimit, UnknownFree};
use crate::parallelism::Parallelism;
use crate::read_ahead::{Outcome, for_each_batch};
use crate::site_table::SiteTable;

/// Marks the number of an event that is no allocation.
const NO_ALLOCATION: u64 = 1 << 63;
/// Stands for no allocation.
const NONE: u32 = u32::MAX;

impl EventTable {
    /// Reads all events; `None` if there are more than the limit allows. `is_cancelled` is called
    /// now and then.
    ///
    /// # Errors
    /// The trace cannot be read, or the call was cancelled.
    pub fn build(
        trace: &Trace,
        (limit, parallelism): (TableLimit, Parallelism),
        progress: &mut Progress<'_>,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Self>> {
        let mut growing = GrowingTable::default();
        if !growing.grow(trace, (limit, parallelism), progress, is_cancelled)? {
            return Ok(None);
        }
        let mut table = growing.builder.table;
        table.sites = growing.builder.sites.into_sites();
        table.finish();
        Ok(Some(table))
    }
}

/// The table of a growing file: each call reads only the added events.
#[derive(Default)]
pub struct GrowingTable {
    ledger: Ledger,
    /// Number of processes that the ledger knows.
    process_count: usize,
    builder: Builder,
    /// The chunks that were read.
    chunks: Vec<ChunkInfo>,
    event_count: u64,
    /// Time of the last event that was read.
    last_ns: u64,
    /// Ends of processes that were known when the events around them were read.
    known_ends: ProcessEnds,
}

impl std::fmt::Debug for GrowingTable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("GrowingTable").field("chunks", &self.chunks.len()).finish_non_exhaustive()
    }
}

impl GrowingTable {
    /// The table of a trace that has grown since the last call. Another trace is read completely.
    /// The state stays here and the table is a copy. The copy takes the memory of a second table,
    /// and some thirty times less time than reading.
    ///
    /// # Errors
    /// The errors of [`EventTable::build`]; after an error the next call reads all events.
    pub fn read(
        &mut self,
        trace: &Trace,
        (limit, parallelism): (TableLimit, Parallelism),
        progress: &mut Progress<'_>,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<EventTable>> {
        let both = TableLimit { memory_bytes: limit.memory_bytes / 2 };
        if !both.allows(trace.event_count(), trace.is_sampled()) {
            *self = Self::default();
            return EventTable::build(trace, (limit, parallelism), progress, is_cancelled);
        }
        let is_whole = self.grow(trace, (limit, parallelism), progress, is_cancelled);
        if !matches!(is_whole, Ok(true)) {
            *self = Self::default();
            return is_whole.map(|_| None);
        }
        let mut table = self.builder.table.clone();
        table.sites = self.builder.sites.sites().to_vec();
        table.finish();
        Ok(Some(table))
    }

    /// Number of chunks of events that were read.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Whether a trace begins with the chunks that were read. Chunks that were damaged may be
    /// complete by now, so that damage forces a new reading.
    fn is_begin_of(&self, trace: &Trace) -> bool {
        self.builder.table.damage.is_empty()
            && self.process_count <= trace.processes().len()
            && self.has_ends_of(trace)
            && self.chunks.iter().eq(trace.event_chunks().take(self.chunks.len()))
    }

    /// Whether the known ends of processes are still right. In a growing file ends become known
    /// late: when the file is complete, all events may be read again.
    fn has_ends_of(&self, trace: &Trace) -> bool {
        if !matches!(trace.summary_totals(), Ok(Some(_))) {
            return true;
        }
        let mut known = self.known_ends.clone();
        let mut now = process_ends(trace);
        while let Some(end) = now.take_before(self.last_ns) {
            if known.take_before(self.last_ns) != Some(end) {
                return false;
            }
        }
        known.take_before(self.last_ns).is_none()
    }

    /// Reads the new events. Returns `false` if there are more than the limit allows.
    fn grow(
        &mut self,
        trace: &Trace,
        (limit, parallelism): (TableLimit, Parallelism),
        progress: &mut Progress<'_>,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<bool> {
        if !self.is_begin_of(trace) {
            *self = Self::default();
        }
        let event_count = trace.event_count();
        if !limit.allows(event_count, trace.is_sampled()) {
            return Ok(false);
        }
        for (index, process) in trace.processes().iter().enumerate().skip(self.process_count) {
            self.ledger.add_process(ProcessIndex(index as u32), process.origin, process.start_ns);
        }
        let mut ends = process_ends(trace);
        while let Some((end_ns, process)) = ends.take_before(self.last_ns) {
            // Ending a process twice has no effect.
            self.end(process, self.last_ns.max(end_ns));
        }
        self.process_count = trace.processes().len();
        self.builder.sampling = trace.is_sampled().then(|| trace.sampling().clone());
        self.builder.table.reserve(event_count.saturating_sub(self.event_count));
        let mut numbered = Vec::new();
        let events = trace.events_behind(self.chunks.len());
        let reads_ahead = parallelism.threads > 1
            && event_count.saturating_sub(self.event_count) > parallelism.least as u64;
        let outcome = for_each_batch(events, reads_ahead, |batch, (read, all)| {
            if is_cancelled() {
                return Err(Error::GivenUp);
            }
            // A damaged index may claim fewer events than there are.
            self.event_count += batch.len() as u64;
            if !limit.allows(self.event_count, trace.is_sampled()) {
                return Ok(false);
            }
            let mut rest = batch;
            while let Some(last) = rest.last() {
                let end_ns = ends.next_ns();
                let (before, after) = rest.split_at(rest.partition_point(|event| event.time_ns <= end_ns));
                self.builder.number(before, trace, &mut numbered);
                self.ledger.apply_all(&numbered, &mut self.builder);
                self.last_ns = before.last().map_or(self.last_ns, |event| event.time_ns);
                if let Some((end_ns, process)) = ends.take_before(last.time_ns) {
                    self.known_ends.add(end_ns, process);
                    self.end(process, end_ns);
                }
                rest = after;
            }
            progress(read, all);
            Ok(true)
        })?;
        let Outcome::Whole(damage) = outcome else { return Ok(false) };
        self.chunks = trace.event_chunks().copied().collect();
        self.builder.table.damage.extend(damage);
        Ok(true)
    }
}

impl GrowingTable {
    /// Ends a process.
    fn end(&mut self, process: ProcessIndex, end_ns: u64) {
        let number = self.builder.number_of_end(end_ns);
        self.ledger.end_process(process, number, &mut self.builder);
    }
}

#[derive(Default)]
struct Builder {
    table: EventTable,
    sites: SiteTable,
    /// Times of the batch's events that are not allocations.
    other_times_ns: Vec<u64>,
    /// Times of the batch's allocations.
    alloc_times_ns: Vec<u64>,
    /// Number of the batch's first allocation.
    first_allocation: u64,
    /// Last allocation of each thread from malloc.
    last_malloc: Vec<u32>,
    /// Sampling, from which weights are computed; `None` if each allocation counts as itself.
    sampling: Option<Sampling>,
}

impl Builder {
    /// Replaces the times of events by numbers.
    fn number(&mut self, batch: &[Event], trace: &Trace, numbered: &mut Vec<(Event, ProcessIndex)>) {
        numbered.clear();
        self.other_times_ns.clear();
        self.alloc_times_ns.clear();
        self.first_allocation = self.table.allocation_count() as u64;
        for event in batch {
            let number = match event.action {
                Action::Alloc { .. } | Action::Realloc { .. } => {
                    self.alloc_times_ns.push(event.time_ns);
                    self.first_allocation + self.alloc_times_ns.len() as u64 - 1
                }
                Action::Free { .. } | Action::Failed { .. } => {
                    self.other_times_ns.push(event.time_ns);
                    NO_ALLOCATION | (self.other_times_ns.len() as u64 - 1)
                }
            };
            numbered.push((Event { time_ns: number, ..*event }, trace.process_of(event.thread)));
        }
    }

    /// Number that stands for the time of a process's end, until the next events are numbered.
    fn number_of_end(&mut self, end_ns: u64) -> u64 {
        self.other_times_ns.push(end_ns);
        NO_ALLOCATION | (self.other_times_ns.len() as u64 - 1)
    }

    /// Time that a number stands for.
    #[inline(always)]
    fn time_ns(&self, number: u64) -> u64 {
        if number & NO_ALLOCATION != 0 {
            self.other_times_ns[(number & !NO_ALLOCATION) as usize]
        } else {
            self.alloc_times_ns[(number - self.first_allocation) as usize]
        }
    }

    fn stray(&self, event: &Event, process: ProcessIndex) -> Stray {
        Stray { time_ns: self.time_ns(event.time_ns), process, heap: event.heap, thread: event.thread }
    }

    fn last_malloc_of(&mut self, thread: u32) -> &mut u32 {
        let thread = thread as usize;
        if thread >= self.last_malloc.len() {
            self.last_malloc.resize(thread + 1, NONE);
        }
        &mut self.last_malloc[thread]
    }
}

impl Observer for Builder {
    #[inline]
    fn born(&mut self, block: &Block) {
        let time_ns = self.time_ns(block.alloc_ns);
        self.table.times.push(time_ns);
        if block.heap == HeapId::MALLOC {
            let allocation = self.table.allocation_count() as u32;
            *self.last_malloc_of(block.thread.0) = allocation;
        }
        let site = self.sites.number(block);
        match &self.sampling {
            None => self.table.push_allocation(site, block.size_bytes),
            // Weight of the sample, which depends on the real time.
            Some(sampling) => {
                self.table.push_sample(site, sampling.weight(&Block { alloc_ns: time_ns, ..*block }));
            }
        }
    }

    #[inline]
    fn died(&mut self, block: &Block, death: &Death) {
        let allocation = block.alloc_ns as u32;
        let time_ns = self.time_ns(death.time_ns);
        self.table.times.push(time_ns);
        let sequence = self.table.move_count();
        self.table.moves.push(Move::end(allocation));
        self.table.ends[allocation as usize] = End::new(sequence, death.is_temporary);
        if death.cause == Cause::Implied {
            self.table.implied_ends.push(allocation);
        }
        if death.is_temporary && block.heap != HeapId::MALLOC {
            // The block was recognised by the address of its thread's last block from malloc. A
            // replay that starts later does not see that block.
            let since = *self.last_malloc_of(death.thread.0);
            self.table.temporary_since.push((allocation, since));
        }
    }

    fn alloc_ns(&self, block: &Block) -> u64 {
        self.table.births.get(block.alloc_ns as usize).map_or(0, |&birth| self.table.times.get(birth))
    }

    /// Adds a move after which the block is not live. The allocation has no end, because it was not
    /// freed.
    fn left(&mut self, block: &Block, number: u64) {
        let allocation = block.alloc_ns as u32;
        let time_ns = self.time_ns(number);
        self.table.times.push(time_ns);
        let sequence = self.table.move_count();
        self.table.moves.push(Move::end(allocation));
        self.table.left.push((allocation, sequence));
    }

    fn failed(&mut self, event: &Event, process: ProcessIndex, size_bytes: u64, _stack: StackIndex) {
        let call = self.stray(event, process);
        self.table.failures.push(Failure { call, size_bytes });
    }

    fn unmatched_free(&mut self, event: &Event, process: ProcessIndex, is_inherited: bool) {
        if self.sampling.as_ref().is_some_and(|sampling| sampling.is_in_doubt(process)) {
            return;
        }
        let call = self.stray(event, process);
        self.table.unknown_frees.push(UnknownFree { call, is_inherited });
    }
}
