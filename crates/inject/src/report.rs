//! What an attach or a detach did.

use std::time::{Duration, Instant};

/// Where the time of the stop went in which it was done: the parts of it follow each other in this
/// order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PauseParts {
    /// From the first thread's interrupt until all stand still.
    pub stop: Duration,
    /// Until no thread was in the way: of a detach, in the agent.
    pub settle: Duration,
    /// Looking whether modules and mappings are as planned.
    pub check: Duration,
    /// The caller's look at the heap.
    pub read_heap: Duration,
    /// The agent and the hooks; of a detach: taking them away.
    pub install: Duration,
    /// Letting the threads go on.
    pub resume: Duration,
}

/// Measures parts that follow each other.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the last call.
    pub(crate) fn lap(&mut self) -> Duration {
        let now = Instant::now();
        now - std::mem::replace(&mut self.0, now)
    }
}

/// What an attach did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttachReport {
    /// Longest time that a thread of the target stood still, over all tries.
    pub pause: Duration,
    /// Where the time of the last stop went.
    pub parts: PauseParts,
    /// Threads at the moment of the attach.
    pub thread_count: usize,
    /// Loaded modules.
    pub module_count: usize,
    /// Stops until none of the threads was in the allocator.
    pub try_count: u32,
    /// Bytes of an agent whose recorder was killed that stay mapped, because a thread may return
    /// into them.
    pub orphan_bytes_left: u64,
    /// Functions whose calls are recorded now.
    pub hooks: Vec<String>,
    /// Functions that could not be hooked, and why.
    pub not_hooked: Vec<(String, String)>,
    /// A thread was in the allocator at every try: what it was allocating or freeing is not known.
    pub was_allocator_busy: bool,
    /// Live blocks that were found in the target's heap: what it had allocated before.
    pub blocks_before: u64,
    /// Why its heap could not be read, if so; then what it had allocated before is not known.
    pub heap_unread: Option<String>,
    /// Heaps of allocators inside of it, by name: what they held before is not known.
    pub other_heaps: Vec<String>,
    /// The target's process slot in the shared buffers.
    pub process_slot: u32,
    /// Generation of that slot.
    pub process_generation: u32,
    /// Process id as the target sees itself.
    pub inner_pid: u32,
    /// Nothing was done in it: what its language's runtime counts is read from outside.
    pub is_from_outside: bool,
}

/// What a detach did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DetachReport {
    /// Longest time that a thread of the target stood still, over all tries.
    pub pause: Duration,
    /// Where the time of the last stop went; the bytes may have been put back in an earlier one.
    pub parts: PauseParts,
    /// Threads at that moment.
    pub thread_count: usize,
    /// Stops until no thread was in the agent.
    pub try_count: u32,
    /// Functions that are as they were.
    pub hooks_removed: usize,
    /// Bytes of the agent, its buffers among them, that stay mapped, because a thread may return
    /// into them.
    pub bytes_left: u64,
    /// The agent was loaded when the program started, and stays: it records nothing more, and calls
    /// go around it. Where it is in the shared buffers is not known here.
    pub stays_loaded: bool,
    /// Process slot in the shared buffers that the target had.
    pub process_slot: u32,
    /// Generation of that slot.
    pub process_generation: u32,
}
