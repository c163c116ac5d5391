//! A directory of files that are kept about snapshots, of a bounded size.
//!
//! Each is named after the snapshot's whole path. Whether it still belongs to the snapshot, its
//! reader tells by the [fingerprint](crate::Fingerprint).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use heapr_files::{NewFile, OwnFolder};

/// Files of one extension. Several folders may stand for one directory.
#[derive(Debug, Clone)]
pub(crate) struct CacheFolder {
    directory: PathBuf,
    extension: &'static str,
    most_bytes: u64,
}

/// A file that is still being written ends in it.
const UNFINISHED: &str = "partial";
/// After this time nobody goes on with an unfinished file.
const ABANDONED_AFTER: Duration = Duration::from_secs(600);

impl CacheFolder {
    /// Files `*.extension` in `directory`, which need not exist yet, of `most_bytes` together.
    pub(crate) fn new(directory: PathBuf, extension: &'static str, most_bytes: u64) -> Self {
        Self { directory, extension, most_bytes }
    }

    /// The same with another bound.
    pub(crate) fn with_most_bytes(self, most_bytes: u64) -> Self {
        Self { most_bytes, ..self }
    }

    /// What is kept of `snapshot`. `part` tells several apart; the whole one has no name.
    pub(crate) fn entry(&self, snapshot: &Path, part: &str) -> Option<PathBuf> {
        let path = fs::canonicalize(snapshot).ok()?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        let hash = crc32fast::hash(path.as_os_str().as_encoded_bytes());
        let start: String = name.chars().take(80).collect();
        let part: String = part
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
            .take(120)
            .collect();
        let dot = if part.is_empty() { "" } else { "." };
        Some(self.directory.join(format!("{start}.{hash:08x}{dot}{part}.{}", self.extension)))
    }

    /// The file at `entry`. One that another user could have put there says what that user likes:
    /// it is none.
    pub(crate) fn open(&self, entry: &Path) -> Option<File> {
        OwnFolder::open(&self.directory).ok()?.regular(Path::new(entry.file_name()?)).ok()
    }

    /// Notes that `entry` is in use: the oldest in use goes first when room is needed.
    pub(crate) fn touch(&self, entry: &Path) {
        let _ = self.open(entry).map(|file| file.set_modified(SystemTime::now()));
    }

    /// A file to write, for this user alone; it becomes `entry` by [`NewFile::keep_unsynced`].
    /// None where `bytes` have no room.
    pub(crate) fn new_file(&self, entry: &Path, bytes: u64) -> io::Result<Option<NewFile>> {
        let folder = OwnFolder::made(&self.directory)?;
        if !self.make_room(bytes)? {
            return Ok(None);
        }
        NewFile::create_in(&folder, Path::new(entry.file_name().unwrap_or_default())).map(Some)
    }

    /// Removes the oldest files until `bytes` more are within the bound; whether they can be, and
    /// the disk has room.
    fn make_room(&self, bytes: u64) -> io::Result<bool> {
        if bytes > self.most_bytes {
            return Ok(false);
        }
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(&self.directory)?
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let path = entry.path();
                let is_unfinished = path.extension().is_some_and(|extension| extension == UNFINISHED);
                if !is_unfinished && path.extension().is_none_or(|extension| extension != self.extension) {
                    return None;
                }
                let metadata = entry.metadata().ok()?;
                let modified = metadata.modified().ok()?;
                // Another heapr may be writing it at this moment.
                let age = SystemTime::now().duration_since(modified).unwrap_or_default();
                if is_unfinished && age < ABANDONED_AFTER {
                    return None;
                }
                Some((if is_unfinished { SystemTime::UNIX_EPOCH } else { modified }, metadata.len(), path))
            })
            .collect();
        entries.sort();
        let mut total: u64 = entries.iter().map(|&(_, bytes, _)| bytes).sum();
        for (modified, length, path) in entries {
            if modified != SystemTime::UNIX_EPOCH && total.saturating_add(bytes) <= self.most_bytes {
                break;
            }
            // Another heapr may have been faster.
            let _ = fs::remove_file(path);
            total = total.saturating_sub(length);
        }
        let disk = rustix::fs::statvfs(&self.directory)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // A cache must not be what fills a disk.
        Ok(bytes.saturating_mul(4) <= free)
    }
}
