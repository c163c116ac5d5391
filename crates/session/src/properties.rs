//! The properties of a session, as those of a trace session: buffers, flush timer, what is recorded.

use std::path::PathBuf;
use std::time::Duration;

/// What happens to an event when no buffer is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFull {
    /// The thread waits for the recorder.
    #[default]
    Block,
    /// The event is counted as lost.
    Drop,
}

/// Which events carry stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackEvents {
    /// Allocations.
    pub alloc: bool,
    /// Reallocations.
    pub realloc: bool,
    /// Frees.
    pub free: bool,
    /// Creation of heaps.
    pub create: bool,
    /// Destruction of heaps.
    pub destroy: bool,
}

impl Default for StackEvents {
    fn default() -> Self {
        Self { alloc: true, realloc: true, free: false, create: true, destroy: false }
    }
}

impl StackEvents {
    /// As on the command line: `alloc,realloc`.
    #[must_use]
    pub fn to_text(self) -> String {
        let names = [
            (self.create, "create"),
            (self.alloc, "alloc"),
            (self.realloc, "realloc"),
            (self.free, "free"),
            (self.destroy, "destroy"),
        ];
        names.into_iter().filter(|&(is_on, _)| is_on).map(|(_, name)| name).collect::<Vec<_>>().join(",")
    }
}

/// The properties of a session.
#[derive(Debug, Clone)]
pub struct SessionProperties {
    /// Its name.
    pub name: String,
    /// The trace file.
    pub output: PathBuf,
    /// Whether an existing file is replaced.
    pub overwrite: bool,
    /// Command line of what is recorded, for the file.
    pub command_line: Vec<String>,
    /// Bytes per buffer: a power of two from 4 KiB to 1 MiB. 64 KiB holds some 2,700 allocations: taking the next buffer,
    /// about a microsecond, then costs less than a nanosecond an event, and a thread's share of memory stays small.
    pub buffer_bytes: usize,
    /// Buffers that are there from the start (their memory is taken then).
    pub min_buffers: usize,
    /// Most buffers.
    pub max_buffers: usize,
    /// How often the file is brought to a state that can be read after a crash.
    pub flush_timer: Duration,
    /// What happens when no buffer is free.
    pub on_full: OnFull,
    /// Which events carry stacks.
    pub stacks: StackEvents,
    /// Frames kept of a stack, innermost first; 0: all.
    pub max_frames: u32,
    /// mmap, munmap and mremap as a second heap.
    pub mmap: bool,
    /// Children are recorded too.
    pub follow: bool,
    /// Every Nth stack is compared with a full unwind; 0: none.
    pub verify_every: u32,
}

impl SessionProperties {
    /// The defaults, for a file.
    #[must_use]
    pub fn new(output: PathBuf) -> Self {
        Self {
            name: "heapr".to_owned(),
            output,
            overwrite: false,
            command_line: Vec::new(),
            buffer_bytes: 64 << 10,
            min_buffers: 16,
            max_buffers: 1024,
            flush_timer: Duration::from_secs(1),
            on_full: OnFull::Block,
            stacks: StackEvents::default(),
            max_frames: 0,
            mmap: false,
            follow: true,
            verify_every: 0,
        }
    }
}
