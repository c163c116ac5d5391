//! Bytes of a heap dump in order, with their offsets. All numbers are big-endian.

use std::io::Read;

use crate::dump_error::{DumpError, Result};

/// Bytes that are read at once.
const BLOCK_BYTES: usize = 1 << 20;
/// Largest number of bytes that are returned as one piece.
pub(super) const TAKE_MAX: usize = BLOCK_BYTES;

pub(super) struct Input<R> {
    reader: R,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// Offset of `begin` in the file.
    offset: u64,
    /// Bytes of an id: 4 or 8.
    pub(super) id_bytes: usize,
}

impl<R: Read> Input<R> {
    pub(super) fn new(reader: R) -> Self {
        Self::at(reader, 0, 8)
    }

    /// Input whose reader begins at an offset of the dump.
    pub(super) fn at(reader: R, offset: u64, id_bytes: usize) -> Self {
        Self { reader, buffer: vec![0; 2 * BLOCK_BYTES], begin: 0, end: 0, offset, id_bytes }
    }

    /// Offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the file ends here.
    pub(super) fn is_at_end(&mut self) -> Result<bool> {
        match self.fill(1) {
            Ok(()) => Ok(false),
            Err(DumpError::Ends { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Reads on until `count` bytes are in the buffer.
    #[inline]
    fn fill(&mut self, count: usize) -> Result<()> {
        if self.end - self.begin >= count { Ok(()) } else { self.read_on(count) }
    }

    #[cold]
    fn read_on(&mut self, count: usize) -> Result<()> {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        while self.end < count {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(DumpError::Ends { offset: self.offset + self.end as u64 }),
                Ok(more) => self.end += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // A packed file that is cut ends here.
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    return Err(DumpError::Ends { offset: self.offset + self.end as u64 });
                }
                Err(source) => {
                    return Err(DumpError::Io { offset: self.offset + self.end as u64, source });
                }
            }
        }
        Ok(())
    }

    /// Returns the next bytes, at most [`TAKE_MAX`].
    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Result<&[u8]> {
        if count > TAKE_MAX {
            return Err(DumpError::TooLong { bytes: count as u64, offset: self.offset });
        }
        self.fill(count)?;
        let from = self.begin;
        self.begin += count;
        self.offset += count as u64;
        Ok(&self.buffer[from..from + count])
    }

    /// Passes bytes.
    pub(super) fn skip(&mut self, count: u64) -> Result<()> {
        let mut rest = count;
        while rest > 0 {
            let piece = rest.min(BLOCK_BYTES as u64);
            self.take(piece as usize)?;
            rest -= piece;
        }
        Ok(())
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn half(&mut self) -> Result<u16> {
        Ok(number(self.take(2)?) as u16)
    }

    pub(super) fn word(&mut self) -> Result<u32> {
        Ok(number(self.take(4)?) as u32)
    }

    pub(super) fn id(&mut self) -> Result<u64> {
        let count = self.id_bytes;
        Ok(number(self.take(count)?))
    }
}

/// Value of big-endian bytes, at most 8.
#[inline]
pub(super) fn number(bytes: &[u8]) -> u64 {
    match *bytes {
        [a, b, c, d] => u32::from_be_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)),
    }
}
