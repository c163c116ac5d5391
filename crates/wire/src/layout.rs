//! The fixed part of the pool: control page, process slots, thread slots, buffer headers.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// First word of the control page: "heaprpl" and the layout's version.
pub const POOL_MAGIC: u64 = u64::from_le_bytes(*b"heaprpl\x01");

/// A number that differs between builds whose layout or records differ. Change it with every change
/// of this crate.
pub const BUILD_ID: u64 = 0x2026_1128_0000_0146;

/// Process images that can be traced at the same time.
pub const PROCESS_SLOT_COUNT: usize = 2048;
/// Threads (and nested signal levels) that can be traced at the same time, over all processes.
pub const THREAD_SLOT_COUNT: usize = 16_384;
/// Largest number of buffers in a pool, whatever their size.
pub const BUFFER_COUNT_LIMIT: usize = 65_536;
/// Smallest and largest size of a buffer in bytes (a power of two).
pub const BUFFER_BYTES_MIN: usize = 4096;
/// See [`BUFFER_BYTES_MIN`].
pub const BUFFER_BYTES_MAX: usize = 1 << 20;

/// Offset of the process slots in the pool.
pub const PROCESS_SLOTS_OFFSET: usize = 4096;
/// Offset of the thread slots in the pool.
pub const THREAD_SLOTS_OFFSET: usize = PROCESS_SLOTS_OFFSET + PROCESS_SLOT_COUNT * size_of::<ProcessSlot>();
/// Offset of the buffer headers in the pool.
pub const BUFFER_HEADERS_OFFSET: usize = THREAD_SLOTS_OFFSET + THREAD_SLOT_COUNT * size_of::<ThreadSlot>();

/// Offset of the first buffer for a pool of `buffer_count` buffers; page aligned.
#[must_use]
pub const fn buffers_offset(buffer_count: usize) -> usize {
    (BUFFER_HEADERS_OFFSET + buffer_count * size_of::<BufferHeader>() + 4095) & !4095
}

/// Size in bytes of a whole pool.
#[must_use]
pub const fn pool_bytes(buffer_count: usize, buffer_bytes: usize) -> usize {
    buffers_offset(buffer_count) + buffer_count * buffer_bytes
}

/// [`Control::state`]: the recorder takes events.
pub const SESSION_RECORDING: u32 = 1;
/// [`Control::state`]: the recorder is gone; agents disable themselves at their next slow path.
pub const SESSION_CLOSED: u32 = 2;

/// [`Control::flags`]: time stamps are `rdtsc` ticks; otherwise `CLOCK_MONOTONIC` nanoseconds.
pub const FLAG_CLOCK_TSC: u32 = 1 << 0;
/// [`Control::flags`]: when no buffer is free the event is counted as lost instead of waiting.
pub const FLAG_DROP_ON_FULL: u32 = 1 << 1;
/// [`Control::flags`]: mmap, munmap, mremap and mprotect are recorded as a second heap.
pub const FLAG_HOOK_MMAP: u32 = 1 << 2;
/// [`Control::flags`]: children are not followed: the agent of a forked or exec'd child disables
/// itself.
pub const FLAG_NO_FOLLOW: u32 = 1 << 3;
/// [`Control::flags`]: somebody looks for allocators inside of programs and libraries, when an
/// agent asks for it ([`ProcessSlot::looks_wanted`]).
pub const FLAG_LOOK_INSIDE: u32 = 1 << 4;
/// [`Control::flags`]: stacks have native frames alone.
pub const FLAG_NO_LANGUAGES: u32 = 1 << 5;
/// [`Control::flags`]: a process that ends by exit waits to be looked at before its memory goes.
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
/// [`Control::flags`]: [`Control::max_frames`] or [`Control::verify_every`] is not 0. (A stack's
/// way through the agent asks one question for both.)
pub const FLAG_STACK_SPECIAL: u32 = 1 << 13;

/// [`Control::flags`]: allocations may be samples, as [`Control::sample_mean_bytes`] says.
pub const FLAG_SAMPLED: u32 = 1 << 14;

