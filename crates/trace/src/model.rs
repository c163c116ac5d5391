//! What a trace holds, as values: the vocabulary that the writer, the reader, the ledger and the
//! queries share.
//!
//! Everything is an index into a table of the file: processes, threads, modules and stack nodes are
//! numbered from 0 in the order in which they were written. Times are nanoseconds since the start
//! of the session.

use crate::{Amounts, Variances};

/// Index of a process image in the file (an exec makes a new one). Not a pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ProcessIndex(pub u32);

/// Index of a thread in the file. Not a tid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ThreadIndex(pub u32);

/// Index of a module (one file on disk, by path and build-id) in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ModuleIndex(pub u32);

/// A node of the stack tree; a stack is named by its innermost node. 0 is the empty stack (none
/// taken, or lost).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StackIndex(pub u32);

impl StackIndex {
    /// The empty stack.
    pub const EMPTY: Self = Self(0);
}

/// A heap: 0 is malloc and its kin, 1 is mmap; higher numbers are registered by the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct HeapId(pub u8);

impl HeapId {
    /// malloc and its kin.
    pub const MALLOC: Self = Self(0);
    /// mmap, munmap, mremap, mprotect: what a program has mapped and can use.
    pub const MMAP: Self = Self(1);
}

/// One event, in time order over all threads of all processes of the file.
///
/// The writer guarantees: an `Alloc` or the new address of a `Realloc` never names a block that is
/// live in the same (process, heap); the old address of a `Realloc` is always live or unknown;
/// times never decrease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds since the session's start.
    pub time_ns: u64,
    /// The thread that did it (and so the process).
    pub thread: ThreadIndex,
    /// Which heap.
    pub heap: HeapId,
    /// What was done.
    pub action: Action,
}

/// What an event did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A new block. `is_moved_realloc`: it is the second half of a realloc whose old block's
    /// address another thread got in between (then the first half is a `Free` with
    /// `is_moved_realloc`). It counts as a reallocation.
    Alloc {
        /// Running address.
        address_avma: u64,
        /// Size asked for.
        size_bytes: u64,
        /// Where.
        stack: StackIndex,
        /// See above.
        is_moved_realloc: bool,
    },
    /// A block given back. Unmatched if the block was allocated before tracing began.
    Free {
        /// Running address.
        address_avma: u64,
        /// Where, if frees carry stacks; else empty.
        stack: StackIndex,
        /// First half of a displaced realloc: not a free call of the program.
        is_moved_realloc: bool,
    },
    /// A realloc that succeeded: the old block ends and the new begins, at once. The addresses may
    /// be equal.
    Realloc {
        /// Running address of the old block.
        old_address_avma: u64,
        /// Running address of the new block.
        address_avma: u64,
        /// New size asked for.
        size_bytes: u64,
        /// Where.
        stack: StackIndex,
    },
    /// A call that failed: counted, not a block.
    Failed {
        /// Size asked for.
        size_bytes: u64,
        /// Where.
        stack: StackIndex,
    },
}

/// A node of the stack tree: one frame, its caller's node, and what is needed to find the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackNode {
    /// The caller's node; `StackIndex::EMPTY` for an outermost frame. Always smaller than the
    /// node's own index.
    pub parent: StackIndex,
    /// The process in whose address space `return_address_avma` lies.
    pub process: ProcessIndex,
    /// Where the frame returns to; the call lies at `return_address_avma - 1`.
    pub return_address_avma: u64,
    /// When the address was first seen in this process, or first since a module was unloaded there:
    /// picks the right module if an address was used by two in turn. Nodes of the same code
    /// share it.
    pub first_seen_ns: u64,
}

/// How a process image came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessOrigin {
    /// Launched or exec'd.
    Exec,
    /// Forked from another image of this file: it inherited that one's live blocks (frees of them
    /// are `inherited`).
    Fork {
        /// The image it was forked from.
        parent: ProcessIndex,
    },
}

/// A process image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id in the recorder's pid namespace (or the process's own where that is unknown).
    pub pid: u32,
    /// Parent's process id.
    pub parent_pid: u32,
    /// How it came to be.
    pub origin: ProcessOrigin,
    /// When.
    pub start_ns: u64,
    /// When it ended, if it was seen to end.
    pub end_ns: Option<u64>,
    /// Executable's path.
    pub executable: String,
    /// Command line, arguments separated as in /proc/PID/cmdline.
    pub command_line: Vec<String>,
    /// Exit status as of wait(2), if known.
    pub exit_status: Option<i32>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub process: ProcessIndex,
    /// Thread id.
    pub tid: u32,
    /// Last known name.
    pub name: String,
    /// First seen.
    pub start_ns: u64,
    /// Ended, if it was seen to end.
    pub end_ns: Option<u64>,
}

/// A file that was mapped as code.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Module {
    /// Path as the process saw it.
    pub path: String,
    /// GNU build-id; empty if it has none.
    pub build_id: Vec<u8>,
}

