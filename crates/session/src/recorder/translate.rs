//! Translates agents' records to events of the file.
//!
//! A reallocation is two records in the ring, because the real call lies between them, but one
//! event in the file. While a block is "in realloc" its address may be given to another thread,
//! which proves that the block has moved. Then the reallocation is written as two halves (see
//! `heapr_trace::Action`).

mod languages;
mod modules;
mod regions;

use heapr_ring::Pool;
use heapr_trace::{Action, Event, HeapId, ProcessIndex, StackIndex, StackNode, ThreadIndex};
use heapr_wire::{
    ADDRESS_MASK, HEAP_MALLOC, HEAP_MMAP, PROTECT_MAP, PROTECT_RESERVE, PROTECT_USE, RecordKind, SAMPLE_ALL,
    SAMPLE_NOTHING, STACK_BITS, of_stack_word, short_address,
};

use crate::recorder::called_stacks;
use crate::recorder::merge::Head;
use crate::recorder::own_heaps::OwnHeaps;
use crate::recorder::process_state::{InMotion, ProcessState, Region};
use crate::recorder::sink::Sink;
use regions::MappingCall;

/// Record of a ring: its position and length, its kind, and the pool that it lies in.
pub(crate) struct Record<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) head: Head<'a>,
    pub(crate) kind: RecordKind,
    pub(crate) words: usize,
}

impl Record<'_> {
    #[inline(always)]
    fn word(&self, number: usize) -> u64 {
        self.head.word(number)
    }
}

/// Result of translating a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// The record names something that does not exist.
    Invalid,
}

