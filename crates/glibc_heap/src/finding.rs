//! Findings: damage of a heap, or parts that could not be decided, with their addresses; collected
//! during the walk.

use std::fmt;

/// A finding of the walk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// A chunk's size is impossible; the memory behind the chunk was skipped up to `resumed_avma`.
    CorruptSize {
        /// Address of the chunk.
        chunk_avma: u64,
        /// Size field of the chunk, flags included.
        size_field: u64,
        /// Start of the next consistent run of chunks; `None` without one.
        resumed_avma: Option<u64>,
        /// End of the piece.
        end_avma: u64,
    },
    /// A chunk is marked free, but its size differs from the copy behind it; the chunk is listed as
    /// a live block.
    Contradiction {
        /// Address of the chunk.
        chunk_avma: u64,
        /// Size of the chunk.
        size_bytes: u64,
        /// Size that the chunk behind records.
        recorded_bytes: u64,
    },
    /// Memory inside the main heap that the program itself requested by sbrk.
    ForeignBrk {
        /// First byte.
        start_avma: u64,
        /// Exclusive end.
        end_avma: u64,
    },
    /// A list of free chunks leaves the heap, runs in a circle, or holds chunks of another size.
    BrokenList {
        /// Kind of the list.
        list: ListKind,
        /// Address of the list's head.
        head_avma: u64,
        /// The impossible entry.
        entry_avma: u64,
        /// Fault of the entry.
        reason: BrokenEntry,
    },
    /// An arena in the ring is damaged; this arena and those behind it were not walked.
    BrokenArena {
        /// Address of the arena.
        arena_avma: u64,
        /// Name of the impossible field.
        what: &'static str,
        /// Value of the field.
        value: u64,
    },
    /// Memory of the heap that could not be read.
    Unreadable {
        /// First byte.
        start_avma: u64,
        /// Exclusive end.
        end_avma: u64,
    },
    /// The number of blocks with a mapping of their own differs from malloc's count.
    MappedCount {
        /// Number of blocks found.
        found: u64,
        /// Bytes of mappings found.
        found_bytes: u64,
        /// Number that malloc counts.
        expected: u64,
        /// Bytes of mappings that malloc counts.
        expected_bytes: u64,
    },
}

/// Kind of a list of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    /// A fastbin of an arena.
    Fastbin,
    /// A bin of a thread's cache.
    ThreadCache,
}

/// Fault of a list's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenEntry {
    /// The entry cannot be read.
    Unreadable,
    /// The entry is not aligned as chunks are.
    Misaligned,
    /// The chunk has a size that this list does not hold.
    WrongSize(u64),
    /// The list returns to an earlier entry.
    Circle,
    /// The list is longer than its counter says.
    TooLong(u64),
}

impl Finding {
    /// Part of the heap that is unknown because of the finding.
    pub(super) fn unknown_range(&self) -> Option<(u64, u64)> {
        match *self {
            Self::CorruptSize { chunk_avma, resumed_avma, end_avma, .. } => {
                Some((chunk_avma, resumed_avma.unwrap_or(end_avma)))
            }
            Self::ForeignBrk { start_avma, end_avma } | Self::Unreadable { start_avma, end_avma } => {
                Some((start_avma, end_avma))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CorruptSize { chunk_avma, size_field, resumed_avma, end_avma } => {
                write!(out, "the chunk at {chunk_avma:#x} has the impossible size {size_field:#x}; ")?;
                match resumed_avma {
                    Some(resumed) => write!(out, "what is between it and {resumed:#x} is unknown"),
                    None => write!(out, "the rest of the heap up to {end_avma:#x} is unknown"),
                }
            }
            Self::Contradiction { chunk_avma, size_bytes, recorded_bytes } => write!(
                out,
                "the chunk at {chunk_avma:#x} is marked free with {size_bytes:#x} bytes, but {recorded_bytes:#x} are recorded behind it; taken as a live block"
            ),
            Self::ForeignBrk { start_avma, end_avma } => {
                write!(out, "{start_avma:#x} to {end_avma:#x} was taken with sbrk by the program itself")
            }
            Self::BrokenList { list, head_avma, entry_avma, reason } => {
                let list = match list {
                    ListKind::Fastbin => "fastbin",
                    ListKind::ThreadCache => "thread cache bin",
                };
                write!(out, "the {list} at {head_avma:#x} is damaged: its entry {entry_avma:#x} ")?;
                match reason {
                    BrokenEntry::Unreadable => write!(out, "cannot be read"),
                    BrokenEntry::Misaligned => write!(out, "is not aligned"),
                    BrokenEntry::WrongSize(size) => write!(out, "has the size {size:#x}"),
                    BrokenEntry::Circle => write!(out, "leads round in a circle"),
                    BrokenEntry::TooLong(count) => write!(out, "comes after the {count} that the bin counts"),
                }
            }
            Self::BrokenArena { arena_avma, what, value } => {
                write!(out, "the arena at {arena_avma:#x} is damaged: {what} is {value:#x}")
            }
            Self::Unreadable { start_avma, end_avma } => {
                write!(out, "{start_avma:#x} to {end_avma:#x} of the heap cannot be read")
            }
            Self::MappedCount { found, found_bytes, expected, expected_bytes } => write!(
                out,
                "{found} blocks with their own mapping were found ({found_bytes} bytes), malloc counts {expected} ({expected_bytes} bytes)"
            ),
        }
    }
}
