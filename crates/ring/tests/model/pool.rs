//! A pool of a few words, made of the atomics of `loom`; the constants are the real ones.

pub use heapr_wire::{
    EXECUTABLE_NAME_BYTES_MAX, MARK_LOOK_BEGUN, NO_SLOT, NODE_ADDRESS_MASK, OWNER_EVENTS, OWNER_NODES,
    PROCESS_CLAIMED, PROCESS_FREE, PROCESS_LIVE, PUBLISHED_BUSY, PUBLISHED_CLOSED, SESSION_CLOSED,
    SESSION_RECORDING, THREAD_CLAIMED, THREAD_FREE, THREAD_LIVE, owner_word, split_owner,
};
use loom::sync::atomic::Ordering::{self, Relaxed};
use loom::sync::atomic::{AtomicU32, AtomicU64};

use crate::sys::Descriptor;

/// Number of process slots; the model registers no processes.
pub const PROCESS_SLOT_COUNT: usize = 1;
/// Number of thread slots; the model registers no threads.
pub const THREAD_SLOT_COUNT: usize = 1;
/// Number of words per buffer.
const WORDS: usize = 2;

/// Defines a struct of atomics that begin as 0, as the kernel's memory does.
macro_rules! shared {
    ($name:ident { $($field:ident: $kind:ty),* $(,)? }) => {
        #[derive(Debug, Default)]
        pub struct $name {
            $(pub $field: $kind,)*
        }
    };
}

/// A word whose accesses each increment a counter first. `loom` compares an access only with the
/// last one. A load between another thread's load and a store would hide that these two could swap;
/// the counters do not.
#[derive(Debug, Default)]
pub struct OwnerWord {
    word: AtomicU64,
    turn: AtomicU32,
}

impl OwnerWord {
    pub fn load(&self, order: Ordering) -> u64 {
        self.turn.fetch_add(1, Relaxed);
        self.word.load(order)
    }

    pub fn store(&self, value: u64, order: Ordering) {
        self.turn.fetch_add(1, Relaxed);
        self.word.store(value, order);
    }

    pub fn compare_exchange(&self, old: u64, new: u64, good: Ordering, bad: Ordering) -> Result<u64, u64> {
        self.turn.fetch_add(1, Relaxed);
        self.word.compare_exchange(old, new, good, bad)
    }
}

shared!(Control {
    state: AtomicU32,
    heartbeat: AtomicU32,
    freed_generation: AtomicU32,
    waiter_count: AtomicU32,
    recorder_sleeping: AtomicU32,
    recorder_pid: AtomicU32,
    recorder_namespace: AtomicU32,
    processes_refused: AtomicU32,
    threads_refused: AtomicU32,
    buffers_claimed: AtomicU32,
    buffers_held: AtomicU32,
    ends_looked_for: AtomicU32,
    nodes_waited_in_vain: AtomicU32,
    looks_wanted: AtomicU32,
});
shared!(ProcessSlot {
    state: AtomicU32,
    pid: AtomicU32,
    parent_pid: AtomicU32,
    origin: AtomicU32,
    parent_slot: AtomicU32,
    disable_reason: AtomicU32,
    start_ticks: AtomicU64,
    events_lost: AtomicU64,
    stacks_lost: AtomicU64,
    verify_count: AtomicU64,
    verify_mismatch_count: AtomicU64,
    generation: AtomicU32,
    namespace: AtomicU32,
    has_own_malloc: AtomicU32,
    untraced_exec: AtomicU32,
    looks_wanted: AtomicU32,
    looks_done: AtomicU32,
    exits_noted: AtomicU32,
    exit_marks: AtomicU32,
    own_mappings_avma: AtomicU64,
    exec_held: AtomicU32,
    untraced_name: [AtomicU64; EXECUTABLE_NAME_BYTES_MAX / 8],
    executable_name: [AtomicU64; EXECUTABLE_NAME_BYTES_MAX / 8],
});
shared!(ThreadSlot {
    state: AtomicU32,
    process_slot: AtomicU32,
    process_generation: AtomicU32,
    tid: AtomicU32,
    nested_level: AtomicU32,
    generation: AtomicU32,
    events_lost: AtomicU64,
    wait_count: AtomicU64,
    wait_ns: AtomicU64,
    stack_count: AtomicU64,
    frames_unwound: AtomicU64,
    rule_miss_count: AtomicU64,
    stacks_truncated: AtomicU64,
});
shared!(BufferHeader {
    owner: OwnerWord,
    owner_generation: AtomicU32,
    published: AtomicU32,
    closed: AtomicU32,
    first_node: AtomicU32,
    claimed_ticks: AtomicU64,
});
shared!(StackNode { return_address: AtomicU64, parent: AtomicU32 });
shared!(Buffer { header: BufferHeader, words: [AtomicU64; WORDS], nodes: [StackNode; 1] });

/// Error of opening buffers, which is not in the model.
#[derive(Debug)]
pub struct PoolError;

/// The buffers and their counters.
#[derive(Debug)]
pub struct Pool {
    control: Control,
    buffers: Vec<Buffer>,
}

impl Pool {
    pub fn new(buffer_count: usize) -> Self {
        let control = Control::default();
        control.state.store(SESSION_RECORDING, Relaxed);
        Self { control, buffers: (0..buffer_count).map(|_| Buffer::default()).collect() }
    }

    pub fn control(&self) -> &Control {
        &self.control
    }

    pub fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    pub fn claimable_count(&self) -> usize {
        self.buffers.len()
    }

    pub fn limit_count(&self) -> usize {
        self.buffers.len()
    }

    pub fn buffer_bytes(&self) -> usize {
        WORDS * 8
    }

    pub fn nodes_per_block(&self) -> usize {
        1
    }

    pub fn buffer_header(&self, index: u32) -> Option<&BufferHeader> {
        Some(&self.buffers.get(index as usize)?.header)
    }

    pub fn buffer_words(&self, index: u32) -> Option<&[AtomicU64]> {
        Some(&self.buffers.get(index as usize)?.words)
    }

    pub fn buffer_nodes(&self, index: u32) -> Option<&[StackNode]> {
        Some(&self.buffers.get(index as usize)?.nodes)
    }

    pub fn process_slot(&self, _index: u32) -> Option<&ProcessSlot> {
        None
    }

    pub fn thread_slot(&self, _index: u32) -> Option<&ThreadSlot> {
        None
    }

    pub fn open_up_to(&self, _descriptor: &Descriptor, _count: usize) -> Result<(), PoolError> {
        Err(PoolError)
    }
}
