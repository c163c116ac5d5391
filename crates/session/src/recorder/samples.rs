//! Sessions that sample: which means apply, and whose pages need no mark any more.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use heapr_ledger::{Cause, Death, Ledger, Observer, SummaryBuilder};
use heapr_trace::{Action, Block, Event, HeapId, ProcessIndex, StackIndex};
use heapr_wire::{FLAG_SAMPLED, PAGE_MARKS, PAGE_SHIFT, ProcessSlot, SAMPLE_ALL, UNMARKED_MAX};

use super::Recorder;
use crate::SampleRate;
use crate::recorder::process_state::ProcessState;
use crate::sampling::Figures;

/// Marks that wait for room in a process's slot; of more, pages stay marked, which costs that
/// process some records and nothing else.
const WAITING_MAX: usize = 1 << 16;

/// What an event turned out to be of a session that samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applied {
    /// It belongs into the file.
    Known,
    /// A free of a block that was no sample.
    NoSample,
}

/// A summary that is shown an event, and what it says of the event.
struct Noticing<'a> {
    summary: &'a mut SummaryBuilder,
    is_unmatched: bool,
    died: Option<Block>,
}

impl Observer for Noticing<'_> {
    fn born(&mut self, block: &Block) {
        self.summary.born(block);
    }

    fn died(&mut self, block: &Block, death: &Death) {
        if death.cause != Cause::Implied {
            self.died = Some(*block);
        }
        self.summary.died(block, death);
    }

    fn failed(&mut self, event: &Event, process: ProcessIndex, size_bytes: u64, stack: StackIndex) {
        self.summary.failed(event, process, size_bytes, stack);
    }

    fn unmatched_free(&mut self, event: &Event, process: ProcessIndex, is_inherited: bool) {
        self.is_unmatched = true;
        self.summary.unmatched_free(event, process, is_inherited);
    }
}

/// Applies an event; `freed` gets the block that has ended with it.
pub(super) fn apply(
    event: &Event,
    process: ProcessIndex,
    ledger: &mut Ledger,
    summary: &mut SummaryBuilder,
    freed: &mut impl FnMut(&Block),
) -> Applied {
    let mut noticing = Noticing { summary, is_unmatched: false, died: None };
    ledger.apply(event, process, &mut noticing);
    if let Some(block) = noticing.died.filter(|block| block.heap == HeapId::MALLOC) {
        freed(&block);
    }
    let is_free = matches!(event.action, Action::Free { .. }) && event.heap == HeapId::MALLOC;
    if is_free && noticing.is_unmatched { Applied::NoSample } else { Applied::Known }
}

impl Recorder {
    /// Tells the agents whose pages need no mark any more.
    pub(super) fn tell_unmarked(&mut self) {
        for (process, address_avma) in std::mem::take(&mut self.sink.unmarked) {
            let is_it = |state: &&mut ProcessState| state.index == process && !state.is_superseded;
            if let Some(state) = self.processes.iter_mut().rev().find(is_it)
                && state.unmarked.len() < WAITING_MAX
            {
                state.unmarked.push_back((address_avma >> PAGE_SHIFT) as u32 & (PAGE_MARKS as u32 - 1));
            }
        }
        for state in self.processes.iter_mut().filter(|state| !state.unmarked.is_empty()) {
            let slot = self.pool.process_slot(state.slot);
            let slot = slot.filter(|slot| slot.generation.load(Relaxed) == state.generation);
            match slot {
                Some(slot) if !state.has_ended => put_unmarked(slot, &mut state.unmarked),
                _ => state.unmarked.clear(),
            }
        }
    }

    /// The mean that the file has for a process that is new, or is recorded again.
    pub(super) fn first_mean_bytes(&self, process: ProcessIndex) -> u64 {
        self.sink.summary.sampling().map_or(SAMPLE_ALL, |sampling| sampling.mean_bytes(process, u64::MAX))
    }

    /// Does by itself what the session's rate says, and what growth asks for.
    pub(super) fn steer(&mut self, now_ns: u64) {
        let figures =
            Figures { now_ns, samples: self.sink.sample_count, live_bytes: self.sink.summary.live().0 };
        if let Some(mean_bytes) = self.sink.steering.as_mut().and_then(|steering| steering.look(figures)) {
            self.tell_mean(mean_bytes);
        }
    }

    /// Tells the agents how they sample from now on.
    fn tell_mean(&mut self, mean_bytes: u64) {
        self.pool.control().sample_mean_bytes.store(mean_bytes, Relaxed);
        self.follow_counting();
    }

    /// Has the calls of processes that were attached to counted before they come to the agent, or
    /// brings each to it while all are recorded. Where that cannot be done now it is tried again.
    pub(super) fn follow_counting(&mut self) {
        let is_counted = self.pool.control().sample_mean_bytes.load(Relaxed) != SAMPLE_ALL;
        let live = self.processes.iter_mut().filter(|state| !state.has_ended && !state.is_superseded);
        for state in live.filter(|state| state.is_counted != is_counted) {
            let outcome = heapr_inject::count_down(state.pid, is_counted);
            let is_later = matches!(outcome, Ok(false) | Err(heapr_inject::Error::NoQuietMoment { .. }));
            state.is_counted = is_counted ^ is_later;
        }
    }

    /// From now on samples as somebody wants it. `false`: the session records all, for good.
    pub(crate) fn set_sample_rate(&mut self, rate: SampleRate) -> bool {
        let Some(steering) = &mut self.sink.steering else { return false };
        let mean_bytes = steering.set(rate);
        self.tell_mean(mean_bytes);
        true
    }

    /// How it samples, and the mean of this moment.
    pub(crate) fn sample_rate(&self) -> Option<(SampleRate, u64)> {
        self.sink.steering.as_ref().map(|steering| (steering.rate(), steering.mean_bytes()))
    }

    /// Whether its allocations may be samples.
    pub(crate) fn is_sampled(&self) -> bool {
        self.pool.control().flags.load(Relaxed) & FLAG_SAMPLED != 0
    }
}

/// Writes what there is room for.
fn put_unmarked(slot: &ProcessSlot, waiting: &mut VecDeque<u32>) {
    let mut told = slot.unmarked_told.load(Relaxed);
    loop {
        // Written by the target: whatever it says, no more than there is room for is written.
        let taken = slot.unmarked_taken.load(Acquire);
        let is_full = told.wrapping_sub(taken) as usize >= UNMARKED_MAX;
        let Some(index) = (!is_full).then(|| waiting.pop_front()).flatten() else { return };
        if let Some(place) = slot.unmarked.get(told as usize % UNMARKED_MAX) {
            place.store(index, Relaxed);
        }
        told = told.wrapping_add(1);
        // Release: who sees the number sees what was written.
        slot.unmarked_told.store(told, Release);
    }
}
