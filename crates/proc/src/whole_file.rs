//! Reading of whole files in `/proc`.
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
    let mut file = File::open(path)?;
    let mut bytes = vec![0; BYTES];
    let mut length = 0;
    loop {
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if bytes.len() - length < BYTES / 2 {
            bytes.resize(bytes.len() * 2, 0);
        }
    }
    bytes.truncate(length);
    Ok(bytes)
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