/// [`Control::sample_mean_bytes`]: all allocations are recorded.
pub const SAMPLE_ALL: u64 = 0;
/// [`Control::sample_mean_bytes`]: none is.
pub const SAMPLE_NOTHING: u64 = u64::MAX;
/// Bytes of a page, as samples' pages are marked: the shift, …
pub const PAGE_SHIFT: usize = 12;
/// … and the number of marks, which are found by the lower half of an address.
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
    /// Buffers that there is room for in the file (the session's maximum).
    pub buffer_count: AtomicU32,
    /// `FLAG_*`; may change while the session runs (stack flags only).
    pub flags: AtomicU32,
    /// Frames kept of a stack; 0: no bound but the agent's own.
    pub max_frames: AtomicU32,
    /// Every Nth stack is also unwound in full and compared; 0: never.
    pub verify_every: AtomicU32,
    /// Process id of the recorder, as it sees itself.
    pub recorder_pid: AtomicU32,
    /// Clock value at the start of the session, in the unit of the chosen clock: event times count
    /// from here.
    pub start_ticks: AtomicU64,
    /// `SESSION_*`.
    pub state: AtomicU32,
    /// Incremented by the recorder at each round, so that a waiting agent can tell a slow recorder
    /// from a dead one.
    pub heartbeat: AtomicU32,
    /// Futex word: incremented by the recorder each time that it has freed buffers.
    pub freed_generation: AtomicU32,
    /// Threads that wait on `freed_generation`. Written by agents.
    pub waiter_count: AtomicU32,
    /// Futex word on which the recorder sleeps: 1 while it sleeps, 0 when woken. Written by both.
    pub recorder_sleeping: AtomicU32,
    /// Processes that found no free slot and run untraced. Written by agents.
    pub processes_refused: AtomicU32,
    /// Buffers claimed at this moment. Written by both; a hint, recomputed by the recorder.
    pub buffers_claimed: AtomicU32,
    /// Number of threads over all processes that found no free thread slot; their events are lost.
    /// Written by agents.
    pub threads_refused: AtomicU32,
    /// Process id of the first process that registered, 0 before. Written by agents: with
    /// [`FLAG_NO_FOLLOW`] only images of this process are traced.
    pub root_pid: AtomicU32,
    /// Forks that were about to be made, as the C library's fork handlers saw them. Written by
    /// agents.
    pub forks_begun: AtomicU32,
    /// Forked processes that have registered. Written by agents: while fewer than were begun, one
    /// may be on its way.
    pub forks_arrived: AtomicU32,
    /// Inode of the recorder's process namespace, 0 if unknown: process ids mean the same to an
    /// agent only in the same one.
    pub recorder_namespace: AtomicU32,
    /// When the recorder's process was started, in clock ticks since boot as /proc/PID/stat has it;
    /// 0 if unknown. With its process id it tells whether it lives: another process that gets
    /// the number later was started later.
    pub recorder_start_time: AtomicU64,
    /// Buffers that are claimed and may stay so for as long as their owners do nothing: of events
    /// and not closed, or of nodes. Written by both; recomputed by the recorder.
    pub buffers_held: AtomicU32,
    /// Incremented by the recorder each time that it has looked which processes have ended, whose
    /// buffers it takes back then: so that a waiting agent can tell buffers whose owners live
    /// from those that nobody has looked at yet.
    pub ends_looked_for: AtomicU32,
    /// What `ends_looked_for` was when an agent gave up to wait for a buffer for stack nodes; 0:
    /// none did. Written by agents.
    pub nodes_waited_in_vain: AtomicU32,
    /// Buffers that may be claimed: the first ones, to which the recorder has given their memory.
    /// So it is charged to the recorder's control group, and no agent ever touches a page for
    /// which there is none. Grows.
    pub buffers_open: AtomicU32,
    /// How many may be opened, as far as the recorder knows: less than exist where there is no room
    /// for more.
    pub buffers_limit: AtomicU32,
    /// Futex word: incremented by agents with each [`ProcessSlot::looks_wanted`].
    pub looks_wanted: AtomicU32,
    /// The recorder's effective user: programs of others do not see its descriptors.
    pub recorder_uid: AtomicU32,
    /// With [`FLAG_SAMPLED`]: the mean distance of two samples, in bytes asked for; `SAMPLE_ALL`,
    /// `SAMPLE_NOTHING`. May change while the session runs.
    pub sample_mean_bytes: AtomicU64,
}

/// [`ProcessSlot::state`]: nobody's.
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

/// No slot (process or thread).
pub const NO_SLOT: u32 = u32::MAX;

/// Longest file name of a program that a process slot holds, in bytes.
pub const EXECUTABLE_NAME_BYTES_MAX: usize = 48;

