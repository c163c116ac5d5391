//! Who frees: the frees of a trace by the stack of the call, those of what was free already, and
//! those of what is unknown.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use heapr_ledger::{Cause, Death, Observer};
use heapr_trace::{Action, Block, Event, HeapId, ProcessIndex, StackIndex, Trace};

use crate::choice::Choice;
use crate::error::{Error, Result};
use crate::filter::{Filter, Span};
use crate::replay::{Progress, Replay};
use crate::run::is_without_events;

/// What a free was of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Freed {
    /// A live block.
    Live,
    /// One that was free already.
    Twice {
        /// Where it had been freed.
        before: StackIndex,
        /// Where it had been allocated.
        allocated: StackIndex,
    },
    /// One that a forked child has from its parent.
    Inherited,
    /// One that was never seen allocated.
    Unknown,
}

/// Frees of one kind at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSite {
    /// Of what.
    pub freed: Freed,
    /// The stack of the call; empty where frees carry none.
    pub stack: StackIndex,
    /// Number of calls.
    pub count: u64,
    /// Bytes given back; 0 where it was no live block.
    pub bytes: u64,
}

/// The frees of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreeSites {
    /// By kind and stack.
    pub sites: Vec<FreeSite>,
    /// Chunks of events that could not be used.
    pub damage: Vec<heapr_trace::Damage>,
}

/// Finds them. Of a filter, processes, heaps, threads (that free), sizes and the range (of the
/// frees) count.
///
/// # Errors
/// The filter has others, or names what the trace does not have; the trace has no events or cannot
/// be read.
pub fn free_sites(trace: &Trace, filter: &Filter, progress: &mut Progress<'_>) -> Result<FreeSites> {
    let choice = Choice::new(filter, trace.processes(), trace.threads())?;
    if is_without_events(trace) {
        return Err(Error::NoEvents);
    }
    let range = filter.range.unwrap_or(Span { from: 0, to: u64::MAX });
    let mut replay = Replay { trace, progress: &mut |read, all| progress(read, all), damage: Vec::new() };
    let mut finder = Finder { choice: &choice, range, sites: BTreeMap::new(), freed: HashMap::new() };
    // Blocks of before the range are known ones.
    let mut ledger = replay.new_ledger();
    replay.feed(trace.events(0, range.to), &mut ledger, &mut finder, |_| false)?;
    let site = |((freed, stack), (count, bytes))| FreeSite { freed, stack, count, bytes };
    Ok(FreeSites { sites: finder.sites.into_iter().map(site).collect(), damage: replay.damage })
}

struct Finder<'a> {
    choice: &'a Choice,
    range: Span,
    sites: BTreeMap<(Freed, StackIndex), (u64, u64)>,
    /// Addresses that are free: where they were freed and had been allocated.
    freed: HashMap<(ProcessIndex, HeapId, u64), (StackIndex, StackIndex)>,
}

impl Finder<'_> {
    fn add(&mut self, freed: Freed, stack: StackIndex, bytes: u64) {
        let site = self.sites.entry((freed, stack)).or_default();
        site.0 += 1;
        site.1 = site.1.saturating_add(bytes);
    }
}

impl Observer for Finder<'_> {
    fn born(&mut self, block: &Block) {
        self.freed.remove(&(block.process, block.heap, block.address_avma));
    }

    fn died(&mut self, block: &Block, death: &Death) {
        if death.cause == Cause::Implied {
            return;
        }
        self.freed.insert((block.process, block.heap, block.address_avma), (death.stack, block.stack));
        // A realloc gives a block back, but is no free.
        if death.cause == Cause::Free
            && self.range.contains(death.time_ns)
            && self.choice.has_size(block.size_bytes)
            && self.choice.has_origin(block.process, block.heap, death.thread)
        {
            self.add(Freed::Live, death.stack, block.size_bytes);
        }
    }

    fn unmatched_free(&mut self, event: &Event, process: ProcessIndex, is_inherited: bool) {
        let (address_avma, stack) = match event.action {
            Action::Free { address_avma, stack, .. } => (address_avma, stack),
            Action::Realloc { old_address_avma, stack, .. } => (old_address_avma, stack),
            _ => return,
        };
        let key = (process, event.heap, address_avma);
        let known = self.freed.get(&key).copied();
        // Whoever frees it once more frees it twice.
        self.freed.entry(key).or_insert((stack, StackIndex::EMPTY));
        if !self.range.contains(event.time_ns) || !self.choice.has_origin(process, event.heap, event.thread) {
            return;
        }
        let freed = match known {
            Some((before, allocated)) => Freed::Twice { before, allocated },
            None if is_inherited => Freed::Inherited,
            None => Freed::Unknown,
        };
        self.add(freed, stack, 0);
    }
}
