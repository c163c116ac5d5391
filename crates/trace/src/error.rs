//! What can go wrong with a trace file.

use std::io;

/// Why a trace could not be written or read. Damage inside a file that can be read around is no
/// error: see [`crate::Damage`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{action} failed: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Why not.
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
    /// Written by a later heapr.
    #[error("the trace has format version {found}, this heapr reads up to {known}: use a newer heapr")]
    NewerVersion {
        /// The file's version.
        found: u32,
        /// The newest that is known here.
        known: u32,
    },
    /// A chunk's content makes no sense.
    #[error("damaged chunk at offset {offset}: {what}")]
    Damaged {
        /// Where the chunk begins.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// To be written to, but without a sound trailer at its end.
    #[error("the recording has not ended, or it did not end in order")]
    Unfinished,
    /// To be written to, but somebody else does.
    #[error("another program is writing to the file")]
    InUse,
    /// More symbols than a chunk can hold.
    #[error("{bytes} bytes of symbols are more than a trace can hold")]
    SymbolsTooLarge {
        /// How many.
        bytes: u64,
    },
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a payload could not be decoded; the reader adds the offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Something in the file that was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins.
    pub offset: u64,
    /// How much of the file is not usable because of it.
    pub bytes: u64,
    /// What is wrong.
    pub what: &'static str,
}
