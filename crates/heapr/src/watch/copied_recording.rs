//! Copies of recordings that incidents keep.

use std::path::Path;

use anyhow::{Context as _, ensure};
use heapr_files::{Existing, make, regular};

/// Largest recording that is copied, in bytes.
const COPIED_BYTES_MAX: u64 = 128 << 20;

/// Copies a recording that goes on: the copy is complete up to the last flush.
///
/// # Errors
/// The recording is too large, or the operating system's error.
pub(super) fn copy_recording(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut source = regular(from).with_context(|| format!("cannot read {}", from.display()))?;
    let bytes = source.metadata()?.len();
    ensure!(bytes <= COPIED_BYTES_MAX, "it has {bytes} bytes, more than {COPIED_BYTES_MAX}");
    let mut copy = make(to, Existing::Replaced)?;
    let copied = std::io::copy(&mut source, &mut copy);
    if copied.is_err() {
        let _ = std::fs::remove_file(to);
    }
    copied.with_context(|| format!("cannot write {}", to.display()))?;
    Ok(())
}
