//! Sampling sessions: the means that apply, and pages whose marks can be removed.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use heapr_ledger::{Cause, Death, Ledger, Observer, SummaryBuilder};
use heapr_trace::{Action, Block, Event, HeapId, ProcessIndex, StackIndex};
use heapr_wire::{FLAG_SAMPLED, PAGE_MARKS, PAGE_SHIFT, ProcessSlot, SAMPLE_ALL, UNMARKED_MAX};

use crate::SampleRate;
use crate::recorder::Recorder;
use crate::recorder::state::process_state::ProcessState;
use crate::sampling::Figures;

/// Largest number of marks that wait for room in a process's slot. Further pages stay marked, which
/// only costs that process some records.
const WAITING_MAX: usize = 1 << 16;

/// Result of applying an event in a sampling session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applied {
    /// Event belongs into the file.
    Known,
    /// Free of a block that was not sampled.
    NoSample,
}

/// Observer that forwards an event to the summary and notes what became of it.
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

/// Applies an event; `freed` gets the block that ended with it.
pub(crate) fn apply(
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
    /// Tells the agents which pages need no mark any more.
    pub(crate) fn tell_unmarked(&mut self) {
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

    /// Returns the mean that the file has for a process that is new, or is recorded again.
    pub(crate) fn first_mean_bytes(&self, process: ProcessIndex) -> u64 {
        self.sink.summary.sampling().map_or(SAMPLE_ALL, |sampling| sampling.mean_bytes(process, u64::MAX))
    }

    /// Adjusts the sampling mean to the session's rate and to growth.
    pub(crate) fn steer(&mut self, now_ns: u64) {
        let figures = Figures {
            now_ns,
            samples: self.sink.sample_count,
            live_bytes: self.sink.summary.live().bytes.value,
        };
        if let Some(mean_bytes) = self.sink.steering.as_mut().and_then(|steering| steering.look(figures)) {
            self.tell_mean(mean_bytes);
        }
    }

    /// Tells the agents the new mean.
    fn tell_mean(&mut self, mean_bytes: u64) {
        self.pool.control().sample_mean_bytes.store(mean_bytes, Relaxed);
        self.follow_counting();
    }

    /// Switches the counting of calls in attached processes. While sampling, calls are counted
    /// before they reach the agent; while all are recorded, each call reaches it. If a process
    /// cannot be switched at once, it is tried again.
    pub(crate) fn follow_counting(&mut self) {
        let is_counted = self.pool.control().sample_mean_bytes.load(Relaxed) != SAMPLE_ALL;
        let live = self.processes.iter_mut().filter(|state| !state.has_ended && !state.is_superseded);
        for state in live.filter(|state| state.is_counted != is_counted) {
            let outcome = heapr_inject::count_down(state.pid, is_counted);
            let is_later = matches!(outcome, Ok(false) | Err(heapr_inject::Error::NoQuietMoment { .. }));
            state.is_counted = is_counted ^ is_later;
        }
    }

    /// Sets the sampling rate. Returns `false` if the session records all allocations for good.
    pub(crate) fn set_sample_rate(&mut self, rate: SampleRate) -> bool {
        let Some(steering) = &mut self.sink.steering else { return false };
        let mean_bytes = steering.set(rate);
        self.tell_mean(mean_bytes);
        true
    }

    /// Returns the sampling rate and the current mean.
    pub(crate) fn sample_rate(&self) -> Option<(SampleRate, u64)> {
        self.sink.steering.as_ref().map(|steering| (steering.rate(), steering.mean_bytes()))
    }

    /// Whether the session samples.
    pub(crate) fn is_sampled(&self) -> bool {
        self.pool.control().flags.load(Relaxed) & FLAG_SAMPLED != 0
    }
}

/// Writes as many waiting marks as the slot has room for.
fn put_unmarked(slot: &ProcessSlot, waiting: &mut VecDeque<u32>) {
    let mut told = slot.unmarked_told.load(Relaxed);
    loop {
        // Written by the target: whatever the value, no more than the room is written.
        let taken = slot.unmarked_taken.load(Acquire);
        let is_full = told.wrapping_sub(taken) as usize >= UNMARKED_MAX;
        let Some(index) = (!is_full).then(|| waiting.pop_front()).flatten() else { return };
        if let Some(place) = slot.unmarked.get(told as usize % UNMARKED_MAX) {
            place.store(index, Relaxed);
        }
        told = told.wrapping_add(1);
        // Release: a reader of the number also sees the entries.
        slot.unmarked_told.store(told, Release);
    }
}
