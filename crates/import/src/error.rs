//! Errors in reading another tool's file.

use std::io;

/// Reason why a file cannot be opened as a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system returned an error.
    #[error("{action} failed: {source}")]
    Io {
        /// Failed operation.
        action: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A trace cannot be read, or could not be written.
    #[error(transparent)]
    Trace(#[from] heapr_trace::Error),
    /// A profile of V8 cannot be read.
    #[error(transparent)]
    V8(#[from] heapr_v8::Error),
    /// The file's format is unknown.
    #[error(
        "not a heapr trace: {}; nor a file of heaptrack, massif, DHAT, jemalloc, gperftools, Go or pprof, nor a \
         heap of V8, Java, Ruby or .NET",
        beginning(.found)
    )]
    Unknown {
        /// First bytes of the file.
        found: Vec<u8>,
    },
    /// The content is invalid.
    #[error("{tool}: at offset {offset}: {what}")]
    Malformed {
        /// Name of the format's tool.
        tool: &'static str,
        /// Offset in the unpacked file.
        offset: u64,
        /// Description of the fault.
        what: String,
    },
    /// The file contains no heap, or only its own tool can read it.
    #[error("{what}")]
    Unusable {
        /// Reason, and a remedy.
        what: String,
    },
    /// The file was written by a later version of the tool.
    #[error("{tool}: the file has version {found}, this heapr reads up to {known}: use a newer heapr")]
    NewerVersion {
        /// Name of the format's tool.
        tool: &'static str,
        /// Version of the file.
        found: u64,
        /// Newest known version.
        known: u64,
    },
    /// The file needs more memory than its size justifies.
    #[error(
        "it holds more than {bytes} bytes that must be kept in memory, which no tool's file of its size does"
    )]
    Swells {
        /// Limit of the memory in bytes.
        bytes: u64,
    },
    /// The file needs more time than its size justifies.
    #[error(
        "packed, it goes on behind offset {offset}, which no tool's file of its size does: if it is right, unpack it first"
    )]
    UnpacksTo {
        /// Offset in the unpacked file at which reading ended.
        offset: u64,
    },
}

impl Error {
    /// Error for a file of unknown format that begins with `start`.
    pub(crate) fn unknown(start: &[u8]) -> Self {
        Self::Unknown { found: start[..start.len().min(8)].to_vec() }
    }
}

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// First bytes of a file in words: the name of a known kind of file, text, or numbers.
fn beginning(found: &[u8]) -> String {
    let text = found.strip_prefix(BYTE_ORDER_MARK).unwrap_or(found);
    if is_web_page(text) {
        return "it is a web page (HTML), as of a login or an error of a server".to_owned();
    }
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let mark = if text.len() < found.len() { "a byte order mark and " } else { "" };
    match std::str::from_utf8(text) {
        Ok(shown) if !shown.is_empty() && text.iter().all(is_text) => {
            format!("it begins with {mark}{shown:?}")
        }
        _ => format!("it begins with {found:02x?}"),
    }
}

/// Mark that some editors put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether a text is HTML, by its first bytes.
fn is_web_page(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let begins = |with: &[u8]| {
        let count = with.len().min(text.len());
        count >= 2 && text[..count].eq_ignore_ascii_case(&with[..count])
    };
    [&b"<!doctype"[..], b"<html", b"<head", b"<body"].into_iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_page_is_called_one_whatever_stands_before_it() {
        let message = |start: &[u8]| Error::unknown(start).to_string();
        for page in [
            &b"<!DOCTYPE html><html>"[..],
            b"\xef\xbb\xbf<!doctype html>",
            b"\xef\xbb\xbf\r\n<html lang=en>",
            b"\n <HTML>",
        ] {
            assert!(message(page).contains("it is a web page (HTML)"), "{}", message(page));
        }
        assert!(message(b"\xef\xbb\xbfhello").contains("begins with a byte order mark and \"hello\""));
        assert!(message(b"hello world").contains("begins with \"hello wo\""));
        assert!(message(b"<xml>").contains("begins with \"<xml>\""));
        assert!(message(b"\xef\xbb\x01").contains("begins with [ef, bb, 01]"));
    }
}
