//! Unpacked content of a file, by lines or whole, with a limit on the memory for it.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use crate::budget::Budget;
use crate::error::{Error, Result};

/// Number of bytes by which a format is recognised.
const START_BYTES: usize = 1024;
/// Longest line in bytes; names of templates reach some 100 KiB.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// Memory for the content may reach this multiple of the file's size.
const EXPANSION_MAX: u64 = 64;
/// Memory in bytes that is allowed for a file of any size.
const EXPANSION_FREE_BYTES: u64 = 16 << 20;
/// Largest memory for the content of any file, in bytes.
const KEPT_BYTES_MAX: u64 = 8 << 30;
/// A packed file may unpack to this multiple of its size. It is read once, so that the limit is for
/// time.
const UNPACKED_MAX: u64 = 1024;
/// Unpacked size in bytes that is allowed for a packed file of any size.
const UNPACKED_FREE_BYTES: u64 = 256 << 20;

/// A file that is read from start to end.
pub(crate) struct Input<'a> {
    reader: Box<dyn BufRead + 'a>,
    start: Vec<u8>,
    /// Offset of the next byte in the unpacked file.
    offset: u64,
    budget: Budget,
    /// Bytes that may still be unpacked.
    left_bytes: u64,
    /// Path of the file, if it has one.
    pub(crate) path: Option<PathBuf>,
    /// Whether the file ended before its packed content did.
    pub(crate) is_cut: bool,
}

fn failed(source: io::Error) -> Error {
    Error::Io { action: "reading the file", source }
}

impl<'a> Input<'a> {
    /// Begins to read `source`, a file of `packed_bytes` bytes: plain, or packed with gzip or zstd.
    pub(crate) fn new(source: impl Read + 'a, packed_bytes: u64, path: Option<&Path>) -> Result<Self> {
        let mut source = BufReader::with_capacity(1 << 16, source);
        let first = source.fill_buf().map_err(failed)?;
        let is_packed = first.starts_with(&[0x1f, 0x8b]) || first.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let mut reader: Box<dyn BufRead + 'a> = if first.starts_with(&[0x1f, 0x8b]) {
            Box::new(BufReader::with_capacity(1 << 16, flate2::bufread::MultiGzDecoder::new(source)))
        } else if first.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            let decoder = zstd::stream::read::Decoder::with_buffer(source).map_err(failed)?;
            Box::new(BufReader::with_capacity(1 << 16, decoder))
        } else {
            Box::new(source)
        };
        let mut start = Vec::new();
        // If the start cannot be unpacked, no format recognises it, so that the file is refused.
        let _ = reader.by_ref().take(START_BYTES as u64).read_to_end(&mut start);
        let whole = Cursor::new(start.clone()).chain(reader);
        let allowed = packed_bytes.saturating_mul(EXPANSION_MAX).max(EXPANSION_FREE_BYTES);
        Ok(Self {
            reader: Box::new(whole),
            start,
            offset: 0,
            budget: Budget::new(allowed.min(KEPT_BYTES_MAX)),
            left_bytes: if is_packed {
                packed_bytes.saturating_mul(UNPACKED_MAX).max(UNPACKED_FREE_BYTES)
            } else {
                u64::MAX
            },
            path: path.map(Path::to_owned),
            is_cut: false,
        })
    }

    /// First bytes of the unpacked file.
    pub(crate) fn start(&self) -> &[u8] {
        &self.start
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Limit of the memory for the content.
    pub(crate) fn budget(&self) -> Budget {
        self.budget.clone()
    }

    /// Counts bytes that are stored in memory.
    pub(crate) fn keep(&mut self, bytes: usize) -> Result<()> {
        self.budget.keep(bytes)
    }

    /// Reads the next line, without its end. Returns its offset, or `None` at the end of the file.
    pub(crate) fn line(&mut self, line: &mut Vec<u8>) -> Result<Option<u64>> {
        line.clear();
        let offset = self.offset;
        let outcome = self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line);
        self.took(line.len())?;
        match outcome {
            Ok(_) => {}
            Err(error) if is_cut(&error) => self.is_cut = true,
            Err(error) => return Err(failed(error)),
        }
        if line.is_empty() {
            return Ok(None);
        }
        if line.len() as u64 == LINE_BYTES_MAX {
            return Err(Error::Malformed { tool: "text", offset, what: "a line has no end".to_owned() });
        }
        if line.last() == Some(&b'\n') {
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
        }
        Ok(Some(offset))
    }

    fn took(&mut self, bytes: usize) -> Result<()> {
        self.offset += bytes as u64;
        let left = self.left_bytes.checked_sub(bytes as u64);
        self.left_bytes = left.ok_or(Error::UnpacksTo { offset: self.offset })?;
        Ok(())
    }

    /// Reads the whole file.
    pub(crate) fn whole(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let allowed = self.budget.left_bytes();
        let outcome = self.reader.by_ref().take(allowed + 1).read_to_end(&mut bytes);
        self.took(bytes.len())?;
        match outcome {
            Ok(_) => {}
            Err(error) if is_cut(&error) => self.is_cut = true,
            Err(error) => return Err(failed(error)),
        }
        self.keep(bytes.len())?;
        Ok(bytes)
    }
}

/// True if the packed content ends early, or is invalid from here on.
fn is_cut(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | InvalidData | InvalidInput | Other)
}