/// One traced process image. Written by the agent of that process; freed (state 0) by the recorder.
///
/// ```text
/// FREE -> CLAIMED (agent: compare-exchange) -> LIVE (agent, release) -> DISABLED (agent) -> FREE (recorder, when the
/// process has ended and all its buffers are drained)
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
    /// [`DisableReason`] as a number; 0 while enabled.
    pub disable_reason: AtomicU32,
    /// Ticks (since the session's start) at which the image was registered.
    pub start_ticks: AtomicU64,
    /// Events lost in this process that no thread slot could count.
    pub events_lost: AtomicU64,
    /// Stacks cut short or unknown because the stack tree could not grow.
    pub stacks_lost: AtomicU64,
    /// Stacks compared with a full unwind, and how many differed.
    pub verify_count: AtomicU64,
    /// See `verify_count`.
    pub verify_mismatch_count: AtomicU64,
    /// Incremented at each claim: tells apart two users of the same slot.
    pub generation: AtomicU32,
    /// Inode of the process's process namespace; 0 if unknown.
    pub namespace: AtomicU32,
    /// 1: the program has an allocator of its own that the agent does not see.
    pub has_own_malloc: AtomicU32,
    /// [`DisableReason`] as a number: why a program that this process went on to, or started, is
    /// not recorded; 0: none.
    pub untraced_exec: AtomicU32,
    /// File name of the program, eight bytes a word, first byte lowest, zeros behind it; empty
    /// where it is unknown or longer. For a process that has ended before anybody could ask
    /// /proc, and has written no record that tells its path.
    pub executable_name: [AtomicU64; EXECUTABLE_NAME_BYTES_MAX / 8],
    /// Incremented by the agent when modules were loaded in which an allocator may be. It waits
    /// until `looks_done` is the same.
    pub looks_wanted: AtomicU32,
    /// Futex word. Written by who has looked.
    pub looks_done: AtomicU32,
    /// What the process had resident when it was about to end, as the kernel told it: anonymous
    /// memory, files, shared memory, and the most of all; in bytes. 0: it did not come to that.
    pub resident_at_exit: [AtomicU64; 4],
    /// Incremented when [`Self::resident_at_exit`] is written.
    pub exits_noted: AtomicU32,
    /// `MARK_EXIT_*`.
    pub exit_marks: AtomicU32,
    /// Where the agent's list of its own mappings is: pairs of address and bytes.
    pub own_mappings_avma: AtomicU64,
    /// Process and thread, as they see themselves, that are about to go on to a program which
    /// cannot find the session by itself: with [`MARK_EXEC_WANTED`].
    pub exec_pid: AtomicU32,
    /// See `exec_pid`.
    pub exec_tid: AtomicU32,
    /// 1: whoever looks holds that exec, and sees to the program. Written before `looks_done`.
    pub exec_held: AtomicU32,
    /// The file name of the program that [`Self::untraced_exec`] is about, as `executable_name` is
    /// packed.
    pub untraced_name: [AtomicU64; EXECUTABLE_NAME_BYTES_MAX / 8],
    /// Marks of pages to take one off, each by its number, in turn: written by the recorder, which
    /// then increments `unmarked_told`.
    pub unmarked: [AtomicU32; UNMARKED_MAX],
    /// How many were written.
    pub unmarked_told: AtomicU32,
    /// How many the agent has taken.
    pub unmarked_taken: AtomicU32,
}

/// Room for marks to take off.
pub const UNMARKED_MAX: usize = 32;

/// [`ProcessSlot::exit_marks`]: it is about to end, and waits; set by the agent.
pub const MARK_EXIT_WAITS: u32 = 1;
/// [`ProcessSlot::exit_marks`]: its memory is to be looked at with the next look that it asks for;
/// taken off by who looks.
pub const MARK_MEMORY_WANTED: u32 = 1 << 2;
/// [`ProcessSlot::exit_marks`]: an exec is to be held with the next look; taken off by who looks.
pub const MARK_EXEC_WANTED: u32 = 1 << 3;
/// [`ProcessSlot::exit_marks`]: somebody is at the look, so that it is waited for longer (large
/// files are read, or fetched); set and taken off by who looks.
pub const MARK_LOOK_BEGUN: u32 = 1 << 4;
/// [`ProcessSlot::exit_marks`]: the blocks of a talloc are laid out in a way that is not known; set
/// by the agent.
pub const MARK_TREE_UNKNOWN: u32 = 1 << 5;
/// [`ProcessSlot::exit_marks`]: it need wait no longer; set by the recorder.
pub const MARK_EXIT_SEEN: u32 = 1 << 1;

/// [`ThreadSlot::state`]: nobody's.
pub const THREAD_FREE: u32 = 0;
/// [`ThreadSlot::state`]: claimed, fields being written.
pub const THREAD_CLAIMED: u32 = 1;
/// [`ThreadSlot::state`]: in use.
pub const THREAD_LIVE: u32 = 2;
/// [`ThreadSlot::state`]: the thread has ended in good order; no more records will come.
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
    /// [`ProcessSlot::generation`] of that process at registration.
    pub process_generation: AtomicU32,
    /// Thread id as the process sees it.
    pub tid: AtomicU32,
    /// 0 for the thread itself, 1 and up for signal handlers that interrupted a hook.
    pub nested_level: AtomicU32,
    /// Incremented at each claim: tells apart two users of the same slot.
    pub generation: AtomicU32,
    /// Events lost for want of a buffer.
    pub events_lost: AtomicU64,
    /// Times that the thread waited for a buffer, and how long in all.
    pub wait_count: AtomicU64,
    /// See `wait_count`; nanoseconds.
    pub wait_ns: AtomicU64,
    /// Stacks captured.
    pub stack_count: AtomicU64,
    /// Frames unwound anew over those stacks.
    pub frames_unwound: AtomicU64,
    /// Unwind rules that had to be read from `.eh_frame`.
    pub rule_miss_count: AtomicU64,
    /// Stacks that stopped for another reason than reaching the root.
    pub stacks_truncated: AtomicU64,
}

