//! The fixed part of the pool: control page, process slots, thread slots, buffer headers.

use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::arch::PAGE_BYTES_MAX;

/// First word of the control page: "heaprpl" and the version of the layout.
pub const POOL_MAGIC: u64 = u64::from_le_bytes(*b"heaprpl\x01");

/// Number that differs between builds whose layout or records differ. Change it with every change
/// of this crate, and of the injector's stub, whose parts a later injector calls.
pub const BUILD_ID: u64 = 0x2026_1129_0000_0148;

/// Largest number of process images that can be traced at one time.
pub const PROCESS_SLOT_COUNT: usize = 2048;
/// Largest number of threads (and nested signal levels) that can be traced at one time, over all
/// processes.
pub const THREAD_SLOT_COUNT: usize = 16_384;
/// Largest number of buffers in a pool, whatever their size.
pub const BUFFER_COUNT_LIMIT: usize = 65_536;
/// Smallest size of a buffer in bytes, a power of two; whole pages.
pub const BUFFER_BYTES_MIN: usize = PAGE_BYTES_MAX;
/// Largest size of a buffer in bytes, a power of two.
pub const BUFFER_BYTES_MAX: usize = 1 << 20;

/// Offset of the process slots in the pool, behind the control page.
pub const PROCESS_SLOTS_OFFSET: usize = PAGE_BYTES_MAX;
/// Offset of the thread slots in the pool.
pub const THREAD_SLOTS_OFFSET: usize = PROCESS_SLOTS_OFFSET + PROCESS_SLOT_COUNT * size_of::<ProcessSlot>();
/// Offset of the buffer headers in the pool.
pub const BUFFER_HEADERS_OFFSET: usize = THREAD_SLOTS_OFFSET + THREAD_SLOT_COUNT * size_of::<ThreadSlot>();

/// Offset of the first buffer in a pool of `buffer_count` buffers; page aligned.
#[must_use]
pub const fn buffers_offset(buffer_count: usize) -> usize {
    (BUFFER_HEADERS_OFFSET + buffer_count * size_of::<BufferHeader>()).next_multiple_of(PAGE_BYTES_MAX)
}

/// Size in bytes of the whole pool.
#[must_use]
pub const fn pool_bytes(buffer_count: usize, buffer_bytes: usize) -> usize {
    buffers_offset(buffer_count) + buffer_count * buffer_bytes
}

/// [`Control::state`]: the recorder reads events.
pub const SESSION_RECORDING: u32 = 1;
/// [`Control::state`]: the recorder is gone; agents disable themselves at their next slow path.
pub const SESSION_CLOSED: u32 = 2;

/// [`Control::flags`]: time stamps are ticks of the processor's counter; otherwise nanoseconds of
/// `CLOCK_MONOTONIC`.
pub const FLAG_CLOCK_TSC: u32 = 1 << 0;
/// [`Control::flags`]: when no buffer is free, the event is counted as lost instead of waiting.
pub const FLAG_DROP_ON_FULL: u32 = 1 << 1;
/// [`Control::flags`]: mmap, munmap, mremap and mprotect are recorded as a second heap.
pub const FLAG_HOOK_MMAP: u32 = 1 << 2;
/// [`Control::flags`]: children are not followed: the agent of a forked or exec'd child disables
/// itself.
pub const FLAG_NO_FOLLOW: u32 = 1 << 3;
/// [`Control::flags`]: the recorder searches programs and libraries for embedded allocators when an
/// agent requests it ([`ProcessSlot::looks_wanted`]).
pub const FLAG_LOOK_INSIDE: u32 = 1 << 4;
/// [`Control::flags`]: stacks have native frames only.
pub const FLAG_NO_LANGUAGES: u32 = 1 << 5;
/// [`Control::flags`]: a process that ends by exit waits until the recorder has read its memory.
pub const FLAG_SEE_EXITS: u32 = 1 << 6;
/// [`Control::flags`]: allocations carry stacks.
pub const FLAG_STACK_ALLOC: u32 = 1 << 8;
/// [`Control::flags`]: reallocations carry stacks.
pub const FLAG_STACK_REALLOC: u32 = 1 << 9;
/// [`Control::flags`]: frees carry stacks.
pub const FLAG_STACK_FREE: u32 = 1 << 10;
/// [`Control::flags`]: the creation of a heap carries a stack.
pub const FLAG_STACK_CREATE: u32 = 1 << 11;
/// [`Control::flags`]: the destruction of a heap carries a stack.
pub const FLAG_STACK_DESTROY: u32 = 1 << 12;
/// [`Control::flags`]: [`Control::max_frames`] or [`Control::verify_every`] is not 0. One test on
/// the agent's path serves both.
pub const FLAG_STACK_SPECIAL: u32 = 1 << 13;

