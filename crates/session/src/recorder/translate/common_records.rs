//! Fast path for the most common records, many at a time. A common record is an allocation or free
//! of the main heap, in order of time, while no realloc is under way.
//!
//! It does the same as `translate`, which handles every case, and leaves all other records to it.
//! Before, half of the time between the buffers and the ledger was spent on checking each record
//! for special cases.
//!
//! ```text
//! one stream, up to another stream's next record:        A A A A A|
//! two streams, up to a third stream's next record:       A B B A B A A B|
//! ```
//! Two threads that work at the same time take turns at nearly every record, in no order that a
//! processor could predict. So the choice of the next stream is not a branch but an index computed
//! from their times.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use heapr_trace::{Action, Event, HeapId, ProcessIndex, ThreadIndex};
use heapr_wire::{
    HEAP_MALLOC, RecordKind, SAMPLE_ALL, SHORT, SHORT_ALLOC, STACK_BITS, record_ticks, short_address,
};

use crate::recorder::intake::clock::Clock;
use crate::recorder::intake::merge::{Head, order};
use crate::recorder::output::sink::Sink;
use crate::recorder::state::process_state::ProcessState;

const ALLOC: u64 = RecordKind::Alloc as u64;
const FREE: u64 = RecordKind::Free as u64;
const FREE_WORDS: usize = RecordKind::Free.words();
const SHORT_WORDS: usize = RecordKind::ShortFree.words();
const _: () = assert!(RecordKind::Alloc.words() == FREE_WORDS + 1);
const _: () = assert!(RecordKind::ShortAlloc.words() == SHORT_WORDS + 1);

/// Records of a stream, from the next one to the end of its current buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    process: &'a ProcessState,
    thread: ThreadIndex,
    words: &'a [AtomicU64],
    word0: u64,
    ticks: u64,
    /// Sort key of the next record; see [`order`].
    order: u64,
    /// Words read so far.
    pub(crate) taken: usize,
    /// Time of the last record read.
    pub(crate) last_ticks: u64,
}

impl<'a> Source<'a> {
    pub(crate) fn new(head: &Head<'a>, process: &'a ProcessState, thread: ThreadIndex) -> Self {
        let Head { ticks, word0, words } = *head;
        Self { process, thread, words, word0, ticks, order: head.order(), taken: 0, last_ticks: 0 }
    }

    /// Returns the next record's event and its length in words. `None` if the record is not a
    /// common one, or is cut off by the buffer's end.
    #[inline(always)]
    fn event(&self, clock: &Clock, last_ns: u64) -> Option<(Event, usize)> {
        let behind = self.words.get(self.taken + 1..)?;
        let is_alloc;
        let address_avma;
        let packed;
        let words;
        // Nearly all records are short. No branch here depends on alloc or free: behind a free
        // follows another record.
        if self.word0 & SHORT != 0 {
            is_alloc = self.word0 & SHORT_ALLOC != 0;
            address_avma = short_address(self.word0);
            packed = match behind.first() {
                Some(word) => word.load(Relaxed),
                None if is_alloc => return None,
                None => 0,
            };
            words = SHORT_WORDS;
        } else {
            let [place, behind_place, ..] = behind else { return None };
            let kind = self.word0 >> RecordKind::SHIFT;
            is_alloc = kind == ALLOC;
            address_avma = place.load(Relaxed);
            packed = behind_place.load(Relaxed);
            words = FREE_WORDS;
            // The heap's number is above the address; 0 is the program's main heap.
            if !matches!(kind, ALLOC | FREE) || address_avma >> 56 != 0 {
                return None;
            }
        }
        let time_ns = clock.ns(self.ticks);
        if time_ns < last_ns {
            return None;
        }
        let packed = packed & 0_u64.wrapping_sub(u64::from(is_alloc));
        let stack = self.process.called.known(packed)?;
        let size_bytes = packed >> STACK_BITS;
        let action = if is_alloc {
            Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false }
        } else {
            Action::Free { address_avma, stack, is_moved_realloc: false }
        };
        let event = Event { time_ns, thread: self.thread, heap: HeapId::MALLOC, action };
        Some((event, words + usize::from(is_alloc)))
    }

    /// Whether no realloc is under way, no block is in a pool, and nothing was sampled. After
    /// sampling, an allocation would say that all are recorded again.
    #[inline(always)]
    fn is_of_plain_process(&self) -> bool {
        self.process.reallocs.is_empty()
            && self.process.sample_mean_bytes == SAMPLE_ALL
            && !self.process.own_heaps.follows(HEAP_MALLOC)
    }

    #[inline(always)]
    fn process(&self) -> ProcessIndex {
        self.process.index
    }

    /// Steps over a record; `false` if it was the last.
    #[inline(always)]
    fn step(&mut self, words: usize) -> bool {
        self.taken += words;
        self.last_ticks = self.ticks;
        let Some(next) = self.words.get(self.taken) else { return false };
        self.word0 = next.load(Relaxed);
        self.ticks = record_ticks(self.word0, self.last_ticks);
        self.order = order(self.word0, self.ticks);
        true
    }
}

/// Processes common records of one stream up to `until`; stops at the first other record.
#[inline]
pub(crate) fn take_one(source: &mut Source<'_>, until: u64, clock: &Clock, sink: &mut Sink) {
    if !source.is_of_plain_process() {
        return;
    }
    while source.order <= until {
        let Some((event, words)) = source.event(clock, sink.last_ns) else { return };
        sink.event(&event, source.process());
        if !source.step(words) {
            return;
        }
    }
}

/// Processes common records of two streams in their order, up to the first other record or the
/// first behind `until`. With equal order the current stream continues, and the first one begins.
/// Returns the index of the stream read last.
#[inline]
pub(crate) fn take_two(sources: &mut [Source<'_>; 2], until: u64, clock: &Clock, sink: &mut Sink) -> usize {
    if !sources.iter().all(Source::is_of_plain_process) {
        return 0;
    }
    let mut last = 0;
    loop {
        let next = last ^ usize::from(sources[last ^ 1].order < sources[last].order);
        let source = &mut sources[next % 2];
        if source.order > until {
            return last;
        }
        let Some((event, words)) = source.event(clock, sink.last_ns) else { return last };
        sink.event(&event, source.process());
        last = next % 2;
        if !source.step(words) {
            return last;
        }
    }
}
