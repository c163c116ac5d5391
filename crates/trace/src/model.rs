//! Values of a trace: the vocabulary that the writer, the reader, the ledger and the queries share.
//!
//! Processes, threads, modules and stack nodes are indices into tables of the file, numbered from 0
//! in the order in which they were written. Times are nanoseconds since the start of the session.

/// Index of a process image in the file (an exec makes a new one). Not a pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ProcessIndex(pub u32);

/// Index of a thread in the file. Not a tid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ThreadIndex(pub u32);

/// Index of a module (one file on disk, by path and build-id) in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ModuleIndex(pub u32);

/// A node of the stack tree; a stack is named by its innermost node. 0 is the empty stack (not
/// recorded, or lost).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StackIndex(pub u32);

impl StackIndex {
    /// The empty stack.
    pub const EMPTY: Self = Self(0);
}

/// A heap: 0 is malloc and its relatives, 1 is mmap; higher numbers are registered by the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct HeapId(pub u8);

impl HeapId {
    /// The heap of malloc and its relatives.
    pub const MALLOC: Self = Self(0);
    /// The heap of mmap, munmap, mremap and mprotect: usable memory that a program has mapped.
    pub const MMAP: Self = Self(1);
    /// Samples that a language's runtime has drawn of its own heap, with its own mean period.
    pub const RUNTIME: Self = Self(239);
}

/// One event, in time order over all threads of all processes of the file.
///
/// The writer guarantees three properties. An `Alloc`, or the new address of a `Realloc`, never
/// names a block that is live in the same (process, heap). The old address of a `Realloc` is always
/// live or unknown. Times never decrease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds since the session's start.
    pub time_ns: u64,
    /// The calling thread, which determines the process.
    pub thread: ThreadIndex,
    /// Heap of the block.
    pub heap: HeapId,
    /// Kind of the event, with its data.
    pub action: Action,
}

/// Kind of an event, with its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A new block.
    Alloc {
        /// Address in the running process.
        address_avma: u64,
        /// Requested size.
        size_bytes: u64,
        /// Stack of the call.
        stack: StackIndex,
        /// True for the second half of a realloc during which another thread received the old
        /// block's address. The first half is a `Free` with `is_moved_realloc`. The event counts as
        /// a reallocation.
        is_moved_realloc: bool,
    },
    /// A freed block. Unmatched if the block was allocated before tracing began.
    Free {
        /// Address in the running process.
        address_avma: u64,
        /// Stack of the call, if frees carry stacks; else empty.
        stack: StackIndex,
        /// True for the first half of a displaced realloc, which is no free call of the program.
        is_moved_realloc: bool,
    },
    /// A realloc that succeeded: the old block ends and the new one begins at once. The addresses
    /// may be equal.
    Realloc {
        /// Address of the old block.
        old_address_avma: u64,
        /// Address of the new block.
        address_avma: u64,
        /// Requested new size.
        size_bytes: u64,
        /// Stack of the call.
        stack: StackIndex,
    },
    /// A call that failed: counted, but makes no block.
    Failed {
        /// Requested size.
        size_bytes: u64,
        /// Stack of the call.
        stack: StackIndex,
    },
}

/// A node of the stack tree: one frame, its caller's node, and the data by which its module is
/// found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackNode {
    /// The caller's node; `StackIndex::EMPTY` for an outermost frame. Always smaller than the
    /// node's own index.
    pub parent: StackIndex,
    /// The process in whose address space `return_address_avma` lies.
    pub process: ProcessIndex,
    /// Return address of the frame; the call lies at `return_address_avma - 1`.
    pub return_address_avma: u64,
    /// Time at which the address was first seen in this process, or first since a module was
    /// unloaded there. Selects the right module if two modules used the address in turn. Nodes of
    /// the same code share this time.
    pub first_seen_ns: u64,
}

/// Origin of a process image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessOrigin {
    /// Launched or exec'd.
    Exec,
    /// Forked from another image of this file, whose live blocks it inherited (frees of them are
    /// `inherited`).
    Fork {
        /// The forked image.
        parent: ProcessIndex,
    },
}

/// A process image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id in the recorder's pid namespace, or in the process's own if the former is
    /// unknown.
    pub pid: u32,
    /// Parent's process id.
    pub parent_pid: u32,
    /// Origin of the image.
    pub origin: ProcessOrigin,
    /// Start of the image.
    pub start_ns: u64,
    /// End of the process, if it was seen.
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
    /// Process of the thread.
    pub process: ProcessIndex,
    /// Thread id.
    pub tid: u32,
    /// Last known name.
    pub name: String,
    /// Time at which the thread was first seen.
    pub start_ns: u64,
    /// End of the thread, if it was seen.
    pub end_ns: Option<u64>,
}