/// [`Control::flags`]: allocations may be samples, at the mean distance
/// [`Control::sample_mean_bytes`].
pub const FLAG_SAMPLED: u32 = 1 << 14;

/// [`Control::sample_mean_bytes`]: all allocations are recorded.
pub const SAMPLE_ALL: u64 = 0;
/// [`Control::sample_mean_bytes`]: no allocation is recorded.
pub const SAMPLE_NOTHING: u64 = u64::MAX;
/// Binary logarithm of the size of a page for which there is a mark.
pub const PAGE_SHIFT: usize = 12;
/// Number of page marks. The lower 32 bits of an address select its page's mark.
pub const PAGE_MARKS: usize = 1 << (32 - PAGE_SHIFT);

/// The control page. Written by the recorder unless a field says otherwise.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Control {
    /// [`POOL_MAGIC`].
    pub magic: AtomicU64,
    /// [`BUILD_ID`] of the recorder.
    pub build_id: AtomicU64,
    /// Size of the whole pool in bytes.
    pub pool_bytes: AtomicU64,
    /// Offset of buffer 0.
    pub buffers_offset: AtomicU64,
    /// Bytes per buffer, a power of two.
    pub buffer_bytes: AtomicU32,
    /// Number of buffers that the file has room for (the session's maximum).
    pub buffer_count: AtomicU32,
    /// `FLAG_*`; may change while the session runs (stack flags only).
    pub flags: AtomicU32,
    /// Largest number of frames recorded of a stack; 0: only the agent's own limit applies.
    pub max_frames: AtomicU32,
    /// Interval of verified stacks: every Nth stack is also unwound in full and compared; 0: never.
    pub verify_every: AtomicU32,
    /// Process id of the recorder, as it sees itself.
    pub recorder_pid: AtomicU32,
    /// Clock value at the start of the session, in the unit of the chosen clock: event times count
    /// from here.
    pub start_ticks: AtomicU64,
    /// `SESSION_*`.
    pub state: AtomicU32,
    /// Counter that the recorder increments each round, so that a waiting agent can distinguish a
    /// slow recorder from a dead one.
    pub heartbeat: AtomicU32,
    /// Futex word: counter that the recorder increments each time that it has freed buffers.
    pub freed_generation: AtomicU32,
    /// Number of threads that wait on `freed_generation`. Written by agents.
    pub waiter_count: AtomicU32,
    /// Futex word on which the recorder sleeps: 1 while it sleeps, 0 when woken. Written by both.
    pub recorder_sleeping: AtomicU32,
    /// Number of processes that found no free slot and run untraced. Written by agents.
    pub processes_refused: AtomicU32,
    /// Number of buffers claimed at this moment. Written by both; a hint, recomputed by the
    /// recorder.
    pub buffers_claimed: AtomicU32,
    /// Number of threads over all processes that found no free thread slot; their events are lost.
    /// Written by agents.
    pub threads_refused: AtomicU32,
    /// Process id of the first process that registered; 0 before. Written by agents. With
    /// [`FLAG_NO_FOLLOW`] only images of this process are traced.
    pub root_pid: AtomicU32,
    /// Number of forks that were about to be made, counted by the C library's fork handlers.
    /// Written by agents.
    pub forks_begun: AtomicU32,
    /// Number of forked processes that have registered. Written by agents. While it is less than
    /// `forks_begun`, a child may be about to register.
    pub forks_arrived: AtomicU32,
    /// Inode of the recorder's process namespace; 0 if unknown. An agent can interpret the
    /// recorder's process ids only in this namespace.
    pub recorder_namespace: AtomicU32,
    /// Start time of the recorder's process in clock ticks since boot, as in /proc/PID/stat; 0 if
    /// unknown. With the process id it identifies the recorder: a later process with the recorder's
    /// number has a later start time.
    pub recorder_start_time: AtomicU64,
    /// Number of claimed buffers that may stay claimed while their owners are idle: open event
    /// buffers, and node buffers. Written by both; recomputed by the recorder.
    pub buffers_held: AtomicU32,
    /// Counter that the recorder increments after each search for ended processes, whose buffers it
    /// then reclaims. A waiting agent learns by it whether the search has happened since the agent
    /// began to wait.
    pub ends_looked_for: AtomicU32,
    /// Value of `ends_looked_for` when an agent gave up waiting for a buffer for stack nodes; 0 if
    /// that has not happened. Written by agents.
    pub nodes_waited_in_vain: AtomicU32,
    /// Number of buffers that may be claimed: the first ones, whose memory the recorder has
    /// allocated. The memory is charged to the recorder's control group, and agents never touch a
    /// page without memory. Only grows.
    pub buffers_open: AtomicU32,
    /// Largest number of buffers that may be opened, as far as the recorder knows; below
    /// `buffer_count` if memory is short.
    pub buffers_limit: AtomicU32,
    /// Futex word: counter that agents increment with each [`ProcessSlot::looks_wanted`].
    pub looks_wanted: AtomicU32,
    /// Effective user id of the recorder. Programs of other users cannot see its descriptors.
    pub recorder_uid: AtomicU32,
    /// With [`FLAG_SAMPLED`]: mean distance of two samples, in bytes requested; or `SAMPLE_ALL` or
    /// `SAMPLE_NOTHING`. May change while the session runs.
    pub sample_mean_bytes: AtomicU64,
}

