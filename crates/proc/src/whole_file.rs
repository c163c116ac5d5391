//! Reading of whole files in `/proc` and of control groups.
//!
//! These files report a size of 0. A reader that asks for the size first, and then grows its buffer
//! step by step, makes seven system calls instead of three.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Initial size of the buffer in bytes, enough for nearly all files.
const BYTES: usize = 4096;

/// Reads all bytes of a file.
pub(crate) fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(BYTES);
    // Through `take`, because a file alone is first asked for its size. `/proc` does not know it.
    File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file of text.
pub(crate) fn text(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_files_are_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        for length in [0, 1, BYTES / 2, BYTES, BYTES * 5 + 3] {
            let path = folder.path().join("file");
            let bytes: Vec<u8> = (0..length).map(|number| number as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(read(&path).unwrap(), bytes);
        }
        assert!(read("/proc/self/status").unwrap().starts_with(b"Name:"));
        assert!(read(folder.path().join("none")).is_err());
    }
}
