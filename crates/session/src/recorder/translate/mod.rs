//! Translates agents' records to events of the file.
//!
//! A reallocation is two records in the ring, because the real call lies between them, but one
//! event in the file. While a block is "in realloc" its address may be given to another thread,
//! which proves that the block has moved. Then the reallocation is written as two halves (see
//! `heapr_trace::Action`).

pub(crate) mod common_records;
mod heaps;
mod languages;
mod modules;
mod regions;

use heapr_ring::Pool;
use heapr_trace::{Action, Event, HeapId, StackIndex, StackNode, ThreadIndex};
use heapr_wire::{
    ADDRESS_MASK, HEAP_MALLOC, HEAP_MMAP, PROTECT_MAP, PROTECT_RESERVE, PROTECT_USE, RecordKind, SAMPLE_ALL,
    SAMPLE_NOTHING, STACK_BITS, of_stack_word, short_address,
};

use crate::recorder::intake::merge::Head;
use crate::recorder::output::sink::Sink;
use crate::recorder::state::called_stacks;
use crate::recorder::state::own_heaps::OwnHeaps;
use crate::recorder::state::process_state::{InMotion, ProcessState, Region};
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

/// Moment, thread, heap and address of a record.
#[derive(Debug, Clone, Copy)]
struct Call {
    time_ns: u64,
    thread: ThreadIndex,
    heap: u8,
    address_avma: u64,
}

impl Call {
    #[inline(always)]
    fn event(&self, action: Action) -> Event {
        Event { time_ns: self.time_ns, thread: self.thread, heap: HeapId(self.heap), action }
    }

    /// The record as a call of mmap or one of its kin.
    fn on_mapping(&self, size_bytes: u64) -> MappingCall {
        let &Self { time_ns, thread, address_avma: start_avma, .. } = self;
        MappingCall { time_ns, thread, start_avma, size_bytes }
    }
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
    match hand_on(record, time_ns, thread, process, sink) {
        Some(()) => Outcome::Done,
        None => Outcome::Invalid,
    }
}

/// Hands the events of a record on; `None` if it is invalid.
#[inline(always)]
fn hand_on(
    record: &Record<'_>,
    time_ns: u64,
    thread: ThreadIndex,
    process: &mut ProcessState,
    sink: &mut Sink,
) -> Option<()> {
    let is_short = matches!(record.kind, RecordKind::ShortAlloc | RecordKind::ShortFree);
    let place = if is_short { short_address(record.head.word0) } else { record.word(1) };
    let heap = (place >> 56) as u8;
    let call = Call { time_ns, thread, heap, address_avma: place & ADDRESS_MASK };
    match record.kind {
        RecordKind::Alloc | RecordKind::ShortAlloc => {
            let packed = record.word(if is_short { 1 } else { 2 });
            let stack = stack(record.pool, process, sink, packed, time_ns)?;
            alloc(process, sink, Placed::new(call, packed >> STACK_BITS, stack));
        }
        RecordKind::AllocBig => {
            let stack = stack(record.pool, process, sink, record.word(3), time_ns)?;
            alloc(process, sink, Placed::new(call, record.word(2), stack));
        }
        RecordKind::Free | RecordKind::ShortFree | RecordKind::FreeStack | RecordKind::CandidateFree => {
            let word = if record.kind == RecordKind::FreeStack { record.word(2) } else { 0 };
            let stack = stack(record.pool, process, sink, word, time_ns)?;
            free(record.kind, call, stack, process, sink);
        }
        RecordKind::Sample | RecordKind::ResizedSample => {
            let stack = stack(record.pool, process, sink, record.word(3), time_ns)?;
            if heap != HEAP_MALLOC || !draw(process, sink, time_ns, record.word(4)) {
                return None;
            }
            let placed = Placed::new(call, record.word(2), stack);
            match record.kind {
                RecordKind::Sample => place_block(process, sink, placed),
                _ => commit(process, sink, placed),
            }
        }
        RecordKind::ReallocPrepare => {
            process.reallocs.retain(|moving| moving.thread != thread || moving.heap != heap);
            let address_avma = call.address_avma;
            process.reallocs.push(InMotion { thread, heap, address_avma, is_displaced: false });
        }
        RecordKind::ReallocCommit => {
            let stack = stack(record.pool, process, sink, record.word(3), time_ns)?;
            if process.sample_mean_bytes != SAMPLE_ALL && heap == HEAP_MALLOC && call.address_avma != 0 {
                note_mean(process, sink, time_ns, SAMPLE_ALL);
            }
            commit(process, sink, Placed::new(call, record.word(2), stack));
        }
        RecordKind::ReallocAbort => {
            process.reallocs.retain(|moving| moving.thread != thread || moving.heap != heap);
            let action = Action::Failed { size_bytes: record.word(2), stack: StackIndex::EMPTY };
            sink.event_of_any_heap(&call.event(action), process.index);
        }
        RecordKind::AllocFailed => {
            let stack = stack(record.pool, process, sink, record.word(2), time_ns)?;
            let action = Action::Failed { size_bytes: place, stack };
            sink.event(&Event { time_ns, thread, heap: HeapId::MALLOC, action }, process.index);
        }
        RecordKind::Module => return modules::module(record, time_ns, process, sink),
        RecordKind::Unmap => regions::unmap(process, sink, call.on_mapping(record.word(2))),
        RecordKind::Protect => return protect(record, call, process, sink),
        RecordKind::HeapName | RecordKind::HeapCreate | RecordKind::HeapDestroy => {
            return heaps::of_heap(record, call, process, sink);
        }
        RecordKind::PoolAlloc | RecordKind::PoolClear | RecordKind::PoolJoin | RecordKind::PoolDissolve => {
            return heaps::of_pool(record, call, process, sink);
        }
        RecordKind::Function => return languages::function(record, process, sink),
        RecordKind::UnknownLanguage => languages::unknown(record, time_ns, process, sink),
        RecordKind::ThreadName => {}
    }
    Some(())
}