/// [`ProcessSlot::state`]: the slot is free.
pub const PROCESS_FREE: u32 = 0;
/// [`ProcessSlot::state`]: claimed, fields being written.
pub const PROCESS_CLAIMED: u32 = 1;
/// [`ProcessSlot::state`]: traced.
pub const PROCESS_LIVE: u32 = 2;
/// [`ProcessSlot::state`]: the agent has disabled itself; see [`ProcessSlot::disable_reason`].
pub const PROCESS_DISABLED: u32 = 3;

/// [`ProcessSlot::origin`]: the image came by exec (or is the first program).
pub const ORIGIN_EXEC: u32 = 1;
/// [`ProcessSlot::origin`]: the image came by fork of the process in `parent_slot`.
pub const ORIGIN_FORK: u32 = 2;
/// [`ProcessSlot::origin`]: the agent was loaded into the running image.
pub const ORIGIN_ATTACH: u32 = 3;

/// Index that stands for the absence of a slot (process or thread).
pub const NO_SLOT: u32 = u32::MAX;

/// Longest file name of a program that a process slot holds, in bytes.
pub const EXECUTABLE_NAME_BYTES_MAX: usize = 48;

/// One traced process image. Written by the agent of that process; freed (state 0) by the recorder.
///
/// ```text
/// FREE -> CLAIMED    agent: compare-exchange
///      -> LIVE       agent, release
///      -> DISABLED   agent
///      -> FREE       recorder, when the process has ended and all its buffers are drained
/// ```
#[derive(Debug)]
#[repr(C, align(128))]
pub struct ProcessSlot {
    /// `PROCESS_*`.
    pub state: AtomicU32,
    /// Process id as the process sees itself.
    pub pid: AtomicU32,
    /// Parent's process id as the process sees it.
    pub parent_pid: AtomicU32,
    /// `ORIGIN_*`.
    pub origin: AtomicU32,
    /// For `ORIGIN_FORK`: the slot of the process it was forked from; else [`NO_SLOT`].
    pub parent_slot: AtomicU32,
    /// Number of the [`DisableReason`]; 0 while enabled.
    pub disable_reason: AtomicU32,
    /// Time at which the image was registered, in ticks since the session's start.
    pub start_ticks: AtomicU64,
    /// Number of events lost in this process that no thread slot could count.
    pub events_lost: AtomicU64,
    /// Number of stacks that are cut short or unknown because the stack tree could not grow.
    pub stacks_lost: AtomicU64,
    /// Number of stacks compared with a full unwind.
    pub verify_count: AtomicU64,
    /// Number of compared stacks that differed.
    pub verify_mismatch_count: AtomicU64,
    /// Counter incremented at each claim; distinguishes successive users of the slot.
    pub generation: AtomicU32,
    /// Inode of the process's process namespace; 0 if unknown.
    pub namespace: AtomicU32,
    /// 1: the program has an allocator that the agent does not see.
    pub has_own_malloc: AtomicU32,
    /// Number of the [`DisableReason`] why a program that this process executed or started is not
    /// recorded; 0 if there is no such program.
    pub untraced_exec: AtomicU32,
    /// File name of the program, eight bytes a word, first byte lowest, padded with zeros. Empty if
    /// unknown or longer. Used for a process that ended before the recorder could read /proc, and
    /// that wrote no record with its path.
    pub executable_name: [AtomicU64; EXECUTABLE_NAME_BYTES_MAX / 8],
    /// Counter that the agent increments when modules were loaded that may contain an allocator.
    /// The agent waits until `looks_done` is equal.
    pub looks_wanted: AtomicU32,
    /// Futex word: the value of `looks_wanted` whose inspection is done. Written by the recorder.
    pub looks_done: AtomicU32,
    /// Resident bytes when the process was about to end, as the kernel reports them; 0 if not read.
    /// In order: anonymous memory, files, shared memory, and the peak of all.
    pub resident_at_exit: [AtomicU64; 4],
    /// Counter incremented when [`Self::resident_at_exit`] is written.
    pub exits_noted: AtomicU32,
    /// Bits `MARK_*`.
    pub exit_marks: AtomicU32,
    /// Address of the agent's list of its own mappings: pairs of address and bytes.
    pub own_mappings_avma: AtomicU64,
    /// Process id, in its own namespace, of a thread about to exec a program that cannot find the
    /// session by itself. Valid with [`MARK_EXEC_WANTED`].
    pub exec_pid: AtomicU32,
    /// Thread id of the thread at `exec_pid`.
    pub exec_tid: AtomicU32,
    /// 1: the recorder holds the exec, and takes care of the new program. Written before
    /// `looks_done`.
    pub exec_held: AtomicU32,
    /// File name of the program of [`Self::untraced_exec`], packed as `executable_name` is.
    pub untraced_name: [AtomicU64; EXECUTABLE_NAME_BYTES_MAX / 8],
    /// Ring of page marks to decrement, each by its number. The recorder writes them, then
    /// increments `unmarked_told`.
    pub unmarked: [AtomicU32; UNMARKED_MAX],
    /// Number of entries written to `unmarked`.
    pub unmarked_told: AtomicU32,
    /// Number of entries that the agent has taken from `unmarked`.
    pub unmarked_taken: AtomicU32,
}

