//! The properties of a session, as those of a trace session: buffers, flush timer, what is
//! recorded.

use std::path::PathBuf;
use std::time::Duration;

use heapr_allocators::Table;
use heapr_wire::{BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, BUFFER_COUNT_LIMIT};
use serde::{Deserialize, Serialize};

use crate::{Error, FullOnGrowth, GraphContents, Rotation, SampleRate};

/// What happens to an event when no buffer is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFull {
    /// The thread waits for the recorder.
    #[default]
    Block,
    /// The event is counted as lost.
    Drop,
}

/// Which events carry stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    /// No event carries a stack.
    pub const NONE: Self = Self { alloc: false, realloc: false, free: false, create: false, destroy: false };

    /// Reads what [`StackEvents::to_text`] writes; also with `+`, with `Heap` before each word as
    /// Windows' tools have it (`HeapAlloc+HeapRealloc`), and `none`.
    ///
    /// # Errors
    /// [`Error::InvalidProperties`] with the word that is none of the events.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        let mut events = Self::NONE;
        for word in text.split([',', '+']).filter(|word| !word.is_empty() && *word != "none") {
            let lower = word.to_ascii_lowercase();
            match lower.strip_prefix("heap").unwrap_or(&lower) {
                "alloc" => events.alloc = true,
                "realloc" => events.realloc = true,
                "free" => events.free = true,
                "create" => events.create = true,
                "destroy" => events.destroy = true,
                _ => {
                    let what = format!("`{word}` is none of create, alloc, realloc, free, destroy, none");
                    return Err(Error::InvalidProperties { what });
                }
            }
        }
        Ok(events)
    }

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

/// What is kept of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoggingMode {
    /// All of them, in the file.
    #[default]
    Trace,
    /// The newest, in memory until the stop, and what was live when they begin: circular.
    Memory {
        /// Bytes of encoded events, at most (with the live blocks at their beginning).
        bytes: u64,
    },
    /// None: only the live heap, its stacks, and snapshots of it.
    Snapshot,
}

impl LoggingMode {
    /// Its name in the file and in a status.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Memory { .. } => "memory",
            Self::Snapshot => "snapshot",
        }
    }
}

/// Least room for a circular trace: some chunks of events.
const MEMORY_BYTES_MIN: u64 = 1 << 20;
/// Least size at which a file ends: its tables and a few chunks.
const FILE_BYTES_MIN: u64 = 1 << 20;

/// A file begins with all that was defined before: not more often than this.
const ROTATION_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Files' names are bytes: JSON carries them as such.
mod path_bytes {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(deserializer).map(PathBuf::from)
    }
}

