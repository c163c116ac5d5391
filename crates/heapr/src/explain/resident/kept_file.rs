//! A file of kept answers.

use std::io;
use std::path::Path;

use anyhow::Context as _;
use heapr_resident::KeptMoments;

/// What was kept in a file. `None`: it is something else.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<KeptMoments>> {
    let mut start = [0; 64];
    if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    let Ok(count) = std::fs::File::open(path).and_then(|mut file| io::Read::read(&mut file, &mut start))
    else {
        return Ok(None);
    };
    if !KeptMoments::may_be(&start[..count]) {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    KeptMoments::parse(&text).with_context(|| path.display().to_string())
}
