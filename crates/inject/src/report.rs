//! What an attach or a detach did.

use std::time::Duration;

/// What an attach did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttachReport {
    /// Longest time that a thread of the target stood still, over all tries.
    pub pause: Duration,
    /// Threads at the moment of the attach.
    pub thread_count: usize,
    /// Loaded modules.
    pub module_count: usize,
    /// Stops until none of the threads was in the allocator.
    pub try_count: u32,
    /// Functions whose calls are recorded now.
    pub hooks: Vec<String>,
    /// Functions that could not be hooked, and why.
    pub not_hooked: Vec<(String, String)>,
    /// A thread was in the allocator at every try: what it was allocating or freeing is not known.
    pub was_allocator_busy: bool,
    /// The target's process slot in the shared buffers.
    pub process_slot: u32,
    /// Generation of that slot.
    pub process_generation: u32,
    /// Process id as the target sees itself.
    pub inner_pid: u32,
}

/// What a detach did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DetachReport {
    /// Longest time that a thread of the target stood still, over all tries.
    pub pause: Duration,
    /// Threads at that moment.
    pub thread_count: usize,
    /// Stops until no thread was in the agent.
    pub try_count: u32,
    /// Functions that are as they were.
    pub hooks_removed: usize,
    /// Bytes of the agent that stay mapped, because a thread may return into them.
    pub bytes_left: u64,
    /// Process slot in the shared buffers that the target had.
    pub process_slot: u32,
    /// Generation of that slot.
    pub process_generation: u32,
}
