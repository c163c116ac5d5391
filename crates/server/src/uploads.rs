//! Files that are dropped on the page: they arrive in pieces, and are opened when complete.
//!
//! A browser gives no path: the files are copied into a folder that is removed with the server.

use std::fs::{DirBuilder, File};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use heapr_files::Existing;

use crate::error::{Error, Result};

/// Largest number of files that arrive at once.
const AT_ONCE_MAX: usize = 8;
/// Largest size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 30;
/// Largest size of a name, in bytes.
const NAME_BYTES_MAX: usize = 160;

/// Uploads in progress.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    count: u64,
    coming: Vec<Coming>,
}

#[derive(Debug)]
struct Coming {
    id: u64,
    path: PathBuf,
    file: File,
    bytes: u64,
}

fn failed(error: &std::io::Error) -> Error {
    Error::bad("data", format!("the file can't be kept: {error}"))
}

impl Uploads {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an upload; returns its number.
    pub(crate) fn begin(&self, folder: &Path, name: &str) -> Result<u64> {
        let mut state = self.lock();
        if state.coming.len() >= AT_ONCE_MAX {
            // The oldest upload, probably given up, makes room.
            let oldest = state.coming.remove(0);
            let _ = std::fs::remove_file(&oldest.path);
        }
        state.count += 1;
        let id = state.count;
        // Each file has its own folder: two files may have the same name.
        let place = folder.join(format!("dropped-{id}"));
        DirBuilder::new().mode(0o700).create(&place).map_err(|error| failed(&error))?;
        let path = place.join(plain_name(name));
        let file = heapr_files::make(&path, Existing::Kept);
        let file = file.map_err(|error| failed(&error))?;
        state.coming.push(Coming { id, path, file, bytes: 0 });
        Ok(id)
    }

    /// Appends a piece to a file.
    pub(crate) fn add(&self, id: u64, piece: &[u8]) -> Result<()> {
        let mut state = self.lock();
        let coming = state.coming.iter_mut().find(|coming| coming.id == id);
        let coming = coming.ok_or_else(|| Error::NotFound { what: "upload", name: id.to_string() })?;
        coming.bytes += piece.len() as u64;
        if coming.bytes > FILE_BYTES_MAX {
            return Err(Error::bad(
                "data",
                "the file is too large to be dropped: heapr view FILE opens it".to_owned(),
            ));
        }
        coming.file.write_all(piece).map_err(|error| failed(&error))
    }

    /// Completes a file, and returns its path.
    pub(crate) fn end(&self, id: u64) -> Result<PathBuf> {
        let mut state = self.lock();
        let place = state.coming.iter().position(|coming| coming.id == id);
        let place = place.ok_or_else(|| Error::NotFound { what: "upload", name: id.to_string() })?;
        Ok(state.coming.remove(place).path)
    }
}

/// Reduces a sent name to a plain file name.
fn plain_name(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = name.chars().filter(|c| !c.is_control()).collect();
    // The end of the name is kept: it says what kind of file it is.
    let mut starts = plain.char_indices().map(|(at, _)| at);
    let start = starts.find(|at| plain.len() - at <= NAME_BYTES_MAX).unwrap_or(0);
    let plain = plain[start..].trim_start_matches('.').trim();
    if plain.is_empty() { "dropped".to_owned() } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere() {
        assert_eq!(plain_name("../../etc/passwd"), "passwd");
        assert_eq!(plain_name("a\\b\0.heapr"), "b.heapr");
        assert_eq!(plain_name(".."), "dropped");
        assert_eq!(plain_name("my trace.heapr"), "my trace.heapr");
        let long = format!("{}.heapr", "ä".repeat(1 << 20));
        assert_eq!(plain_name(&long), format!("{}.heapr", "ä".repeat((NAME_BYTES_MAX - 6) / 2)));
    }

    #[test]
    fn pieces_become_the_file_and_what_is_given_up_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let uploads = Uploads::default();
        let id = uploads.begin(folder.path(), "a.heapr").unwrap();
        uploads.add(id, b"one ").unwrap();
        uploads.add(id, b"two").unwrap();
        let path = uploads.end(id).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one two");
        assert!(uploads.add(id, b"three").is_err() && uploads.end(id).is_err());
        let first = uploads.begin(folder.path(), "b").unwrap();
        for _ in 0..AT_ONCE_MAX {
            uploads.begin(folder.path(), "b").unwrap();
        }
        assert!(uploads.end(first).is_err());
    }
}
