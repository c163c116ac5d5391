//! What a file holds, unpacked: by lines or whole, with a bound on what is kept of it.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use crate::budget::Budget;
use crate::error::{Error, Result};

/// Bytes that tell what a file is.
const START_BYTES: usize = 1024;
/// Longest line; names of templates reach some 100 KiB.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// What is kept may come to so many times the file's size …
const EXPANSION_MAX: u64 = 64;
/// … or to this much.
const EXPANSION_FREE_BYTES: u64 = 16 << 20;
/// And never to more.
const KEPT_BYTES_MAX: u64 = 8 << 30;
/// What is packed may unpack to so many times the file's size: it is read once, and takes time …
const UNPACKED_MAX: u64 = 1024;
/// … or to this much.
const UNPACKED_FREE_BYTES: u64 = 256 << 20;

/// A file that is read from its start to its end.
pub(crate) struct Input<'a> {
    reader: Box<dyn BufRead + 'a>,
    start: Vec<u8>,
    /// Of the next byte, in what is unpacked.
    offset: u64,
    budget: Budget,
    /// What it may still unpack to.
    left_bytes: u64,
    /// Where the file lies, if it does.
    pub(crate) path: Option<PathBuf>,
    /// It ended before its packing did.
    pub(crate) is_cut: bool,
}

fn failed(source: io::Error) -> Error {
    Error::Io { action: "reading the file", source }
}

impl<'a> Input<'a> {
    /// Begins to read `source`, of `packed_bytes`: plain, or packed by gzip or zstd.
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
        // A start that cannot be unpacked is told by none, and so refused.
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

    /// The first bytes.
    pub(crate) fn start(&self) -> &[u8] {
        &self.start
    }

    /// Of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// What may be kept of it.
    pub(crate) fn budget(&self) -> Budget {
        self.budget.clone()
    }

    /// Takes note that so much is kept in memory.
    pub(crate) fn keep(&mut self, bytes: usize) -> Result<()> {
        self.budget.keep(bytes)
    }

    /// The next line, without its end; gives its offset, `None` at the end.
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

    /// All of it.
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

/// Whether what is packed ends, or makes no sense from here on.
fn is_cut(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | InvalidData | InvalidInput | Other)
}
