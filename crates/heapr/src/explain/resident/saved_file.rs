//! File of saved answers.

use std::io;
use std::path::Path;

use anyhow::Context as _;
use heapr_resident::SavedMoments;

/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Reads the saved moments of a file; `None` if the file is something else.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<SavedMoments>> {
    let mut start = [0; 64];
    let Ok(count) = heapr_files::regular(path).and_then(|mut file| io::Read::read(&mut file, &mut start))
    else {
        return Ok(None);
    };
    if !SavedMoments::may_be(&start[..count]) {
        return Ok(None);
    }
    let text = heapr_files::read_text(path, FILE_BYTES_MAX)
        .with_context(|| format!("cannot read {}", path.display()))?;
    SavedMoments::parse(&text).with_context(|| path.display().to_string())
}