#[inline(always)]
fn free(kind: RecordKind, call: Call, stack: StackIndex, process: &mut ProcessState, sink: &mut Sink) {
    let address_avma = call.address_avma;
    if process.own_heaps.follows(call.heap) {
        process.own_heaps.removed(call.heap, address_avma);
    }
    let action = Action::Free { address_avma, stack, is_moved_realloc: false };
    sink.is_marked = kind == RecordKind::CandidateFree;
    sink.event(&call.event(action), process.index);
    sink.is_marked = false;
}

fn protect(record: &Record<'_>, call: Call, process: &mut ProcessState, sink: &mut Sink) -> Option<()> {
    let packed = record.word(3);
    let stack = stack(record.pool, process, sink, packed, call.time_ns)?;
    let call = call.on_mapping(record.word(2));
    match (packed >> STACK_BITS) as u32 {
        PROTECT_MAP => regions::reserve(process, sink, call, stack),
        PROTECT_USE => regions::protect(process, sink, call, stack, true),
        PROTECT_RESERVE => regions::protect(process, sink, call, stack, false),
        _ => return None,
    }
    Some(())
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

/// A block that an allocating call has given.
#[derive(Debug, Clone, Copy)]
struct Placed {
    call: Call,
    size_bytes: u64,
    stack: StackIndex,
    is_moved_realloc: bool,
}

impl Placed {
    #[inline(always)]
    fn new(call: Call, size_bytes: u64, stack: StackIndex) -> Self {
        Self { call, size_bytes, stack, is_moved_realloc: false }
    }
}

/// Writes the allocation of a block of a process whose allocations are all recorded.
#[inline(always)]
fn alloc(process: &mut ProcessState, sink: &mut Sink, placed: Placed) {
    if process.sample_mean_bytes != SAMPLE_ALL && placed.call.heap == HEAP_MALLOC {
        note_mean(process, sink, placed.call.time_ns, SAMPLE_ALL);
    }
    place_block(process, sink, placed);
}

#[inline(always)]
fn place_block(process: &mut ProcessState, sink: &mut Sink, placed: Placed) {
    let Placed { call, size_bytes, stack, is_moved_realloc } = placed;
    let Call { heap, address_avma, .. } = call;
    if !process.reallocs.is_empty() {
        displace(process, sink, call, size_bytes);
    }
    if heap == HEAP_MMAP {
        regions::unmap(process, sink, call.on_mapping(size_bytes));
        process.regions.insert(address_avma, Region { size_bytes, stack, is_reserved: false });
    } else if OwnHeaps::is_own(heap) {
        process.own_heaps.added(heap, address_avma);
    } else if process.own_heaps.follows(heap) {
        // In a sampling session the free of the previous block at this address may be missing.
        process.own_heaps.removed(heap, address_avma);
    }
    let action = Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc };
    sink.event_of_any_heap(&call.event(action), process.index);
}

/// Ends the reallocation of a block whose address another call was given: the block has moved. A
/// new mapping may cover several moving ones.
fn displace(process: &mut ProcessState, sink: &mut Sink, call: Call, size_bytes: u64) {
    let Call { heap, address_avma, .. } = call;
    let end_avma = if heap == HEAP_MMAP { address_avma.saturating_add(size_bytes) } else { address_avma };
    let is_given_away = |moving: &InMotion| {
        moving.heap == heap
            && (moving.address_avma == address_avma
                || (address_avma..end_avma).contains(&moving.address_avma))
            && moving.thread != call.thread
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
        sink.event_of_any_heap(&Call { thread, ..call }.event(action), process.index);
    }
}

fn commit(process: &mut ProcessState, sink: &mut Sink, placed: Placed) {
    let Placed { call, size_bytes, stack, .. } = placed;
    let Call { thread, heap, address_avma, .. } = call;
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
            sink.event_of_any_heap(&call.event(action), process.index);
        }
        (None, _) if address_avma == 0 => {}
        (Some(old), _) => {
            if old != address_avma {
                displace(process, sink, call, size_bytes);
            }
            if heap == HEAP_MMAP {
                let is_reserved = process.regions.remove(&old).is_some_and(|region| region.is_reserved);
                process.regions.insert(address_avma, Region { size_bytes, stack, is_reserved });
                if is_reserved {
                    return;
                }
            }
            let action = Action::Realloc { old_address_avma: old, address_avma, size_bytes, stack };
            sink.event_of_any_heap(&call.event(action), process.index);
        }
        // The old block was displaced earlier. Another thread's block may still be registered at
        // the new address.
        (None, is_moved_realloc) => alloc(process, sink, Placed { is_moved_realloc, ..placed }),
    }
}
