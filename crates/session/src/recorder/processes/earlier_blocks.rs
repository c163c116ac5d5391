//! Blocks that a process held when it was attached to.
//!
//! Their allocation stacks are unknown, so they share one stack with a single frame. Its module
//! stands for "allocated before attach", and no program has code at its address.

use std::collections::BTreeMap;

use heapr_trace::{
    Action, Block, Event, HeapId, Mapping, Module, Notice, StackIndex, StackNode, ThreadIndex,
};
use heapr_wire::{ADDRESS_MASK, ProcessSlot};

use crate::recorder::Recorder;
use crate::recorder::state::process_state::BlocksBefore;

/// Module name of the frame of blocks from before the attach; no file has this name.
pub const EARLIER_BLOCKS_MODULE: &str = "allocated before attach";
/// Address range of the module: in the first page, which no program can map.
const START_AVMA: u64 = 0x100;
const END_AVMA: u64 = 0x200;

/// Upper bound of what an allocator adds to a size: a large block consists of whole pages.
fn spare_bytes() -> u64 {
    heapr_proc::page_bytes() + 32
}

impl Recorder {
    /// Adds blocks (address and size) as allocated at the beginning of the process's recording.
    /// Returns their number.
    pub(crate) fn add_blocks_before(
        &mut self,
        slot: u32,
        generation: u32,
        blocks: impl Iterator<Item = (u64, u64)>,
    ) -> u64 {
        use std::sync::atomic::Ordering::Relaxed;
        let Some(&place) = self.process_by_slot.get(&(slot, generation)) else { return 0 };
        let start_ticks = |slot: &ProcessSlot| (slot.pid.load(Relaxed), slot.start_ticks.load(Relaxed));
        let Some((inner_pid, ticks)) = self.pool.process_slot(slot).map(start_ticks) else { return 0 };
        let thread = self.add_thread(place, inner_pid, ticks);
        let process = self.processes[place].index;
        let time_ns = self.clock.recent_ns(ticks).max(self.sink.last_ns);
        let stack = match self.stack_before(process, time_ns) {
            Ok(stack) => stack,
            Err(error) => {
                self.sink.keep(Err(error));
                StackIndex::EMPTY
            }
        };
        let known = self.known_blocks(place);
        let mut blocks: BTreeMap<u64, u64> =
            blocks.map(|(address_avma, bytes)| (address_avma & ADDRESS_MASK, bytes)).collect();
        if self.is_sampled() {
            return self.note_blocks_before(place, known, &blocks, time_ns, thread);
        }
        let mut event = |action| {
            self.sink.event(&Event { time_ns, thread, heap: HeapId::MALLOC, action }, process);
        };
        for (address_avma, size_bytes) in known {
            // A block of another size is another block.
            let is_same =
                |&usable: &u64| (size_bytes..=size_bytes.saturating_add(spare_bytes())).contains(&usable);
            if blocks.get(&address_avma).is_some_and(is_same) {
                blocks.remove(&address_avma);
            } else {
                let stack = StackIndex::EMPTY;
                event(Action::Free { address_avma, stack, is_moved_realloc: false });
            }
        }
        let mut before = BlocksBefore::default();
        for (address_avma, size_bytes) in blocks {
            before.count += 1;
            before.bytes = before.bytes.saturating_add(size_bytes);
            event(Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false });
        }
        let count = before.count;
        self.processes[place].before = before;
        count
    }

    /// Notes the blocks in a sampling session as one sum, because their frees are not recorded.
    /// Samples from before the process was let go are dropped, too.
    fn note_blocks_before(
        &mut self,
        place: usize,
        known: Vec<(u64, u64)>,
        blocks: &BTreeMap<u64, u64>,
        time_ns: u64,
        thread: ThreadIndex,
    ) -> u64 {
        let process = self.processes[place].index;
        for (address_avma, _) in known {
            let action = Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false };
            self.sink.event(&Event { time_ns, thread, heap: HeapId::MALLOC, action }, process);
        }
        let bytes = blocks.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let count = blocks.len() as u64;
        self.processes[place].before = BlocksBefore { count, bytes, unread: None };
        if count > 0 {
            let text = format!(
                "what it held when it was attached to is not followed: {bytes} bytes in {count} blocks"
            );
            let outcome = self.sink.writer.notice(&Notice { process, time_ns, text });
            self.sink.keep(outcome);
        }
        count
    }

    /// Blocks (address and size) in the main heap of a process that was recorded before.
    fn known_blocks(&mut self, place: usize) -> Vec<(u64, u64)> {
        let state = &self.processes[place];
        if !state.is_resumed {
            return Vec::new();
        }
        self.sink.take_pending();
        let is_its = |block: &Block| block.process == state.index && block.heap == HeapId::MALLOC;
        let blocks = self.sink.ledger.live_blocks().filter(is_its);
        blocks.map(|block| (block.address_avma, block.size_bytes)).collect()
    }

    /// Notes that the blocks of a process at its attach could not be read.
    pub(crate) fn note_unread_heap(&mut self, slot: u32, generation: u32, reason: &str) {
        if let Some(&place) = self.process_by_slot.get(&(slot, generation)) {
            self.processes[place].before =
                BlocksBefore { unread: Some(reason.to_owned()), ..BlocksBefore::default() };
        }
    }

    fn stack_before(
        &mut self,
        process: heapr_trace::ProcessIndex,
        time_ns: u64,
    ) -> heapr_trace::Result<StackIndex> {
        let writer = &mut self.sink.writer;
        let module =
            writer.add_module(Module { path: EARLIER_BLOCKS_MODULE.to_owned(), build_id: Vec::new() })?;
        writer.add_mapping(Mapping {
            process,
            module,
            start_avma: START_AVMA,
            end_avma: END_AVMA,
            bias_avma: START_AVMA,
            loaded_ns: time_ns,
            unloaded_ns: u64::MAX,
        })?;
        writer.add_stack(StackNode {
            parent: StackIndex::EMPTY,
            process,
            return_address_avma: START_AVMA + 1,
            first_seen_ns: time_ns,
        })
    }
}