/// A module in an address space over a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Whose address space.
    pub process: ProcessIndex,
    /// Which module.
    pub module: ModuleIndex,
    /// First address.
    pub start_avma: u64,
    /// One past the last address.
    pub end_avma: u64,
    /// `avma - bias_avma` is the svma, the address as in the ELF file.
    pub bias_avma: u64,
    /// First seen.
    pub loaded_ns: u64,
    /// Seen to be gone; `u64::MAX` while it is there.
    pub unloaded_ns: u64,
}

/// Text with a time, set by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// When.
    pub time_ns: u64,
    /// What.
    pub text: String,
}

/// Resident set of a process at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RssSample {
    /// When.
    pub time_ns: u64,
    /// Whose.
    pub process: ProcessIndex,
    /// Resident bytes.
    pub rss_bytes: u64,
}

/// Resident set of a process at a time by what its pages are, and what the kernel holds beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResidentSample {
    /// When.
    pub time_ns: u64,
    /// Whose.
    pub process: ProcessIndex,
    /// Resident memory without a file: heaps, stacks, written data.
    pub anonymous_bytes: u64,
    /// Resident pages of files.
    pub file_bytes: u64,
    /// Resident shared memory.
    pub shared_memory_bytes: u64,
    /// Swapped out: not resident.
    pub swapped_bytes: u64,
    /// Page tables: not resident.
    pub page_table_bytes: u64,
    /// The most that was ever resident, before the recording too.
    pub most_rss_bytes: u64,
}

impl ResidentSample {
    /// All that is resident.
    #[must_use]
    pub fn rss_bytes(&self) -> u64 {
        self.anonymous_bytes.saturating_add(self.file_bytes).saturating_add(self.shared_memory_bytes)
    }
}

/// What a process's own memory was when it held most, as far as it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryAccount {
    /// When it was written.
    pub time_ns: u64,
    /// Whose.
    pub process: ProcessIndex,
    /// Anonymous memory at its most, without what heapr itself needs there.
    pub anonymous_bytes: u64,
    /// What heapr itself needs there.
    pub agent_bytes: u64,
    /// What it is: the rest has no explanation.
    pub parts: Vec<MemoryPart>,
}

impl MemoryAccount {
    /// What is explained of it.
    #[must_use]
    pub fn explained_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).fold(0, u64::saturating_add).min(self.anonymous_bytes)
    }

    /// What of it is in no recorded block, nor data, nor a stack.
    #[must_use]
    pub fn unseen_bytes(&self) -> u64 {
        let seen = self.parts.iter().filter(|part| !part.is_unseen);
        let seen_bytes = seen.map(|part| part.bytes).fold(0, u64::saturating_add);
        self.anonymous_bytes.saturating_sub(seen_bytes)
    }
}

/// A part of a [`MemoryAccount`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryPart {
    /// What it is, in words.
    pub what: String,
    /// How much.
    pub bytes: u64,
    /// Who mapped it, where that is known.
    pub stack: StackIndex,
    /// It has a name, and is in no recorded block.
    pub is_unseen: bool,
}

/// What was lost, and where. Counts only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss {
    /// Events that were dropped because no buffer was free.
    pub events_lost: u64,
    /// Stacks cut or unknown for want of memory in the target.
    pub stacks_lost: u64,
    /// Events whose time had to be corrected because they arrived after the watermark.
    pub events_late: u64,
    /// Records that made no sense (a damaged or hostile shared page).
    pub records_invalid: u64,
    /// Process images that could not be traced.
    pub processes_refused: u64,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct System {
    /// `uname -r` and machine, distribution, host name.
    pub kernel: String,
    /// Machine, as of uname.
    pub machine: String,
    /// Distribution's pretty name.
    pub distribution: String,
    /// Number of processors online.
    pub cpu_count: u32,
    /// Physical memory.
    pub memory_bytes: u64,
    /// Page size.
    pub page_bytes: u64,
}

/// The session and its properties.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Session {
    /// Its name.
    pub name: String,
    /// heapr's version that wrote the file.
    pub heapr_version: String,
    /// Command line of the recorded program.
    pub command_line: Vec<String>,
    /// Wall clock at the session's start, ns since 1970 UTC.
    pub start_unix_ns: u64,
    /// `tsc` or `monotonic`.
    pub clock: String,
    /// Properties as asked: buffer size, counts, flush timer, on-full.
    pub buffer_bytes: u32,
    /// See `buffer_bytes`.
    pub min_buffers: u32,
    /// See `buffer_bytes`.
    pub max_buffers: u32,
    /// Milliseconds.
    pub flush_timer_ms: u32,
    /// `block` or `drop`.
    pub on_full: String,
    /// Which events carry stacks: `alloc,realloc` and the like.
    pub stacks: String,
    /// Frames kept; 0: all.
    pub max_frames: u32,
}

