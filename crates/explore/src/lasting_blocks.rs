//! Blocks that live at one of some moments, with their addresses. Most blocks live at none: the
//! table of events tells these without a look at their addresses, which it has not.

use heapr_query::{Error, Result};
use heapr_trace::{Action, HeapId, ProcessIndex, StackIndex};

use crate::event_table::NEVER;
use crate::explorer::Explorer;

/// Block that lives at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastingBlock {
    /// Address of the block.
    pub address_avma: u64,
    /// Size of the block.
    pub size_bytes: u64,
    /// Stack of the allocation.
    pub stack: StackIndex,
    /// Index of the first moment at which it lives.
    pub first: usize,
    /// Index of the first moment at which it does not live any more; the number of moments if it
    /// lives at the last one.
    pub end: usize,
}

impl Explorer {
    /// Blocks of a process that live at a moment or more, in the order of their allocations. A
    /// block that was not freed lives, however its process ended. `is_wanted` chooses heaps. `None`
    /// without a table of events, or if the table does not fit the events of the file.
    ///
    /// # Errors
    /// The trace cannot be read, or the call was cancelled.
    pub fn lasting_blocks(
        &self,
        process: Option<ProcessIndex>,
        moments_ns: &[u64],
        is_wanted: impl Fn(HeapId) -> bool,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Vec<LastingBlock>>> {
        let Some(table) = self.table().filter(|table| table.damage.is_empty()) else { return Ok(None) };
        // Events at the time of a moment count as before it.
        let borders: Vec<u32> =
            moments_ns.iter().map(|&ns| table.times.count_before(ns.saturating_add(1))).collect();
        let moment_of = |sequence: u32| borders.partition_point(|&border| border <= sequence);
        let trace = self.trace();
        let processes: Vec<ProcessIndex> = trace.threads().iter().map(|thread| thread.process).collect();
        let mut blocks = Vec::new();
        let mut number = 0;
        // Births are in the order of time.
        let mut first = 0;
        let mut events = trace.events(0, u64::MAX);
        while let Some(batch) = events.next_batch()? {
            if is_cancelled() {
                return Err(Error::GivenUp);
            }
            for event in batch {
                let (Action::Alloc { address_avma, size_bytes, stack, .. }
                | Action::Realloc { address_avma, size_bytes, stack, .. }) = event.action
                else {
                    continue;
                };
                let allocation = number;
                number += 1;
                let (Some(&birth), Some(end)) = (table.births.get(allocation), table.ends.get(allocation))
                else {
                    return Ok(None);
                };
                while borders.get(first).is_some_and(|&border| border <= birth) {
                    first += 1;
                }
                let end = end.sequence();
                let is_lasting = borders.get(first).is_some_and(|&border| end == NEVER || end >= border);
                let is_here = processes.get(event.thread.0 as usize).copied() == process;
                if is_lasting && is_here && is_wanted(event.heap) {
                    let end = if end == NEVER { borders.len() } else { moment_of(end) };
                    blocks.push(LastingBlock { address_avma, size_bytes, stack, first, end });
                }
            }
        }
        Ok((number == table.allocation_count()).then_some(blocks))
    }
}