/// Translates one record and passes its events to the sink.
#[inline(always)]
pub(crate) fn translate(
    record: &Record<'_>,
    time_ns: u64,
    thread: ThreadIndex,
    process: &mut ProcessState,
    sink: &mut Sink,
) -> Outcome {
    let is_short = matches!(record.kind, RecordKind::ShortAlloc | RecordKind::ShortFree);
    let place = if is_short { short_address(record.head.word0) } else { record.word(1) };
    let heap = (place >> 56) as u8;
    let address_avma = place & ADDRESS_MASK;
    match record.kind {
        RecordKind::Alloc | RecordKind::ShortAlloc => {
            let packed = record.word(if is_short { 1 } else { 2 });
            let Some(stack) = stack(record.pool, process, sink, packed, time_ns) else {
                return Outcome::Invalid;
            };
            let event = Event {
                time_ns,
                thread,
                heap: HeapId(heap),
                action: Action::Alloc {
                    address_avma,
                    size_bytes: packed >> STACK_BITS,
                    stack,
                    is_moved_realloc: false,
                },
            };
            alloc(process, sink, event, heap, address_avma, packed >> STACK_BITS, stack);
        }
        RecordKind::AllocBig => {
            let size_bytes = record.word(2);
            let Some(stack) = stack(record.pool, process, sink, record.word(3), time_ns) else {
                return Outcome::Invalid;
            };
            let event = Event {
                time_ns,
                thread,
                heap: HeapId(heap),
                action: Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false },
            };
            alloc(process, sink, event, heap, address_avma, size_bytes, stack);
        }
        RecordKind::Free | RecordKind::ShortFree | RecordKind::FreeStack | RecordKind::CandidateFree => {
            let word = if record.kind == RecordKind::FreeStack { record.word(2) } else { 0 };
            let Some(stack) = stack(record.pool, process, sink, word, time_ns) else {
                return Outcome::Invalid;
            };
            if process.own_heaps.follows(heap) {
                process.own_heaps.removed(heap, address_avma);
            }
            let action = Action::Free { address_avma, stack, is_moved_realloc: false };
            sink.is_marked = record.kind == RecordKind::CandidateFree;
            sink.event(&Event { time_ns, thread, heap: HeapId(heap), action }, process.index);
            sink.is_marked = false;
        }
        RecordKind::Sample => {
            let size_bytes = record.word(2);
            let Some(stack) = stack(record.pool, process, sink, record.word(3), time_ns) else {
                return Outcome::Invalid;
            };
            if heap != HEAP_MALLOC || !draw(process, sink, time_ns, record.word(4)) {
                return Outcome::Invalid;
            }
            let event = Event {
                time_ns,
                thread,
                heap: HeapId(heap),
                action: Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false },
            };
            place_block(process, sink, event, heap, address_avma, size_bytes, stack);
        }
        RecordKind::ResizedSample => {
            let size_bytes = record.word(2);
            let Some(stack) = stack(record.pool, process, sink, record.word(3), time_ns) else {
                return Outcome::Invalid;
            };
            if heap != HEAP_MALLOC || !draw(process, sink, time_ns, record.word(4)) {
                return Outcome::Invalid;
            }
            commit(process, sink, Commit { time_ns, thread, heap, address_avma, size_bytes, stack });
        }
        RecordKind::ReallocPrepare => {
            process.reallocs.retain(|moving| moving.thread != thread || moving.heap != heap);
            process.reallocs.push(InMotion { thread, heap, address_avma, is_displaced: false });
        }
        RecordKind::ReallocCommit => {
            let size_bytes = record.word(2);
            let Some(stack) = stack(record.pool, process, sink, record.word(3), time_ns) else {
                return Outcome::Invalid;
            };
            if process.sample_mean_bytes != SAMPLE_ALL && heap == HEAP_MALLOC && address_avma != 0 {
                note_mean(process, sink, time_ns, SAMPLE_ALL);
            }
            commit(process, sink, Commit { time_ns, thread, heap, address_avma, size_bytes, stack });
        }
        RecordKind::ReallocAbort => {
            process.reallocs.retain(|moving| moving.thread != thread || moving.heap != heap);
            let action = Action::Failed { size_bytes: record.word(2), stack: StackIndex::EMPTY };
            sink.event_of_any_heap(&Event { time_ns, thread, heap: HeapId(heap), action }, process.index);
        }
        RecordKind::AllocFailed => {
            let Some(stack) = stack(record.pool, process, sink, record.word(2), time_ns) else {
                return Outcome::Invalid;
            };
            let action = Action::Failed { size_bytes: place, stack };
            sink.event(&Event { time_ns, thread, heap: HeapId::MALLOC, action }, process.index);
        }
        RecordKind::Module => return modules::module(record, time_ns, process, sink),
        RecordKind::Unmap => {
            let call = MappingCall { time_ns, thread, start_avma: address_avma, size_bytes: record.word(2) };
            regions::unmap(process, sink, call);
        }
        RecordKind::Protect => {
            let packed = record.word(3);
            let Some(stack) = stack(record.pool, process, sink, packed, time_ns) else {
                return Outcome::Invalid;
            };
            let call = MappingCall { time_ns, thread, start_avma: address_avma, size_bytes: record.word(2) };
            match (packed >> STACK_BITS) as u32 {
                PROTECT_MAP => regions::reserve(process, sink, call, stack),
                PROTECT_USE => regions::protect(process, sink, call, stack, true),
                PROTECT_RESERVE => regions::protect(process, sink, call, stack, false),
                _ => return Outcome::Invalid,
            }
        }
        RecordKind::HeapName if OwnHeaps::is_own(heap) => {
            let mut bytes = [0; 16];
            let words = [record.word(2).to_le_bytes(), record.word(3).to_le_bytes()];
            bytes.iter_mut().zip(words.as_flattened()).for_each(|(to, &from)| *to = from);
            process.own_heaps.name_part(heap, address_avma, bytes);
        }
        RecordKind::HeapCreate if OwnHeaps::is_own(heap) => {
            let (name, left) = process.own_heaps.created(process.index, heap, time_ns);
            if let Some(name) = name {
                let outcome = sink.writer.heap_name(&name);
                sink.keep(outcome);
            }
            let freeing = Freeing { time_ns, thread, heap: HeapId(heap), stack: StackIndex::EMPTY };
            free_all(process.index, sink, freeing, left);
        }
        RecordKind::HeapDestroy if OwnHeaps::is_own(heap) => {
            let Some(stack) = stack(record.pool, process, sink, record.word(2), time_ns) else {
                return Outcome::Invalid;
            };
            let blocks = process.own_heaps.destroyed(heap);
            let freeing = Freeing { time_ns, thread, heap: HeapId(heap), stack };
            free_all(process.index, sink, freeing, blocks);
        }
        RecordKind::PoolAlloc if OwnHeaps::is_own(heap) => {
            let size_bytes = record.word(2);
            let Some(stack) = stack(record.pool, process, sink, record.word(3), time_ns) else {
                return Outcome::Invalid;
            };
            let action = Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false };
            let event = Event { time_ns, thread, heap: HeapId(heap), action };
            place_block(process, sink, event, heap, address_avma, size_bytes, stack);
            process.own_heaps.added_to_pool(heap, record.word(4) & ADDRESS_MASK, address_avma);
        }
        RecordKind::PoolClear if heap != HEAP_MMAP => {
            let Some(stack) = stack(record.pool, process, sink, record.word(2), time_ns) else {
                return Outcome::Invalid;
            };
            let blocks = process.own_heaps.cleared(heap, address_avma);
            let freeing = Freeing { time_ns, thread, heap: HeapId(heap), stack };
            // Most blocks of a sampled heap are in no record.
            sink.is_marked = heap == HEAP_MALLOC && process.sample_mean_bytes != SAMPLE_ALL;
            free_all(process.index, sink, freeing, blocks);
            sink.is_marked = false;
        }
        RecordKind::PoolJoin if heap != HEAP_MMAP => {
            process.own_heaps.joined(heap, record.word(2) & ADDRESS_MASK, address_avma);
        }
        RecordKind::PoolDissolve if heap != HEAP_MMAP => process.own_heaps.dissolved(heap, address_avma),
        RecordKind::PoolAlloc | RecordKind::PoolClear => return Outcome::Invalid,
        RecordKind::PoolJoin | RecordKind::PoolDissolve => return Outcome::Invalid,
        RecordKind::HeapName | RecordKind::HeapCreate | RecordKind::HeapDestroy => return Outcome::Invalid,
        RecordKind::Function => return languages::function(record, process, sink),
        RecordKind::UnknownLanguage => languages::unknown(record, time_ns, process, sink),
        RecordKind::ThreadName => {}
    }
    Outcome::Done
}

