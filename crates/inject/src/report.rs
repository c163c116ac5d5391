//! Reports of attaches and detaches.

use std::time::{Duration, Instant};

/// Durations of the last stop's parts, in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PauseParts {
    /// From the first thread's interrupt until all threads are stopped.
    pub stop: Duration,
    /// Until no thread is in critical code; for a detach, in the agent.
    pub settle: Duration,
    /// Comparing modules and mappings with the plan.
    pub check: Duration,
    /// The caller's reading of the heap.
    pub read_heap: Duration,
    /// Installing the agent and the hooks; for a detach, removing them.
    pub install: Duration,
    /// Resuming the threads.
    pub resume: Duration,
}

/// Measures consecutive durations.
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

/// Report of an attach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttachReport {
    /// Longest time that a thread of the target was stopped, over all tries.
    pub pause: Duration,
    /// Durations of the last stop's parts.
    pub parts: PauseParts,
    /// Number of threads at the attach.
    pub thread_count: usize,
    /// Number of loaded modules.
    pub module_count: usize,
    /// Number of stops until no thread was in the allocator.
    pub try_count: u32,
    /// Number of bytes of an orphaned agent that stay mapped, because a thread may return into
    /// them.
    pub orphan_bytes_left: u64,
    /// Names of the functions whose calls are recorded.
    pub hooks: Vec<String>,
    /// Names of the functions that could not be hooked, each with the reason.
    pub not_hooked: Vec<(String, String)>,
    /// Whether a thread was in the allocator at every try, so that its present block is unknown.
    pub was_allocator_busy: bool,
    /// Number of live blocks found in the target's heap, allocated before the attach.
    pub blocks_before: u64,
    /// Reason why the heap could not be read, so that earlier blocks are unknown.
    pub heap_unread: Option<String>,
    /// Names of embedded allocators' heaps, whose earlier blocks are unknown.
    pub other_heaps: Vec<String>,
    /// Process slot of the target in the shared buffers.
    pub process_slot: u32,
    /// Generation of the slot.
    pub process_generation: u32,
    /// Process id in the target's own namespace.
    pub inner_pid: u32,
    /// Whether the target is only read from outside: counters of its language's runtime.
    pub is_from_outside: bool,
}

/// Report of a detach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DetachReport {
    /// Longest time that a thread of the target was stopped, over all tries.
    pub pause: Duration,
    /// Durations of the last stop's parts; the bytes may have been restored in an earlier stop.
    pub parts: PauseParts,
    /// Number of threads at the detach.
    pub thread_count: usize,
    /// Number of stops until no thread was in the agent.
    pub try_count: u32,
    /// Number of functions that were restored.
    pub hooks_removed: usize,
    /// Number of bytes of the agent and its buffers that stay mapped, because a thread may return
    /// into them.
    pub bytes_left: u64,
    /// Whether the agent was loaded at the program's start and thus stays: it records nothing more,
    /// and calls go around it. Its slot in the shared buffers is unknown here.
    pub stays_loaded: bool,
    /// Process slot that the target had in the shared buffers.
    pub process_slot: u32,
    /// Generation of the slot.
    pub process_generation: u32,
}