/// Capacity of [`ProcessSlot::unmarked`].
pub const UNMARKED_MAX: usize = 32;

/// [`ProcessSlot::exit_marks`]: the process is about to end, and waits; set by the agent.
pub const MARK_EXIT_WAITS: u32 = 1;
/// [`ProcessSlot::exit_marks`]: the next inspection reads the process's memory; cleared by the
/// recorder.
pub const MARK_MEMORY_WANTED: u32 = 1 << 2;
/// [`ProcessSlot::exit_marks`]: the next inspection holds an exec; cleared by the recorder.
pub const MARK_EXEC_WANTED: u32 = 1 << 3;
/// [`ProcessSlot::exit_marks`]: an inspection is in progress. The agent waits longer for it,
/// because large files may be read or downloaded. Set and cleared by the recorder.
pub const MARK_LOOK_BEGUN: u32 = 1 << 4;
/// [`ProcessSlot::exit_marks`]: the layout of a talloc's blocks is unknown; set by the agent.
pub const MARK_TREE_UNKNOWN: u32 = 1 << 5;
/// [`ProcessSlot::exit_marks`]: the process need not wait any longer; set by the recorder.
pub const MARK_EXIT_SEEN: u32 = 1 << 1;

/// [`ThreadSlot::state`]: the slot is free.
pub const THREAD_FREE: u32 = 0;
/// [`ThreadSlot::state`]: claimed, fields being written.
pub const THREAD_CLAIMED: u32 = 1;
/// [`ThreadSlot::state`]: in use.
pub const THREAD_LIVE: u32 = 2;
/// [`ThreadSlot::state`]: the thread has ended in good order and writes no more records.
pub const THREAD_ENDED: u32 = 3;

