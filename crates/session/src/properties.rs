//! Properties of a session, like those of a trace session: buffers, flush timer, what is recorded.

use std::path::PathBuf;
use std::time::Duration;

use heapr_allocators::Table;
use heapr_wire::{BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, BUFFER_COUNT_LIMIT};
use serde::{Deserialize, Serialize};

use crate::{Error, FullOnGrowth, GraphContents, Rotation, SampleRate};

/// Handling of an event when no buffer is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFull {
    /// Thread waits for the recorder.
    #[default]
    Block,
    /// Event is counted as lost.
    Drop,
}

/// Set of events that carry stacks.
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
    /// Set without any event.
    pub const NONE: Self = Self { alloc: false, realloc: false, free: false, create: false, destroy: false };

    /// Parses the form that [`StackEvents::to_text`] writes. Also accepts `+`, `Heap` before each
    /// word as in Windows' tools (`HeapAlloc+HeapRealloc`), and `none`.
    ///
    /// # Errors
    /// [`Error::InvalidProperties`] with the unknown word.
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

    /// Returns the form of the command line: `alloc,realloc`.
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

/// Choice of the events that are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoggingMode {
    /// All events, in the file.
    #[default]
    Trace,
    /// Newest events, in memory until the stop, with the blocks live at their beginning: circular.
    Memory {
        /// Largest number of bytes of encoded events (with the live blocks at their beginning).
        bytes: u64,
    },
    /// No events: only the live heap, its stacks, and snapshots of it.
    Snapshot,
}

impl LoggingMode {
    /// Name in the file and in a status.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Memory { .. } => "memory",
            Self::Snapshot => "snapshot",
        }
    }
}

/// Least bytes for a circular trace: some chunks of events.
const MEMORY_BYTES_MIN: u64 = 1 << 20;
/// Least bytes at which a file ends: its tables and a few chunks.
const FILE_BYTES_MIN: u64 = 1 << 20;

/// Least interval of files in turn, because each begins with all earlier definitions.
const ROTATION_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Serialization of paths, which are bytes in JSON.
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

/// Properties of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionProperties {
    /// Name of the session.
    pub name: String,
    /// Path of the trace file.
    #[serde(with = "path_bytes")]
    pub output: PathBuf,
    /// Whether an existing file is replaced.
    pub overwrite: bool,
    /// Command line of the recorded program, for the file.
    pub command_line: Vec<String>,
    /// Bytes per buffer: a power of two from 4 KiB to 1 MiB. 64 KiB holds some 2,700 allocations.
    /// Claiming the next buffer takes about a microsecond, so less than a nanosecond per event. A
    /// thread's share of memory stays small.
    pub buffer_bytes: usize,
    /// Number of buffers whose memory is allocated at the start.
    pub min_buffers: usize,
    /// Largest number of buffers.
    pub max_buffers: usize,
    /// Interval at which the file is made readable after a crash.
    pub flush_timer: Duration,
    /// Handling of events when no buffer is free.
    pub on_full: OnFull,
    /// Events that carry stacks.
    pub stacks: StackEvents,
    /// Largest number of frames per stack, innermost first; 0: all.
    pub max_frames: u32,
    /// True if mmap and related calls are recorded as a second heap: the usable part of mappings.
    pub mmap: bool,
    /// True if children are recorded too.
    pub follow: bool,
    /// True if stacks include language frames.
    pub languages: bool,
    /// Period of stacks that are compared with a full unwind; 0: none.
    pub verify_every: u32,
    /// Choice of the events that are stored.
    pub mode: LoggingMode,
    /// Size in bytes at which the recording ends and the targets run on untraced. With files in
    /// turn it is the size at which the next file is begun.
    pub max_file_bytes: Option<u64>,
    /// True if processes with seccomp filters that this user cannot read are attached to all the
    /// same. The filters are then known to answer with errors instead of killing the process.
    #[serde(default)]
    pub despite_seccomp: bool,
    /// Texts with further embedded allocators to be searched for, in the syntax of
    /// `heapr_allocators`.
    #[serde(default)]
    pub allocators: Vec<String>,
    /// True if a program started with the session waits at its exit until a snapshot with its graph
    /// is taken.
    #[serde(default)]
    pub graph_at_exit: bool,
    /// Contents of blocks that the exit graph includes.
    #[serde(default)]
    pub graph_contents: GraphContents,
    /// Sampling rate, which can be changed later; `None`: all allocations are recorded.
    #[serde(default)]
    pub sample: Option<SampleRate>,
    /// Conditions on which a sampling session records all for a while.
    #[serde(default)]
    pub full_on_growth: Option<FullOnGrowth>,
    /// Interval and number of files in turn, if any.
    #[serde(default)]
    pub rotation: Option<Rotation>,
}

impl SessionProperties {
    /// Returns the defaults for a file.
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

    /// Checks what can be checked before anything is created.
    ///
    /// # Errors
    /// [`Error::InvalidProperties`] with a description of the problem.
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
