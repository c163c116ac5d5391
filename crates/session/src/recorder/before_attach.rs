//! The blocks that a process held when it was attached to.
//!
//! Where they were allocated is not known: they share one stack, of one frame, in a module of its own that stands for
//! "allocated before attach". No program has code at its address.

use heapr_trace::{Action, Event, HeapId, Mapping, Module, StackIndex, StackNode};
use heapr_wire::{ADDRESS_MASK, ProcessSlot};

use super::Recorder;
use crate::recorder::process_state::BlocksBefore;

/// Name of the module.
const MODULE: &str = "allocated before attach";
/// Its range: in the first page, which no program can map.
const START_AVMA: u64 = 0x100;
const END_AVMA: u64 = 0x200;

impl Recorder {
    /// Enters blocks (address and size) as allocated now, at the beginning of the process's recording. Returns their number.
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
        let mut before = BlocksBefore::default();
        for (address_avma, size_bytes) in blocks {
            before.count += 1;
            before.bytes = before.bytes.saturating_add(size_bytes);
            let action = Action::Alloc {
                address_avma: address_avma & ADDRESS_MASK,
                size_bytes,
                stack,
                is_moved_realloc: false,
            };
            self.sink.event(&Event { time_ns, thread, heap: HeapId::MALLOC, action }, process);
        }
        let count = before.count;
        self.processes[place].before = before;
        count
    }

    /// Notes that it is not known what a process held when it was attached to.
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
        let module = writer.add_module(Module { path: MODULE.to_owned(), build_id: Vec::new() })?;
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