/// One thread of a traced process. Written by that thread alone; freed by the recorder once it has
/// ended and its buffers are drained. The counters are plain (single writer) and only ever grow.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct ThreadSlot {
    /// `THREAD_*`.
    pub state: AtomicU32,
    /// Index of the process slot.
    pub process_slot: AtomicU32,
    /// [`ProcessSlot::generation`] of the process at registration.
    pub process_generation: AtomicU32,
    /// Thread id as the process sees it.
    pub tid: AtomicU32,
    /// 0 for the thread itself, 1 and up for signal handlers that interrupted a hook.
    pub nested_level: AtomicU32,
    /// Counter incremented at each claim; distinguishes successive users of the slot.
    pub generation: AtomicU32,
    /// Number of events lost for want of a buffer.
    pub events_lost: AtomicU64,
    /// Number of times that the thread waited for a buffer.
    pub wait_count: AtomicU64,
    /// Total time that the thread waited for buffers, in nanoseconds.
    pub wait_ns: AtomicU64,
    /// Number of stacks captured.
    pub stack_count: AtomicU64,
    /// Number of frames unwound anew over those stacks.
    pub frames_unwound: AtomicU64,
    /// Number of unwind rules that had to be read from `.eh_frame`.
    pub rule_miss_count: AtomicU64,
    /// Number of stacks that stopped for another reason than reaching the root.
    pub stacks_truncated: AtomicU64,
}

/// Kind in [`BufferHeader::owner`]: event records of one thread.
pub const OWNER_EVENTS: u64 = 1;
/// Kind in [`BufferHeader::owner`]: stack nodes of one process.
pub const OWNER_NODES: u64 = 2;

/// Header of one buffer. The owner word decides whether the buffer is free: 0 is free, and a claim
/// is one compare-exchange from 0. A claimed buffer thus always names its owner, even if the
/// claimer dies at once.
///
/// ```text
/// owner = 0                         free
/// owner = kind:4 | slot:20 | sequence:40
/// ```
/// The sequence counts the buffers of that thread or process from 0.
///
/// Claim (agent): CAS owner 0 -> owner; then store `owner_generation`. The words `published` and
/// `closed` are 0 when free: the recorder zeroes them before it stores owner = 0 (release).
#[derive(Debug)]
#[repr(C, align(64))]
pub struct BufferHeader {
    /// Owner word: packed by [`owner_word`], unpacked by [`split_owner`].
    pub owner: AtomicU64,
    /// Events: number of bytes published (multiple of 8). Bit 0 is [`PUBLISHED_BUSY`] while an
    /// event is being written; bit 1 is [`PUBLISHED_CLOSED`] if nothing follows. Release by the
    /// agent; Acquire by the recorder.
    pub owner_generation: AtomicU32,
    /// Events: number of bytes published (multiple of 8). Bit 0 is [`PUBLISHED_BUSY`] while an
    /// event is being written; bit 1 is [`PUBLISHED_CLOSED`] if the buffer is complete. Release by
    /// the agent; Acquire by the recorder.
    pub published: AtomicU32,
    /// Events: 1 when the thread writes no more into this buffer. Stored (release) after the last
    /// `published`.
    pub closed: AtomicU32,
    /// Nodes: number of the block's first node.
    pub first_node: AtomicU32,
    /// Ticks at which the buffer was claimed: no event in it is earlier.
    pub claimed_ticks: AtomicU64,
    /// Reserved.
    pub reserved: [AtomicU64; 3],
}

/// Bit 0 of [`BufferHeader::published`]: the thread has begun an event (it reads the clock after
/// this store) and has not published it yet. The recorder must not process later events of other
/// threads until the bit is cleared.
pub const PUBLISHED_BUSY: u32 = 1;
/// Bit 1 of [`BufferHeader::published`]: the buffer is closed, published with its last record.
/// After this store the thread must not touch the buffer again: it may have a new owner.
pub const PUBLISHED_CLOSED: u32 = 2;

/// Packs a [`BufferHeader::owner`] word. `slot` must be below 2^20; `sequence` is taken modulo
/// 2^40.
#[must_use]
pub const fn owner_word(kind: u64, slot: u32, sequence: u64) -> u64 {
    kind << 60 | ((slot as u64) & 0xf_ffff) << 40 | (sequence & ((1 << 40) - 1))
}

