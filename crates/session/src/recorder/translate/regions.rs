//! Mappings of a process as a heap: usable memory is live, reserved memory is not.
//!
//! ```text
//! mmap(PROT_NONE or MAP_NORESERVE)  reserved      mprotect(usable)     reserved -> live, a block for each call
//! mmap                              live          mprotect(PROT_NONE)  live -> reserved
//! munmap                            ends, cuts or splits what a range covers
//! ```

use heapr_proc::page_bytes;
use heapr_trace::{Action, Event, HeapId, StackIndex, ThreadIndex};

use crate::recorder::output::sink::Sink;
use crate::recorder::state::process_state::{ProcessState, Region};

/// Call of mmap, munmap, mremap or mprotect on a range.
#[derive(Debug, Clone, Copy)]
pub(super) struct MappingCall {
    pub(super) time_ns: u64,
    pub(super) thread: ThreadIndex,
    pub(super) start_avma: u64,
    pub(super) size_bytes: u64,
}

impl MappingCall {
    fn end_avma(&self) -> u64 {
        pages_end(self.start_avma, self.size_bytes)
    }

    fn note(&self, process: &ProcessState, sink: &mut Sink, action: Action) {
        let Self { time_ns, thread, .. } = *self;
        sink.event_of_any_heap(&Event { time_ns, thread, heap: HeapId::MMAP, action }, process.index);
    }
}

/// Largest number of former regions that are remembered.
const FORMER_MAX: usize = 4096;

fn pages_end(start: u64, bytes: u64) -> u64 {
    let page_mask = page_bytes() - 1;
    start.saturating_add(bytes.saturating_add(page_mask) & !page_mask)
}

/// Registers a new mapping that is only reserved.
#[cold]
pub(super) fn reserve(process: &mut ProcessState, sink: &mut Sink, call: MappingCall, stack: StackIndex) {
    unmap(process, sink, call);
    let region = Region { size_bytes: call.size_bytes, stack, is_reserved: true };
    process.regions.insert(call.start_avma, region);
}

/// Makes the parts of known mappings within a range usable, or unusable. `stack`: stack of the
/// call; it is the allocation stack of memory that becomes usable.
#[cold]
pub(super) fn protect(
    process: &mut ProcessState,
    sink: &mut Sink,
    call: MappingCall,
    stack: StackIndex,
    is_usable: bool,
) {
    let (start_avma, end_avma) = (call.start_avma, call.end_avma());
    // Searched backwards: regions do not overlap, so none before one that ends before the range
    // reaches into it.
    let before = process.regions.range(..end_avma).rev();
    let covered = before.take_while(|&(&start, region)| pages_end(start, region.size_bytes) > start_avma);
    let changed = covered.filter(|(_, region)| region.is_reserved == is_usable);
    let parts: Vec<(u64, u64, StackIndex)> = changed
        .map(|(&start, region)| {
            let end = start.saturating_add(region.size_bytes).min(end_avma);
            (start.max(start_avma), end, region.stack)
        })
        .filter(|(start, end, _)| start < end)
        .collect();
    for (start_avma, end_avma, old_stack) in parts.into_iter().rev() {
        let size_bytes = end_avma - start_avma;
        unmap(process, sink, MappingCall { start_avma, size_bytes, ..call });
        let stack = if is_usable { stack } else { old_stack };
        process.regions.insert(start_avma, Region { size_bytes, stack, is_reserved: !is_usable });
        if is_usable {
            let action =
                Action::Alloc { address_avma: start_avma, size_bytes, stack, is_moved_realloc: false };
            call.note(process, sink, action);
        }
    }
}

/// Ends, cuts or splits the regions that a range covers.
pub(super) fn unmap(process: &mut ProcessState, sink: &mut Sink, call: MappingCall) {
    let (start_avma, end_avma) = (call.start_avma, call.end_avma());
    loop {
        let before = process.regions.range(..end_avma).next_back().map(|(&start, &region)| (start, region));
        let Some((start, region)) =
            before.filter(|&(start, region)| pages_end(start, region.size_bytes) > start_avma)
        else {
            return;
        };
        let end = start.saturating_add(region.size_bytes);
        process.regions.remove(&start);
        if process.former_regions.len() < FORMER_MAX {
            process.former_regions.insert(start, region);
        }
        let (stack, is_live) = (region.stack, !region.is_reserved);
        let keep_front = start_avma.saturating_sub(start);
        if keep_front > 0 {
            process.regions.insert(start, Region { size_bytes: keep_front, ..region });
        }
        if is_live {
            let action = if keep_front > 0 {
                let size_bytes = keep_front;
                Action::Realloc { old_address_avma: start, address_avma: start, size_bytes, stack }
            } else {
                Action::Free { address_avma: start, stack: StackIndex::EMPTY, is_moved_realloc: false }
            };
            call.note(process, sink, action);
        }
        if end > end_avma {
            let size_bytes = end - end_avma;
            process.regions.insert(end_avma, Region { size_bytes, ..region });
            if is_live {
                let action =
                    Action::Alloc { address_avma: end_avma, size_bytes, stack, is_moved_realloc: true };
                call.note(process, sink, action);
            }
        }
        if keep_front > 0 {
            return;
        }
    }
}
