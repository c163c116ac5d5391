//! Open files with saved answers of `heapr explain`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use heapr_resident::SavedMoments;
use serde::Serialize;

/// Largest file that is read, in bytes; an answer takes some 30 KB.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// An open file with saved answers.
#[derive(Debug)]
pub(crate) struct ResidentFile {
    pub(crate) path: PathBuf,
    /// Text of the file.
    pub(crate) text: String,
    pub(crate) kept: SavedMoments,
}

/// Facts of the file that are sent before any query.
#[derive(Debug, Serialize)]
pub(crate) struct ResidentFacts {
    /// Name of the process.
    of: String,
    moment_count: usize,
}

impl ResidentFile {
    /// Opens a file. `None`: its format is different.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, String> {
        let told = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = heapr_files::regular(path).map_err(told)?;
        let mut start = [0; 64];
        let count = file.read(&mut start).map_err(told)?;
        if !SavedMoments::may_be(&start[..count]) {
            return Ok(None);
        }
        if file.metadata().is_ok_and(|metadata| metadata.len() > FILE_BYTES_MAX) {
            // Only a V8 snapshot is so large.
            return Ok(None);
        }
        let mut text = start[..count].to_vec();
        file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(told)?;
        let Ok(text) = String::from_utf8(text) else { return Ok(None) };
        let kept = SavedMoments::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(kept.map(|kept| Self { path: path.to_owned(), text, kept }))
    }

    /// Facts for `/api/files`.
    pub(crate) fn facts(&self) -> ResidentFacts {
        ResidentFacts { of: self.kept.of.clone(), moment_count: self.kept.moments.len() }
    }
}
