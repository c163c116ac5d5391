//! Directory of bounded size for files with saved results about snapshots.
//!
//! Each file is named after the snapshot's whole path. Its reader checks by the
//! [fingerprint](crate::Fingerprint) whether the file still belongs to the snapshot.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use heapr_files::{NewFile, OwnFolder};
use heapr_table::SortRows as _;

/// Files of one extension in a directory. Several folders may share one directory.
#[derive(Debug, Clone)]
pub(crate) struct CacheFolder {
    directory: PathBuf,
    extension: &'static str,
    most_bytes: u64,
}

/// Extension of a file that is still being written.
const UNFINISHED: &str = "partial";
/// Age from which an unfinished file counts as abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(600);

impl CacheFolder {
    /// Creates a folder of files `*.extension` in `directory`, up to `most_bytes` in total. The
    /// directory need not exist yet.
    pub(crate) fn new(directory: PathBuf, extension: &'static str, most_bytes: u64) -> Self {
        Self { directory, extension, most_bytes }
    }

    /// Returns the folder with another size limit.
    pub(crate) fn with_most_bytes(self, most_bytes: u64) -> Self {
        Self { most_bytes, ..self }
    }

    /// Returns the path of the file for `snapshot`. `part` distinguishes several files of a
    /// snapshot; it is empty for the whole one.
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

    /// Opens the file at `entry`. Returns `None` for a file that another user could have put there,
    /// since its contents cannot be trusted.
    pub(crate) fn open(&self, entry: &Path) -> Option<File> {
        OwnFolder::open(&self.directory).ok()?.regular(Path::new(entry.file_name()?)).ok()
    }

    /// Marks `entry` as in use: the least recently used files are removed first.
    pub(crate) fn touch(&self, entry: &Path) {
        let _ = self.open(entry).map(|file| file.set_modified(SystemTime::now()));
    }

    /// Creates a file that only this user can read; [`NewFile::keep_unsynced`] turns it into
    /// `entry`. Returns `None` if there is no room for `bytes`.
    pub(crate) fn new_file(&self, entry: &Path, bytes: u64) -> io::Result<Option<NewFile>> {
        let folder = OwnFolder::made(&self.directory)?;
        if !self.make_room(bytes)? {
            return Ok(None);
        }
        NewFile::create_in(&folder, Path::new(entry.file_name().unwrap_or_default())).map(Some)
    }

    /// Removes the oldest files until `bytes` more fit within the limit. Returns whether they fit
    /// and the disk has enough free space.
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
                // Another heapr may still be writing the file.
                let age = SystemTime::now().duration_since(modified).unwrap_or_default();
                if is_unfinished && age < ABANDONED_AFTER {
                    return None;
                }
                Some((if is_unfinished { SystemTime::UNIX_EPOCH } else { modified }, metadata.len(), path))
            })
            .collect();
        entries.sort_rows();
        let mut total: u64 = entries.iter().map(|&(_, bytes, _)| bytes).sum();
        for (modified, length, path) in entries {
            if modified != SystemTime::UNIX_EPOCH && total.saturating_add(bytes) <= self.most_bytes {
                break;
            }
            // Another heapr may have removed it already.
            let _ = fs::remove_file(path);
            total = total.saturating_sub(length);
        }
        let disk = rustix::fs::statvfs(&self.directory)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // A cache must not be the reason that a disk fills up.
        Ok(bytes.saturating_mul(4) <= free)
    }
}