/// Time, thread, heap and stack of the call that ends a heap.
struct Freeing {
    time_ns: u64,
    thread: ThreadIndex,
    heap: HeapId,
    stack: StackIndex,
}

/// Frees the blocks of a heap that was destroyed: one event each, so that every replay sees the
/// same.
#[cold]
fn free_all(process: ProcessIndex, sink: &mut Sink, freeing: Freeing, blocks: Vec<u64>) {
    let Freeing { time_ns, thread, heap, stack } = freeing;
    for address_avma in blocks {
        let action = Action::Free { address_avma, stack, is_moved_realloc: false };
        sink.event(&Event { time_ns, thread, heap, action }, process);
    }
}

/// Returns the file's stack for a word with a stack.
#[inline(always)]
fn stack(
    pool: &Pool,
    process: &mut ProcessState,
    sink: &mut Sink,
    word: u64,
    time_ns: u64,
) -> Option<StackIndex> {
    process.called.known(word).or_else(|| called_stack(pool, process, sink, word, time_ns))
}

/// Slow path of `stack`: the first event of this (node, called function). The function becomes a
/// frame above the node's stack.
#[cold]
fn called_stack(
    pool: &Pool,
    process: &mut ProcessState,
    sink: &mut Sink,
    word: u64,
    time_ns: u64,
) -> Option<StackIndex> {
    let (node, called) = of_stack_word(word);
    let parent = stack_of_node(pool, process, sink, node, time_ns)?;
    let Some(function) = called_stacks::function(called).filter(|_| parent != StackIndex::EMPTY) else {
        return Some(parent);
    };
    let index = process.index;
    if process.called.enter(function) {
        let added = sink.writer.add_module(function.module());
        let added = added
            .and_then(|module| sink.writer.add_mapping(function.mapping(index, module, time_ns)).map(|_| ()));
        sink.keep(added);
    }
    let return_address_avma = function.return_address_avma();
    let node = StackNode { parent, process: index, return_address_avma, first_seen_ns: time_ns };
    match sink.writer.add_stack(node) {
        Ok(stack) => {
            process.called.keep(word, stack);
            Some(stack)
        }
        Err(error) => {
            sink.keep(Err(error));
            Some(StackIndex::EMPTY)
        }
    }
}

fn stack_of_node(
    pool: &Pool,
    process: &mut ProcessState,
    sink: &mut Sink,
    node: u32,
    time_ns: u64,
) -> Option<StackIndex> {
    let index = process.index;
    let added = process.stack(node, pool, |parent, return_address_avma| {
        sink.writer.add_stack(StackNode {
            parent,
            process: index,
            return_address_avma,
            first_seen_ns: time_ns,
        })
    });
    match added {
        Ok(stack) => stack,
        Err(error) => {
            sink.keep(Err(error));
            Some(StackIndex::EMPTY)
        }
    }
}

/// Notes a sample drawn with this mean. Returns `false` if no session like this one draws such a
/// sample.
#[cold]
fn draw(process: &mut ProcessState, sink: &mut Sink, time_ns: u64, mean_bytes: u64) -> bool {
    if sink.steering.is_none() || [SAMPLE_ALL, SAMPLE_NOTHING].contains(&mean_bytes) {
        return false;
    }
    sink.sample_count += 1;
    if process.sample_mean_bytes != mean_bytes {
        note_mean(process, sink, time_ns, mean_bytes);
    }
    true
}

#[cold]
fn note_mean(process: &mut ProcessState, sink: &mut Sink, time_ns: u64, mean_bytes: u64) {
    process.sample_mean_bytes = mean_bytes;
    sink.note_mean(process.index, time_ns, mean_bytes);
}

