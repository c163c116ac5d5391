//! What is wrong with a heap, or could not be decided: facts with their place, collected while the
//! walk goes on.

use std::fmt;

/// One thing that the walk noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// A chunk's size cannot be; what lies behind it was skipped up to `resumed_avma`.
    CorruptSize {
        /// The chunk.
        chunk_avma: u64,
        /// Its size field, flags included.
        size_field: u64,
        /// Where a consistent run of chunks begins again; nothing where there is none.
        resumed_avma: Option<u64>,
        /// The end of the segment.
        end_avma: u64,
    },
    /// A chunk is marked free, but the copy of its size behind it is another; it is listed as a
    /// block.
    Contradiction {
        /// The chunk.
        chunk_avma: u64,
        /// Its size.
        size_bytes: u64,
        /// The size that the chunk behind it recorded.
        recorded_bytes: u64,
    },
    /// Memory inside the main heap that the program took with sbrk itself.
    ForeignBrk {
        /// Its first byte.
        start_avma: u64,
        /// The first byte behind it.
        end_avma: u64,
    },
    /// A list of free chunks leaves the heap, runs in a circle, or holds chunks of another size.
    BrokenList {
        /// What list.
        list: ListKind,
        /// Where its head is.
        head_avma: u64,
        /// The entry that cannot be.
        entry_avma: u64,
        /// What is wrong with it.
        reason: BrokenEntry,
    },
    /// An arena in the ring is not one; it and those behind it were not walked.
    BrokenArena {
        /// The arena.
        arena_avma: u64,
        /// The field that cannot be.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// Memory that belongs to the heap could not be read.
    Unreadable {
        /// First byte.
        start_avma: u64,
        /// First byte behind it.
        end_avma: u64,
    },
    /// The blocks with a mapping of their own are not those that malloc counts.
    MappedCount {
        /// Found by looking.
        found: u64,
        /// Found, in bytes of mapping.
        found_bytes: u64,
        /// What malloc counts.
        expected: u64,
        /// What malloc counts, in bytes of mapping.
        expected_bytes: u64,
    },
}

/// The lists that chunks hang in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    /// A fastbin of an arena.
    Fastbin,
    /// A bin of a thread's cache.
    ThreadCache,
}

/// What is wrong with an entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenEntry {
    /// It cannot be read.
    Unreadable,
    /// It is not aligned as chunks are.
    Misaligned,
    /// Its chunk has a size that this list does not hold.
    WrongSize(u64),
    /// The list comes round to where it was.
    Circle,
    /// The list is longer than its counter says.
    TooLong(u64),
}

impl Finding {
    /// The part of the heap of which nothing is known because of it.
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
