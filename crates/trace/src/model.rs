//! What a trace holds, as values: the vocabulary that the writer, the reader, the ledger and the
//! queries share.
//!
//! Everything is an index into a table of the file: processes, threads, modules and stack nodes are
//! numbered from 0 in the order in which they were written. Times are nanoseconds since the start
//! of the session.

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
    /// What a language's runtime has sampled of its own heap, with a period of its own.
    pub const RUNTIME: Self = Self(239);
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

/// What was lost, and where. Counts only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss {
    /// Events that were dropped because no buffer was free. See [`Loss::missing_events`].
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

impl Loss {
    /// Events that are missing, at least: one that made no sense may have been the first of
    /// several.
    #[must_use]
    pub fn missing_events(&self) -> u64 {
        self.events_lost.saturating_add(self.records_invalid)
    }
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
