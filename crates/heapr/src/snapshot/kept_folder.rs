//! Folder of saved answers on snapshots, in the user's cache directory.

use std::path::{Path, PathBuf};

/// Returns the folder, if `file` has at least `least_bytes`.
pub(crate) fn directory_of(file: &Path, least_bytes: u64) -> Option<PathBuf> {
    let metadata = std::fs::metadata(file).ok()?;
    if !metadata.is_file() || metadata.len() < least_bytes {
        return None;
    }
    Some(cache_folder()?.join("heapr/snapshots"))
}

/// Returns the user's cache folder.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    let absolute =
        |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))
}
