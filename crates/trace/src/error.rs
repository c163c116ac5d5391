//! Errors of reading and writing a trace file.

use std::io;

/// Reasons why a trace could not be written or read. Damage inside a file that can be read around
/// is reported as [`crate::Damage`] instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{action} failed: {source}")]
    Io {
        /// The action that was tried.
        action: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file has no content.
    #[error("the file is empty")]
    Empty,
    /// The first bytes are not those of a trace.
    #[error("not a heapr trace: it begins with {found:02x?}")]
    NotATrace {
        /// The first bytes.
        found: Vec<u8>,
    },
    /// The file was written by a later heapr.
    #[error("the trace has format version {found}, this heapr reads up to {known}: use a newer heapr")]
    NewerVersion {
        /// The file's version.
        found: u32,
        /// The newest version that this heapr reads.
        known: u32,
    },
    /// The contents of a chunk make no sense.
    #[error("damaged chunk at offset {offset}: {what}")]
    Damaged {
        /// Offset of the chunk.
        offset: u64,
        /// Description of the damage.
        what: &'static str,
    },
    /// The file is to be written to, but has no sound trailer at its end.
    #[error("the recording has not ended, or it did not end in order")]
    Unfinished,
    /// The file is to be written to, but another program is writing to it.
    #[error("another program is writing to the file")]
    InUse,
    /// The symbols are larger than a chunk can be.
    #[error("{bytes} bytes of symbols are more than a trace can hold")]
    SymbolsTooLarge {
        /// Size of the symbols.
        bytes: u64,
    },
}

/// Result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Reason why a payload could not be decoded; the reader adds the offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// A part of the file that was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the damaged part.
    pub offset: u64,
    /// Number of bytes of the file that are unusable because of the damage.
    pub bytes: u64,
    /// Description of the damage.
    pub what: &'static str,
}
