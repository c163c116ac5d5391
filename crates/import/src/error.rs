//! What can go wrong with a file of another tool.

use std::io;

/// Why a file is no trace.
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
    /// It is a trace that cannot be read, or could not be made.
    #[error(transparent)]
    Trace(#[from] heapr_trace::Error),
    /// It is a profile of V8 that cannot be read.
    #[error(transparent)]
    V8(#[from] heapr_v8::Error),
    /// No tool's file that is known.
    #[error(
        "not a heapr trace: it begins with {}; nor a file of heaptrack, massif, DHAT, jemalloc, gperftools, Go, pprof or V8",
        first_bytes(.found)
    )]
    Unknown {
        /// The first bytes.
        found: Vec<u8>,
    },
    /// The content makes no sense.
    #[error("{tool}: at offset {offset}: {what}")]
    Malformed {
        /// Whose format.
        tool: &'static str,
        /// Where, in what the file unpacks to.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// It can be read, and is of no heap; or only its own tool can read it.
    #[error("{what}")]
    Unusable {
        /// Why, and what to do.
        what: String,
    },
    /// Written by a later version of the tool.
    #[error("{tool}: the file has version {found}, this heapr reads up to {known}: use a newer heapr")]
    NewerVersion {
        /// Whose format.
        tool: &'static str,
        /// The file's version.
        found: u64,
        /// The newest that is known here.
        known: u64,
    },
    /// It would take more memory than a file of its size is worth.
    #[error(
        "it holds more than {bytes} bytes that must be kept in memory, which no tool's file of its size does"
    )]
    Swells {
        /// How much may be kept.
        bytes: u64,
    },
    /// It would take more time than a file of its size is worth.
    #[error(
        "packed, it goes on behind offset {offset}, which no tool's file of its size does: if it is right, unpack it first"
    )]
    UnpacksTo {
        /// Where reading ended, in what the file unpacks to.
        offset: u64,
    },
}

impl Error {
    /// Of a file that begins so.
    pub(crate) fn unknown(start: &[u8]) -> Self {
        Self::Unknown { found: start[..start.len().min(8)].to_vec() }
    }
}

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The first bytes of a file: as text where they are text, else their values.
fn first_bytes(found: &[u8]) -> String {
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match std::str::from_utf8(found) {
        Ok(text) if !text.is_empty() && found.iter().all(is_text) => format!("{text:?}"),
        _ => format!("{found:02x?}"),
    }
}
