//! The page with recorded answers: one file that needs no server (`docs/api.md`, section 9).

mod choices;
mod html;
mod key;
mod recorder;
mod request;
mod snapshots;
mod traces;

use std::time::Duration;

use serde_json::Value;

use crate::cancel::Cancel;
use crate::entry::Content;
use crate::error::Result;
use crate::files::Files;
use recorder::Recorder;

pub(crate) use request::page;

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

/// What is seen of one file: its page opens with that.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Number of the file.
    pub(crate) file: usize,
    /// As a request has it; null: none.
    pub(crate) filter: Value,
    /// What stands behind `#` in the page's address.
    pub(crate) address: String,
}

/// The page with the answers about all files. `progress` is told what is recorded.
///
/// # Errors
/// A file cannot be opened, or not even the least fits.
pub fn write_static(files: &Files, limits: StaticLimits, progress: &mut dyn FnMut(&str)) -> Result<Vec<u8>> {
    write_seen(files, limits, Seen::default(), progress, &Cancel::default())
}

/// As [`write_static`], with what is seen first: of it the same is recorded as of the whole.
pub(crate) fn write_seen(
    files: &Files,
    limits: StaticLimits,
    seen: Seen,
    progress: &mut dyn FnMut(&str),
    cancel: &Cancel,
) -> Result<Vec<u8>> {
    wait(files)?;
    let entries = files.entries();
    let is_filtered = seen.filter.as_object().is_some_and(|filter| !filter.is_empty());
    let file = seen.file;
    let mut recorder = Recorder::new(files, limits.page_bytes, seen, progress)?;
    if is_filtered && let Some(Content::Trace(trace)) = entries.get(file).map(|entry| entry.content()) {
        recorder.filters_as_seen(true);
        for step in 0..traces::STEPS - 1 {
            cancel.check()?;
            traces::record(&mut recorder, file, &trace, step)?;
        }
        recorder.filters_as_seen(false);
    }
    // The greatest questions of all files come before the smaller ones of the first.
    for step in 0..traces::STEPS {
        for (number, entry) in entries.iter().enumerate() {
            cancel.check()?;
            match entry.content() {
                Content::Trace(trace) => traces::record(&mut recorder, number, &trace, step)?,
                Content::Snapshot(snapshot) => snapshots::record(&mut recorder, number, &snapshot, step)?,
                Content::Resident(_) if step == 0 => traces::resident(&mut recorder, number)?,
                _ => {}
            }
        }
        if step == 0 {
            traces::record_pairs(&mut recorder)?;
            snapshots::record_pairs(&mut recorder)?;
        }
    }
    for (number, entry) in entries.iter().enumerate() {
        cancel.check()?;
        if matches!(entry.content(), Content::Trace(_)) {
            choices::record(&mut recorder, number)?;
        }
    }
    recorder.finish()
}

/// Waits until all files are open.
fn wait(files: &Files) -> Result<()> {
    for entry in &files.entries() {
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
