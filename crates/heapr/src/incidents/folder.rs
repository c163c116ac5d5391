//! The folder of incidents that is used without an option.

use std::path::PathBuf;

use crate::snapshot_take::state_directory;

/// Folder of incidents without an option.
///
/// # Errors
/// Neither `$XDG_STATE_HOME` nor `$HOME` names a folder.
pub(crate) fn default_folder() -> anyhow::Result<PathBuf> {
    let state = state_directory();
    let state =
        state.ok_or_else(|| anyhow::anyhow!("no folder for incidents: set HOME, or name one with -o"))?;
    Ok(state.join("incidents"))
}
