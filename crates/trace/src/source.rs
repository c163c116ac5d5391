//! Sources of bytes that a trace is read from.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::error::{Error, Result};

/// Bytes that can be read at any offset.
pub trait ReadAt: Send + Sync {
    /// Reads up to `buffer.len()` bytes at `offset`; 0 at the end.
    ///
    /// # Errors
    /// Reading the source fails.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Length in bytes.
    ///
    /// # Errors
    /// Reading the source fails.
    fn size_bytes(&self) -> io::Result<u64>;
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = from.len().min(buffer.len());
        buffer[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// Reads at `offset` until `buffer` is full or the source ends; returns the number of bytes.
pub(crate) fn read_up_to(source: &dyn ReadAt, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::Io { action: "reading the trace", source }),
        }
    }
    Ok(filled)
}
