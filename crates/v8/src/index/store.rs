//! The directory of index files.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::devtools::Heap;
use crate::fingerprint::Fingerprint;
use crate::index::heap_columns;
use crate::index::stored_graph::StoredGraph;
use crate::stored_summary::StoredSummary;

/// A directory with indexes of snapshots, of a bounded size.
#[derive(Debug, Clone)]
pub struct IndexStore {
    directory: PathBuf,
    most_bytes: u64,
}

/// An index is a quarter larger than a snapshot of small objects.
const DEFAULT_MOST_BYTES: u64 = 16 << 30;
const EXTENSION: &str = "heapr-index";

impl IndexStore {
    /// Uses `directory`, which need not exist yet.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), most_bytes: DEFAULT_MOST_BYTES }
    }

    /// The same with another bound on the size of all indexes together.
    pub fn with_most_bytes(self, most_bytes: u64) -> Self {
        Self { most_bytes, ..self }
    }

    /// The index of `snapshot`, if there is one and the file is still the same.
    pub fn open(&self, snapshot: &Path) -> Option<StoredGraph> {
        let path = self.entry(snapshot)?;
        let no_link = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32;
        let file = File::options().read(true).custom_flags(no_link).open(&path).ok()?;
        let metadata = file.metadata().ok()?;
        // An index that another user could have put there says what that user likes.
        if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
            return None;
        }
        let stored = StoredGraph::open(file).ok()??;
        if Fingerprint::of(snapshot).ok()? != stored.directory.fingerprint {
            return None;
        }
        // The oldest in use goes first when room is needed.
        let _ = File::options()
            .append(true)
            .custom_flags(no_link)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        Some(stored)
    }

    /// Writes the index of `snapshot`, which `heap` was read from when it looked like `read`;
    /// whether there was room for it.
    pub fn store(
        &self,
        snapshot: &Path,
        read: &Fingerprint,
        heap: &Heap,
        summary: &StoredSummary,
    ) -> io::Result<bool> {
        let Some(entry) = self.entry(snapshot) else { return Ok(false) };
        if heap.snapshot().trace().is_some() {
            return Ok(false);
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let estimate = heap_columns::estimated_bytes(heap);
        if !self.make_room(estimate)? {
            return Ok(false);
        }
        // A file that was written to meanwhile is not the one that was read.
        if Fingerprint::of(snapshot)? != *read {
            return Ok(false);
        }
        let file = tempfile::Builder::new()
            .prefix(".")
            .suffix(".new")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(&self.directory)?;
        heap_columns::write(file.as_file().try_clone()?, heap, summary, read.clone())?;
        file.persist(entry).map_err(|error| error.error)?;
        Ok(true)
    }

    /// Removes what is known to be of no use: an index that turned out to be damaged.
    pub fn forget(&self, snapshot: &Path) {
        if let Some(entry) = self.entry(snapshot) {
            let _ = fs::remove_file(entry);
        }
    }

    /// Named after the snapshot's whole path.
    fn entry(&self, snapshot: &Path) -> Option<PathBuf> {
        let path = fs::canonicalize(snapshot).ok()?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        let hash = crc32fast::hash(path.as_os_str().as_encoded_bytes());
        let start: String = name.chars().take(80).collect();
        Some(self.directory.join(format!("{start}.{hash:08x}.{EXTENSION}")))
    }

    /// Removes the oldest indexes until `bytes` more are within the bound; whether they can be, and
    /// the disk has room.
    fn make_room(&self, bytes: u64) -> io::Result<bool> {
        if bytes > self.most_bytes {
            return Ok(false);
        }
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(&self.directory)?
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let path = entry.path();
                let is_abandoned = path.extension().is_some_and(|extension| extension == "new");
                if !is_abandoned && path.extension().is_none_or(|extension| extension != EXTENSION) {
                    return None;
                }
                let metadata = entry.metadata().ok()?;
                let modified = metadata.modified().ok()?;
                // Another heapr may be writing it at this moment.
                let age = SystemTime::now().duration_since(modified).unwrap_or_default();
                if is_abandoned && age.as_secs() < 600 {
                    return None;
                }
                Some((if is_abandoned { SystemTime::UNIX_EPOCH } else { modified }, metadata.len(), path))
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
