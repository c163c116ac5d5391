//! The page with recorded answers: one file that needs no server (`docs/api.md`, section 8).

mod html;
mod key;
mod recorder;
mod snapshots;
mod traces;

use std::time::Duration;

use crate::entry::Content;
use crate::error::Result;
use crate::files::Files;
use recorder::Recorder;

/// How large a page may become.
#[derive(Debug, Clone, Copy)]
pub struct StaticLimits {
    /// The whole file.
    pub page_bytes: u64,
}

impl Default for StaticLimits {
    /// What most trackers of bugs take.
    fn default() -> Self {
        Self { page_bytes: 16 << 20 }
    }
}

/// Between two looks whether the files are open.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The page with the answers about all files. `progress` is told what is recorded.
///
/// # Errors
/// A file cannot be opened, or not even the least fits.
pub fn write_static(files: &Files, limits: StaticLimits, progress: &mut dyn FnMut(&str)) -> Result<Vec<u8>> {
    wait(files)?;
    let mut recorder = Recorder::new(files, limits.page_bytes, progress)?;
    // The greatest questions of all files come before the smaller ones of the first.
    for step in 0..traces::STEPS {
        for (number, entry) in files.entries.iter().enumerate() {
            match entry.content() {
                Content::Trace(trace) => traces::record(&mut recorder, number, &trace, step)?,
                Content::Snapshot(snapshot) => snapshots::record(&mut recorder, number, &snapshot, step)?,
                _ => {}
            }
        }
        if step == 0 {
            traces::record_pairs(&mut recorder)?;
            snapshots::record_pairs(&mut recorder)?;
        }
    }
    recorder.finish()
}

/// Waits until all files are open.
fn wait(files: &Files) -> Result<()> {
    for entry in &files.entries {
        loop {
            match entry.content() {
                Content::Opening => std::thread::sleep(LOOK_INTERVAL),
                Content::Failed { message, offset } => return Err(entry.unusable(message, offset)),
                _ => break,
            }
        }
    }
    Ok(())
}