/// A file that was mapped as code.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Module {
    /// Path as the process saw it.
    pub path: String,
    /// GNU build-id; empty for a file without one.
    pub build_id: Vec<u8>,
}

/// A module in an address space over a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Process of the address space.
    pub process: ProcessIndex,
    /// The mapped module.
    pub module: ModuleIndex,
    /// First address.
    pub start_avma: u64,
    /// One past the last address.
    pub end_avma: u64,
    /// `avma - bias_avma` is the svma, the address as in the ELF file.
    pub bias_avma: u64,
    /// Time at which the mapping was first seen.
    pub loaded_ns: u64,
    /// Time at which the mapping was seen to be gone; `u64::MAX` until then.
    pub unloaded_ns: u64,
}

/// Text with a time, set by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// Time of the marker.
    pub time_ns: u64,
    /// Text of the marker.
    pub text: String,
}

/// Counts of lost data. Counts only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss {
    /// Number of events that were dropped because no buffer was free. See [`Loss::missing_events`].
    pub events_lost: u64,
    /// Stacks that are cut or unknown because the target had no memory for them.
    pub stacks_lost: u64,
    /// Events whose time had to be corrected because they arrived after the watermark.
    pub events_late: u64,
    /// Records that made no sense (a damaged or hostile shared page).
    pub records_invalid: u64,
    /// Process images that could not be traced.
    pub processes_refused: u64,
}

impl Loss {
    /// Smallest number of missing events: an invalid record may have been the first of several.
    #[must_use]
    pub fn missing_events(&self) -> u64 {
        self.events_lost.saturating_add(self.records_invalid)
    }
}

/// The recorded machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct System {
    /// Name and release of the kernel, and the host name.
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
    /// Name of the session.
    pub name: String,
    /// Version of heapr that wrote the file.
    pub heapr_version: String,
    /// Command line of the recorded program.
    pub command_line: Vec<String>,
    /// Wall clock at the session's start, ns since 1970 UTC.
    pub start_unix_ns: u64,
    /// `tsc` or `monotonic`.
    pub clock: String,
    /// Size of a buffer in bytes, as requested.
    pub buffer_bytes: u32,
    /// Smallest number of buffers, as requested.
    pub min_buffers: u32,
    /// Largest number of buffers, as requested.
    pub max_buffers: u32,
    /// Period of the flush timer in milliseconds, as requested.
    pub flush_timer_ms: u32,
    /// Action when no buffer is free: `block` or `drop`.
    pub on_full: String,
    /// Kinds of events that carry stacks: `alloc,realloc` and the like.
    pub stacks: String,
    /// Largest number of frames recorded per stack; 0: all.
    pub max_frames: u32,
}

/// A live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Process of the block.
    pub process: ProcessIndex,
    /// Heap of the block.
    pub heap: HeapId,
    /// Address in the running process.
    pub address_avma: u64,
    /// Requested size.
    pub size_bytes: u64,
    /// Stack of the allocation (a realloc makes a new block).
    pub stack: StackIndex,
    /// Thread of the allocation.
    pub thread: ThreadIndex,
    /// Time of the allocation.
    pub alloc_ns: u64,
    /// True if the block came out of a realloc.
    pub is_realloc: bool,
}

/// A number about the recording: buffers written, longest wait, stacks verified and the like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistic {
    /// Name as `heapr info` prints it.
    pub name: String,
    /// Value in the unit that the name states.
    pub value: u64,
}

/// A name of a heap that a program registers itself. A heap number may have several names in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapName {
    /// Process of the heap.
    pub process: ProcessIndex,
    /// Number of the heap.
    pub heap: HeapId,
    /// Name that the program gave; may be empty.
    pub name: String,
    /// Time at which a heap of this number first had the name.
    pub first_ns: u64,
}

/// A remark about the recording of a process: it ended before the process did, or is incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The process.
    pub process: ProcessIndex,
    /// Time of the remark.
    pub time_ns: u64,
    /// Text of the remark: a sentence without its full stop.
    pub text: String,
}

impl Notice {
    /// Beginning of the remark that a process ended without a graph of its heap, though one was
    /// requested.
    pub const NO_GRAPH_AT_END: &str = "no graph was taken at its end";

    /// Whether the remark is of a graph that could not be taken at the process's end.
    #[must_use]
    pub fn is_of_a_missing_graph(&self) -> bool {
        self.text.starts_with(Self::NO_GRAPH_AT_END)
    }
}

/// A loss with its process and thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossEntry {
    /// The process; `None` for the session.
    pub process: Option<ProcessIndex>,
    /// The thread, if known.
    pub thread: Option<ThreadIndex>,
    /// The counts.
    pub loss: Loss,
}