/// Unpacks a [`BufferHeader::owner`] word: (kind, slot, sequence).
#[must_use]
pub const fn split_owner(owner: u64) -> (u64, u32, u64) {
    (owner >> 60, (owner >> 40 & 0xf_ffff) as u32, owner & ((1 << 40) - 1))
}

/// A stack node as it lies in a node block: 16 bytes. `return_address` is stored last (release) and
/// is never 0 in a written node. Node 0 is the root (no frame) and is never stored.
///
/// Node numbers: block k of a process holds the nodes `first_node .. first_node + buffer_bytes /
/// 16`, where `first_node = k * buffer_bytes / 16`; number 0 stays unused.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct StackNode {
    /// The address to which the frame returns. For a frame interrupted by a signal: the exact
    /// address plus one, so that `return_address - 1` always lies in the right instruction. Bits
    /// 56.. are 0.
    pub return_address: AtomicU64,
    /// The caller's node; 0 for an outermost frame.
    pub parent: AtomicU32,
    /// Reserved.
    pub reserved: AtomicU32,
}

/// Bits of [`StackNode::return_address`] that hold the address.
pub const NODE_ADDRESS_MASK: u64 = (1 << 56) - 1;

/// Reason why an agent stopped recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum DisableReason {
    /// Not disabled.
    None = 0,
    /// The recorder closed the session.
    SessionClosed = 1,
    /// The recorder died (no heartbeat and no such process).
    RecorderDied = 2,
    /// The pool's pages are not as this build expects them.
    BadPool = 3,
    /// No process slot was free.
    NoProcessSlot = 4,
    /// The address space is full: no memory for the agent's own tables.
    NoMemory = 5,
    /// The session does not follow children.
    NotFollowed = 6,
    /// The real allocator's functions were not found.
    NoAllocator = 7,
    /// The process was detached from.
    LetGo = 8,
    /// The program has forbidden itself a system call that the agent needs (seccomp).
    Forbidden = 9,
    /// The program is built with a sanitizer.
    Sanitizer = 10,
    /// The agent's file or the recorder is not visible in the program's namespaces.
    NotVisible = 11,
    /// The program is for another processor architecture.
    OtherProcessor = 12,
    /// The program is linked statically.
    Static = 13,
    /// The shared pages hold values that neither side writes.
    PoolOverwritten = 14,
}

impl DisableReason {
    /// True if the recording of the process ended early, against the user's wish.
    #[must_use]
    pub const fn is_early_end(self) -> bool {
        match self {
            Self::RecorderDied
            | Self::BadPool
            | Self::NoMemory
            | Self::Forbidden
            | Self::Sanitizer
            | Self::PoolOverwritten => true,
            Self::None
            | Self::SessionClosed
            | Self::NoProcessSlot
            | Self::NotFollowed
            | Self::NoAllocator
            | Self::LetGo
            | Self::NotVisible
            | Self::OtherProcessor
            | Self::Static => false,
        }
    }

    /// The reason for a number read from a shared page; `None` if the number is unknown.
    #[must_use]
    pub const fn from_number_untrusted(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::None,
            1 => Self::SessionClosed,
            2 => Self::RecorderDied,
            3 => Self::BadPool,
            4 => Self::NoProcessSlot,
            5 => Self::NoMemory,
            6 => Self::NotFollowed,
            7 => Self::NoAllocator,
            8 => Self::LetGo,
            9 => Self::Forbidden,
            10 => Self::Sanitizer,
            11 => Self::NotVisible,
            12 => Self::OtherProcessor,
            13 => Self::Static,
            14 => Self::PoolOverwritten,
            _ => return None,
        })
    }
}

const _: () = assert!(size_of::<Control>() <= PROCESS_SLOTS_OFFSET);
const _: () = assert!(size_of::<Control>() == 192);
const _: () = assert!(size_of::<ProcessSlot>() == 384);
const _: () = assert!(size_of::<ThreadSlot>() == 128);
const _: () = assert!(size_of::<BufferHeader>() == 64);
const _: () = assert!(size_of::<StackNode>() == 16);
const _: () =
    assert!(THREAD_SLOT_COUNT < 1 << 20 && PROCESS_SLOT_COUNT < 1 << 20, "a slot must fit the owner word");
