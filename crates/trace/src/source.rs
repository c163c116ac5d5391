//! Where a trace is read from.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::Path;

use crate::error::{Error, Result};

/// Bytes that can be read at any offset.
pub trait ReadAt: Send + Sync {
    /// Reads up to `buffer.len()` bytes at `offset`; 0 at the end.
    ///
    /// # Errors
    /// As of the source.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Length in bytes.
    ///
    /// # Errors
    /// As of the source.
    fn size_bytes(&self) -> io::Result<u64>;
}

/// Opens a file, and nothing else: a fifo would have to be waited for, and no pipe can be read at
/// many places.
///
/// # Errors
/// It is something else, or cannot be opened.
pub fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    const O_NONBLOCK: i32 = 0o4000;
    let file = options.custom_flags(O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a pipe or a device: name a regular file",
        ));
    }
    Ok(file)
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

/// Reads as much of `buffer` as there is at `offset`.
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
