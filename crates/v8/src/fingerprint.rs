//! Fingerprint of a snapshot file: enough to see that the file is still the one that was read.

use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Length, inode, modification time, and a checksum over samples of the file's bytes, its start and
/// end included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    length: u64,
    inode: u64,
    modified_s: i64,
    modified_ns: i64,
    checksum: u32,
}

impl Fingerprint {
    /// Computes the fingerprint of a file in its current state.
    pub fn of(snapshot: &Path) -> io::Result<Self> {
        const SAMPLES: u64 = 32;
        const SAMPLE_BYTES: u64 = 4096;
        let file = heapr_files::regular(snapshot)?;
        let metadata = file.metadata()?;
        let mut hasher = crc32fast::Hasher::new();
        let mut sample = vec![0; SAMPLE_BYTES as usize];
        let last = metadata.len().saturating_sub(SAMPLE_BYTES);
        for at in 0..SAMPLES {
            let offset = (u128::from(last) * u128::from(at) / u128::from(SAMPLES - 1)) as u64;
            let count = file.read_at(&mut sample, offset)?;
            hasher.update(&sample[..count]);
        }
        Ok(Self {
            length: metadata.len(),
            inode: metadata.ino(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
            checksum: hasher.finalize(),
        })
    }
}