/// [`BufferHeader::owner`] kinds: event records of one thread.
pub const OWNER_EVENTS: u64 = 1;
/// [`BufferHeader::owner`] kinds: stack nodes of one process.
pub const OWNER_NODES: u64 = 2;

/// One buffer's header. The owner word is the truth about whether the buffer is free: 0 is free,
/// and a claim is one compare-exchange from 0, so that a claimed buffer always names its owner even
/// if the claimer dies at once.
///
/// ```text
/// owner = 0                         free
/// owner = kind:4 | slot:20 | sequence:40   (sequence counts the buffers of that thread or process from 0)
/// ```
///
/// Claim (agent): CAS owner 0 -> owner; then store `owner_generation`. The `published` word and
/// `closed` are 0 when free (the recorder zeroes them before it stores owner = 0, release).
#[derive(Debug)]
#[repr(C, align(64))]
pub struct BufferHeader {
    /// See above. [`owner_word`] and [`split_owner`] build and take it apart.
    pub owner: AtomicU64,
    /// [`ThreadSlot::generation`] (events) or [`ProcessSlot::generation`] (nodes) of the owner.
    pub owner_generation: AtomicU32,
    /// Events: bytes published (multiple of 8), with [`PUBLISHED_BUSY`] in bit 0 while an event is
    /// being written, and [`PUBLISHED_CLOSED`] in bit 1 where nothing comes behind.
    /// Release by the agent; Acquire by the recorder.
    pub published: AtomicU32,
    /// Events: 1 when the thread will write no more into this buffer. Stored (release) after the
    /// last `published`.
    pub closed: AtomicU32,
    /// Nodes: index of the block's first node.
    pub first_node: AtomicU32,
    /// Ticks at which the buffer was claimed: no event in it is earlier.
    pub claimed_ticks: AtomicU64,
    /// Reserved.
    pub reserved: [AtomicU64; 3],
}

/// Bit 0 of [`BufferHeader::published`]: the thread has begun an event (it will read the clock
/// after this store) and has not published it yet. The recorder must not process later events of
/// other threads until it is cleared.
pub const PUBLISHED_BUSY: u32 = 1;
/// Bit 1 of [`BufferHeader::published`]: as [`BufferHeader::closed`], told together with the last
/// record. Whoever has stored it must not touch the buffer again: it may be another's by then.
pub const PUBLISHED_CLOSED: u32 = 2;

/// Packs a [`BufferHeader::owner`] word. `slot` must be below 2^20; `sequence` is taken modulo
/// 2^40.
#[must_use]
pub const fn owner_word(kind: u64, slot: u32, sequence: u64) -> u64 {
    kind << 60 | ((slot as u64) & 0xf_ffff) << 40 | (sequence & ((1 << 40) - 1))
}

/// Takes a [`BufferHeader::owner`] word apart: (kind, slot, sequence).
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
    /// The address to which the frame returns; for a frame interrupted by a signal the exact
    /// address plus one, so that `return_address - 1` always lies in the instruction meant.
    /// Bits 56..: [`NODE_FLAG_TRUNCATED`] and the reason.
    pub return_address: AtomicU64,
    /// The caller's node; 0 for an outermost frame.
    pub parent: AtomicU32,
    /// Reserved.
    pub reserved: AtomicU32,
}

/// Bits of [`StackNode::return_address`] that hold the address.
pub const NODE_ADDRESS_MASK: u64 = (1 << 56) - 1;

/// Why an agent stopped recording.
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
    /// Children are not to be followed.
    NotFollowed = 6,
    /// The real allocator's functions were not found.
    NoAllocator = 7,
    /// It was let go.
    LetGo = 8,
    /// The program has forbidden itself what the agent cannot do without.
    Forbidden = 9,
    /// The program is built with a sanitizer.
    Sanitizer = 10,
    /// Where the program runs, the agent's file or the recorder is not seen.
    NotVisible = 11,
    /// The program is for another processor.
    OtherProcessor = 12,
    /// The program is linked statically.
    Static = 13,
    /// The shared pages hold what neither side writes.
    PoolOverwritten = 14,
}

impl DisableReason {
    /// Whether it ends the recording of a process that nobody wanted to end.
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

    /// The reason for a number read from a shared page.
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