/// The properties of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionProperties {
    /// Its name.
    pub name: String,
    /// The trace file.
    #[serde(with = "path_bytes")]
    pub output: PathBuf,
    /// Whether an existing file is replaced.
    pub overwrite: bool,
    /// Command line of what is recorded, for the file.
    pub command_line: Vec<String>,
    /// Bytes per buffer: a power of two from 4 KiB to 1 MiB. 64 KiB holds some 2,700 allocations:
    /// taking the next buffer, about a microsecond, then costs less than a nanosecond an event,
    /// and a thread's share of memory stays small.
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
    /// mmap and its kin as a second heap: what can be used of what is mapped.
    pub mmap: bool,
    /// Children are recorded too.
    pub follow: bool,
    /// Stacks have the frames of the language that a program is written in.
    pub languages: bool,
    /// Every Nth stack is compared with a full unwind; 0: none.
    pub verify_every: u32,
    /// What is kept of the events.
    pub mode: LoggingMode,
    /// Recording ends when the file has about this size, and the targets run on untraced; with a
    /// rotation the next file is begun.
    pub max_file_bytes: Option<u64>,
    /// Processes with seccomp filters that this user cannot read are attached to all the same: the
    /// filters are known to answer with errors, and not to end the process.
    #[serde(default)]
    pub despite_seccomp: bool,
    /// Texts with further allocators to be looked for inside of programs, in the words of
    /// `heapr_allocators`.
    #[serde(default)]
    pub allocators: Vec<String>,
    /// A program that was started with the session and ends by exit waits until a snapshot with its
    /// graph is taken.
    #[serde(default)]
    pub graph_at_exit: bool,
    /// What of the contents of blocks that graph has.
    #[serde(default)]
    pub graph_contents: GraphContents,
    /// Allocations are sampled, now or later; `None`: all are recorded.
    #[serde(default)]
    pub sample: Option<SampleRate>,
    /// When a session that samples records all for a while.
    #[serde(default)]
    pub full_on_growth: Option<FullOnGrowth>,
    /// The file is closed now and then, and a next one begun.
    #[serde(default)]
    pub rotation: Option<Rotation>,
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
            languages: true,
            verify_every: 0,
            mode: LoggingMode::Trace,
            max_file_bytes: None,
            despite_seccomp: false,
            allocators: Vec::new(),
            graph_at_exit: false,
            graph_contents: GraphContents::None,
            sample: None,
            full_on_growth: None,
            rotation: None,
        }
    }

    /// Checks what can be checked before anything is made.
    ///
    /// # Errors
    /// [`Error::InvalidProperties`], which says what is wrong with which.
    pub fn check(&self) -> Result<(), Error> {
        let invalid = |what: String| Err(Error::InvalidProperties { what });
        if !self.buffer_bytes.is_power_of_two()
            || !(BUFFER_BYTES_MIN..=BUFFER_BYTES_MAX).contains(&self.buffer_bytes)
        {
            return invalid(format!(
                "a buffer of {} bytes: it must be a power of two from {} KiB to {} KiB",
                self.buffer_bytes,
                BUFFER_BYTES_MIN >> 10,
                BUFFER_BYTES_MAX >> 10
            ));
        }
        if !(1..=BUFFER_COUNT_LIMIT).contains(&self.max_buffers) {
            return invalid(format!("{} buffers: 1 to {BUFFER_COUNT_LIMIT} are possible", self.max_buffers));
        }
        if !(1..=self.max_buffers).contains(&self.min_buffers) {
            return invalid(format!(
                "{} buffers from the start: 1 to the largest number, {}, are possible",
                self.min_buffers, self.max_buffers
            ));
        }
        if let Err(error) = Table::check(&self.allocators) {
            return invalid(format!("a file of allocators: {error}"));
        }
        if self.flush_timer.is_zero() {
            return invalid("a flush timer of 0".to_owned());
        }
        if let LoggingMode::Memory { bytes } = self.mode
            && bytes < MEMORY_BYTES_MIN
        {
            return invalid(format!(
                "{bytes} bytes of memory for events: at least {MEMORY_BYTES_MIN} are needed"
            ));
        }
        if let Some(rate) = self.sample {
            rate.check()?;
        } else if self.full_on_growth.is_some() {
            return invalid(
                "all is recorded already: growth changes that only where allocations are sampled".to_owned(),
            );
        }
        if let Some(rotation) = self.rotation {
            if self.mode != LoggingMode::Trace {
                return invalid(format!(
                    "files in turn in mode {}: only mode trace has them",
                    self.mode.name()
                ));
            }
            if rotation.interval < ROTATION_INTERVAL_MIN {
                return invalid("files of less than a second: at least one is needed".to_owned());
            }
        }
        match self.max_file_bytes {
            Some(_) if self.mode != LoggingMode::Trace => {
                invalid(format!("a largest file size in mode {}: only mode trace has one", self.mode.name()))
            }
            Some(bytes) if bytes < FILE_BYTES_MIN => {
                invalid(format!("a file of at most {bytes} bytes: at least {FILE_BYTES_MIN} are needed"))
            }
            _ => Ok(()),
        }
    }
}
