//! Content of a core file and of mapped files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Source of the bytes.
#[derive(Debug)]
pub(super) enum Source {
    File(File),
    Bytes(Vec<u8>),
}

impl Source {
    pub(super) fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        match self {
            Self::File(file) => read_up_to(file, offset, into),
            Self::Bytes(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let count = into.len().min(bytes.len() - from);
                into[..count].copy_from_slice(&bytes[from..from + count]);
                count
            }
        }
    }

    pub(super) fn read_whole(&self, offset: u64, bytes: u64) -> Vec<u8> {
        let mut whole = Vec::new();
        // The loop stops at the end of the file: a header may claim any size.
        while (whole.len() as u64) < bytes {
            let from = whole.len();
            whole.resize(from + (bytes as usize - from).min(1 << 20), 0);
            let count = self.read_at(offset.saturating_add(from as u64), &mut whole[from..]);
            whole.truncate(from + count);
            if count == 0 {
                break;
            }
        }
        whole
    }
}

pub(super) fn read_up_to(file: &File, offset: u64, into: &mut [u8]) -> usize {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], offset.saturating_add(done as u64)) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    done
}
