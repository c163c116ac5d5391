//! The recording that an incident keeps.

use std::path::{Path, PathBuf};

use heapr_incident::Store;

/// Returns the recording beside an incident's file, and tells its first sentence. `None`: the path
/// is no file of an incident.
///
/// # Errors
/// The incident cannot be read, or has no recording.
pub(crate) fn recording_of_incident(path: &Path) -> anyhow::Result<Option<PathBuf>> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(number) = name.strip_prefix("incident-").and_then(|rest| rest.strip_suffix(".json")) else {
        return Ok(None);
    };
    let Ok(number) = number.parse() else { return Ok(None) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let store = Store::open(folder)?;
    let incident = store.read(number)?;
    // The name in the file is not trusted.
    let recording = store.recording_path(number);
    anyhow::ensure!(
        recording.exists(),
        "incident {number} has no recording: `heapr incidents {number}` has its report"
    );
    if let Some(sentence) = incident.sentences.first() {
        tell!("heapr: {sentence}");
    }
    Ok(Some(recording))
}