/// What the recorder knows at the end about one stack: with these a report without filters needs no
/// replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StackTotals {
    /// The stack (innermost node), with its process.
    pub stack: StackIndex,
    /// Process of the blocks.
    pub process: ProcessIndex,
    /// Heap of the blocks.
    pub heap: HeapId,
    /// Of its blocks: live at the end, and at the session's peak.
    pub amounts: Amounts,
}

/// Totals of the whole file or of one process and heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Allocations (reallocations count as one each).
    pub alloc_count: u64,
    /// Bytes asked for in them.
    pub alloc_bytes: u64,
    /// Free calls and the freeing half of reallocations.
    pub free_count: u64,
    /// Allocations that came out of a realloc.
    pub realloc_count: u64,
    /// Failed calls.
    pub failed_count: u64,
    /// Temporary allocations.
    pub temporary_count: u64,
    /// Live at the end.
    pub outstanding_count: u64,
    /// Their bytes.
    pub outstanding_bytes: u64,
    /// Largest number of live bytes, exact.
    pub peak_bytes: u64,
    /// Live blocks at that moment.
    pub peak_count: u64,
    /// When it was first reached.
    pub peak_time_ns: u64,
    /// Frees of addresses that were never seen allocated.
    pub unmatched_frees: u64,
    /// Frees, in a forked child, of blocks that its parent had allocated.
    pub inherited_frees: u64,
    /// Blocks whose address was handed out again without a free having been seen.
    pub implied_frees: u64,
    /// How uncertain they are, where they are estimates. Not in a file's summary.
    pub variances: Variances,
}

impl Totals {
    /// What there is of each stack, too.
    #[must_use]
    pub fn amounts(&self) -> Amounts {
        Amounts {
            total_count: self.alloc_count,
            total_bytes: self.alloc_bytes,
            realloc_count: self.realloc_count,
            temporary_count: self.temporary_count,
            outstanding_count: self.outstanding_count,
            outstanding_bytes: self.outstanding_bytes,
            peak_count: self.peak_count,
            peak_bytes: self.peak_bytes,
            variances: self.variances,
        }
    }
}

/// The summary that closes a file: see [`StackTotals`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Over all processes and heaps; the peak is of their sum.
    pub totals: Totals,
    /// By process and heap, each with its own peak.
    pub by_heap: Vec<(ProcessIndex, HeapId, Totals)>,
    /// By stack, in order of (stack, heap).
    pub by_stack: Vec<StackTotals>,
    /// Number of events in the file.
    pub event_count: u64,
    /// Time of the last event or the session's end.
    pub duration_ns: u64,
    /// What was live at moments.
    pub course: Course,
}

/// What was live of a stack at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CourseRow {
    /// Which.
    pub stack: StackIndex,
    /// Bytes that were live.
    pub live_bytes: u64,
    /// Blocks that were live.
    pub live_count: u64,
    /// Blocks that were made until then.
    pub total_count: u64,
}

/// What was live at a moment: before all that happened at it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CourseMoment {
    /// When.
    pub time_ns: u64,
    /// Over all stacks, of malloc and of the program's own heaps.
    pub live_bytes: u64,
    /// Their blocks.
    pub live_count: u64,
    /// Blocks that were made until then, over all stacks: how far the program's work had come.
    pub total_count: u64,
    /// The stacks that held most, by number. Processes that have ended hold what they had.
    pub rows: Vec<CourseRow>,
}

/// What was live at moments, from the start to the end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Course {
    /// In order of time.
    pub moments: Vec<CourseMoment>,
}

/// A live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Whose.
    pub process: ProcessIndex,
    /// Which heap.
    pub heap: HeapId,
    /// Running address.
    pub address_avma: u64,
    /// Size asked for.
    pub size_bytes: u64,
    /// Where it was allocated (a realloc makes a new block).
    pub stack: StackIndex,
    /// By whom.
    pub thread: ThreadIndex,
    /// When.
    pub alloc_ns: u64,
    /// Came out of a realloc.
    pub is_realloc: bool,
}

/// A number that the recorder wants to be known: buffers written, longest wait, stacks verified and
/// the like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistic {
    /// Its name, as `heapr info` prints it.
    pub name: String,
    /// Its value; the unit is in the name.
    pub value: u64,
}

/// A name of a heap that a program has of its own. A number may have had several in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapName {
    /// Whose.
    pub process: ProcessIndex,
    /// Which.
    pub heap: HeapId,
    /// As the program gave it; may be empty.
    pub name: String,
    /// When a heap of this number first had it.
    pub first_ns: u64,
}

/// What is to be known of the recording of a process: that it ended before the process did, or does
/// not see all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Whose.
    pub process: ProcessIndex,
    /// When the recorder took note of it.
    pub time_ns: u64,
    /// What, in a sentence without its full stop.
    pub text: String,
}

/// A loss and where it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossEntry {
    /// In which process; `None`: the session's.
    pub process: Option<ProcessIndex>,
    /// In which thread, if known.
    pub thread: Option<ThreadIndex>,
    /// What.
    pub loss: Loss,
}