/// Writes the allocation of a block of a process whose allocations are all recorded.
#[inline(always)]
fn alloc(
    process: &mut ProcessState,
    sink: &mut Sink,
    event: Event,
    heap: u8,
    address_avma: u64,
    size_bytes: u64,
    stack: StackIndex,
) {
    if process.sample_mean_bytes != SAMPLE_ALL && heap == HEAP_MALLOC {
        note_mean(process, sink, event.time_ns, SAMPLE_ALL);
    }
    place_block(process, sink, event, heap, address_avma, size_bytes, stack);
}

#[inline(always)]
fn place_block(
    process: &mut ProcessState,
    sink: &mut Sink,
    event: Event,
    heap: u8,
    address_avma: u64,
    size_bytes: u64,
    stack: StackIndex,
) {
    if !process.reallocs.is_empty() {
        displace(process, sink, event, heap, address_avma, size_bytes);
    }
    if heap == HEAP_MMAP {
        let (time_ns, thread) = (event.time_ns, event.thread);
        regions::unmap(process, sink, MappingCall { time_ns, thread, start_avma: address_avma, size_bytes });
        process.regions.insert(address_avma, Region { size_bytes, stack, is_reserved: false });
    } else if OwnHeaps::is_own(heap) {
        process.own_heaps.added(heap, address_avma);
    } else if process.own_heaps.follows(heap) {
        // In a sampling session the free of the previous block at this address may be missing.
        process.own_heaps.removed(heap, address_avma);
    }
    sink.event_of_any_heap(&event, process.index);
}

/// Ends the reallocation of a block whose address another call was given: the block has moved. A
/// new mapping may cover several moving ones.
fn displace(
    process: &mut ProcessState,
    sink: &mut Sink,
    event: Event,
    heap: u8,
    address_avma: u64,
    size_bytes: u64,
) {
    let end_avma = if heap == HEAP_MMAP { address_avma.saturating_add(size_bytes) } else { address_avma };
    let is_given_away = |moving: &InMotion| {
        moving.heap == heap
            && (moving.address_avma == address_avma
                || (address_avma..end_avma).contains(&moving.address_avma))
            && moving.thread != event.thread
            && !moving.is_displaced
    };
    while let Some(moved) = process.reallocs.iter_mut().find(|moving| is_given_away(moving)) {
        moved.is_displaced = true;
        let (thread, address_avma) = (moved.thread, moved.address_avma);
        if heap == HEAP_MMAP {
            let region = process.regions.remove(&address_avma);
            if region.is_some_and(|region| region.is_reserved) {
                continue;
            }
        } else if process.own_heaps.follows(heap) {
            process.own_heaps.removed(heap, address_avma);
        }
        let action = Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: true };
        sink.event_of_any_heap(&Event { thread, action, ..event }, process.index);
    }
}

struct Commit {
    time_ns: u64,
    thread: ThreadIndex,
    heap: u8,
    address_avma: u64,
    size_bytes: u64,
    stack: StackIndex,
}

fn commit(process: &mut ProcessState, sink: &mut Sink, commit: Commit) {
    let Commit { time_ns, thread, heap, address_avma, size_bytes, stack } = commit;
    let event = |action| Event { time_ns, thread, heap: HeapId(heap), action };
    let moving = process.reallocs.iter().position(|moving| moving.thread == thread && moving.heap == heap);
    let moving = moving.map(|place| process.reallocs.swap_remove(place));
    let is_displaced = moving.is_some_and(|moving| moving.is_displaced);
    let old = moving.filter(|moving| !moving.is_displaced).map(|moving| moving.address_avma);
    if let (Some(old), true) = (old, process.own_heaps.follows(heap)) {
        process.own_heaps.moved(heap, old, address_avma);
    }
    match (old, is_displaced) {
        // realloc(p, 0) that freed.
        (Some(old), _) if address_avma == 0 && size_bytes == 0 => {
            let action =
                Action::Free { address_avma: old, stack: StackIndex::EMPTY, is_moved_realloc: false };
            sink.event_of_any_heap(&event(action), process.index);
        }
        (None, _) if address_avma == 0 => {}
        (Some(old), _) => {
            if old != address_avma {
                displace(
                    process,
                    sink,
                    event(Action::Failed { size_bytes, stack }),
                    heap,
                    address_avma,
                    size_bytes,
                );
            }
            if heap == HEAP_MMAP {
                let is_reserved = process.regions.remove(&old).is_some_and(|region| region.is_reserved);
                process.regions.insert(address_avma, Region { size_bytes, stack, is_reserved });
                if is_reserved {
                    return;
                }
            }
            let action = Action::Realloc { old_address_avma: old, address_avma, size_bytes, stack };
            sink.event_of_any_heap(&event(action), process.index);
        }
        // The old block was displaced earlier. Another thread's block may still be registered at
        // the new address.
        (None, is_moved_realloc) => {
            let action = Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc };
            alloc(process, sink, event(action), heap, address_avma, size_bytes, stack);
        }
    }
}
