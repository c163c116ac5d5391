//! Records of the program's own heaps and of pools.

use heapr_trace::{Action, StackIndex};
use heapr_wire::{ADDRESS_MASK, HEAP_MALLOC, HEAP_MMAP, RecordKind, SAMPLE_ALL};

use super::{Call, Placed, Record, place_block, stack};
use crate::recorder::output::sink::Sink;
use crate::recorder::state::own_heaps::OwnHeaps;
use crate::recorder::state::process_state::ProcessState;

/// Hands the events of a record about a whole heap on; `None` if the record is invalid.
pub(super) fn of_heap(
    record: &Record<'_>,
    call: Call,
    process: &mut ProcessState,
    sink: &mut Sink,
) -> Option<()> {
    let Call { time_ns, heap, address_avma, .. } = call;
    if !OwnHeaps::is_own(heap) {
        return None;
    }
    match record.kind {
        RecordKind::HeapName => {
            let mut bytes = [0; 16];
            let words = [record.word(2).to_le_bytes(), record.word(3).to_le_bytes()];
            bytes.iter_mut().zip(words.as_flattened()).for_each(|(to, &from)| *to = from);
            process.own_heaps.name_part(heap, address_avma, bytes);
        }
        RecordKind::HeapCreate => {
            let (name, left) = process.own_heaps.created(process.index, heap, time_ns);
            if let Some(name) = name {
                let outcome = sink.writer.heap_name(&name);
                sink.keep(outcome);
            }
            free_all(process, sink, call, StackIndex::EMPTY, left);
        }
        RecordKind::HeapDestroy => {
            let stack = stack(record.pool, process, sink, record.word(2), time_ns)?;
            let blocks = process.own_heaps.destroyed(heap);
            free_all(process, sink, call, stack, blocks);
        }
        _ => return None,
    }
    Some(())
}

/// Hands the events of a record about a pool on; `None` if the record is invalid.
pub(super) fn of_pool(
    record: &Record<'_>,
    call: Call,
    process: &mut ProcessState,
    sink: &mut Sink,
) -> Option<()> {
    let Call { time_ns, heap, address_avma, .. } = call;
    match record.kind {
        RecordKind::PoolAlloc if OwnHeaps::is_own(heap) => {
            let stack = stack(record.pool, process, sink, record.word(3), time_ns)?;
            place_block(process, sink, Placed::new(call, record.word(2), stack));
            process.own_heaps.added_to_pool(heap, record.word(4) & ADDRESS_MASK, address_avma);
        }
        RecordKind::PoolClear if heap != HEAP_MMAP => {
            let stack = stack(record.pool, process, sink, record.word(2), time_ns)?;
            let blocks = process.own_heaps.cleared(heap, address_avma);
            // Most blocks of a sampled heap are in no record.
            sink.is_marked = heap == HEAP_MALLOC && process.sample_mean_bytes != SAMPLE_ALL;
            free_all(process, sink, call, stack, blocks);
            sink.is_marked = false;
        }
        RecordKind::PoolJoin if heap != HEAP_MMAP => {
            process.own_heaps.joined(heap, record.word(2) & ADDRESS_MASK, address_avma);
        }
        RecordKind::PoolDissolve if heap != HEAP_MMAP => process.own_heaps.dissolved(heap, address_avma),
        _ => return None,
    }
    Some(())
}

/// Frees the blocks of a heap that was destroyed: one event each, so that every replay sees the
/// same.
#[cold]
fn free_all(process: &ProcessState, sink: &mut Sink, call: Call, stack: StackIndex, blocks: Vec<u64>) {
    for address_avma in blocks {
        let action = Action::Free { address_avma, stack, is_moved_realloc: false };
        sink.event(&call.event(action), process.index);
    }
}
