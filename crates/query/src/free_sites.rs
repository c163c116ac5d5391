//! Frees of a trace by the stack of the call, including double frees and frees of unknown
//! addresses.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use heapr_ledger::{Cause, Death, Observer};
use heapr_trace::{
    Action, Amounts, Block, Event, HeapId, ProcessIndex, Sampling, StackIndex, Trace, Variances, Weight,
};

use crate::choice::Choice;
use crate::error::{Error, Result};
use crate::filter::{Filter, Span};
use crate::replay::{Progress, Replay};
use crate::run::is_without_events;

/// Kind of the freed address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Freed {
    /// A live block.
    Live,
    /// A block that was already free.
    Twice {
        /// Stack of the first free.
        before: StackIndex,
        /// Stack of the allocation.
        allocated: StackIndex,
    },
    /// A block that a forked child inherited from its parent.
    Inherited,
    /// An address that was never seen allocated.
    Unknown,
}

/// Frees of one kind at one stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSite {
    /// Kind of the freed addresses.
    pub freed: Freed,
    /// Stack of the call; empty if frees carry no stacks.
    pub stack: StackIndex,
    /// Number of calls as `total_count`, and freed bytes as `total_bytes`. The bytes are 0 unless
    /// blocks were live. For samples both are estimates.
    pub amounts: Amounts,
}

/// The frees of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreeSites {
    /// Frees in order of kind and stack.
    pub sites: Vec<FreeSite>,
    /// Chunks of events that could not be used.
    pub damage: Vec<heapr_trace::Damage>,
}

/// Finds the frees of a trace. Of a filter, the processes, heaps, threads (that free), sizes and
/// the range (of the frees) are used.
///
/// # Errors
/// The filter names what the trace does not have; the trace has no events or cannot be read.
pub fn free_sites(trace: &Trace, filter: &Filter, progress: &mut Progress<'_>) -> Result<FreeSites> {
    let choice = Choice::new(filter, trace.processes(), trace.threads())?;
    if is_without_events(trace) {
        return Err(Error::NoEvents);
    }
    let range = filter.range.unwrap_or(Span { from: 0, to: u64::MAX });
    let progress: &mut Progress<'_> = &mut |read, all| progress(read, all);
    let mut replay = Replay::new(trace, progress);
    let sampling = trace.sampling();
    let mut finder =
        Finder { choice: &choice, sampling, range, sites: BTreeMap::new(), freed: HashMap::new() };
    // Replayed from the start, so that blocks allocated before the range are known.
    let mut ledger = replay.new_ledger();
    replay.feed((0, range.to), &mut ledger, &mut finder, |_| false)?;
    let site = |((freed, stack), amounts)| FreeSite { freed, stack, amounts };
    Ok(FreeSites { sites: finder.sites.into_iter().map(site).collect(), damage: replay.damage })
}

struct Finder<'a> {
    choice: &'a Choice,
    sampling: &'a Sampling,
    range: Span,
    sites: BTreeMap<(Freed, StackIndex), Amounts>,
    /// Addresses that are free, with the stacks of the free and of the allocation.
    freed: HashMap<(ProcessIndex, HeapId, u64), (StackIndex, StackIndex)>,
}

impl Finder<'_> {
    fn add(&mut self, freed: Freed, stack: StackIndex, weight: Weight) {
        *self.sites.entry((freed, stack)).or_default() += &Amounts {
            total_count: weight.count,
            total_bytes: weight.bytes,
            variances: Variances {
                total_count: weight.count_variance,
                total_bytes: weight.bytes_variance_kib2,
                ..Variances::default()
            },
            ..Amounts::default()
        };
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
        // A realloc frees a block, but is no free.
        if death.cause == Cause::Free
            && self.range.contains(death.time_ns)
            && self.choice.has_size(block.size_bytes)
            && self.choice.has_origin(block.process, block.heap, death.thread)
        {
            self.add(Freed::Live, death.stack, self.sampling.weight(block));
        }
    }

    fn unmatched_free(&mut self, event: &Event, process: ProcessIndex, is_inherited: bool) {
        // In a sampled process this is a free of a block that is no sample.
        if self.sampling.is_in_doubt(process) {
            return;
        }
        let (address_avma, stack) = match event.action {
            Action::Free { address_avma, stack, .. } => (address_avma, stack),
            Action::Realloc { old_address_avma, stack, .. } => (old_address_avma, stack),
            _ => return,
        };
        let key = (process, event.heap, address_avma);
        let known = self.freed.get(&key).copied();
        // Another free of this address is a double free.
        self.freed.entry(key).or_insert((stack, StackIndex::EMPTY));
        if !self.range.contains(event.time_ns) || !self.choice.has_origin(process, event.heap, event.thread) {
            return;
        }
        let freed = match known {
            Some((before, allocated)) => Freed::Twice { before, allocated },
            None if is_inherited => Freed::Inherited,
            None => Freed::Unknown,
        };
        self.add(freed, stack, Weight::exact(0));
    }
}
