//! The page with recorded answers in one file that needs no server (`docs/api.md`, section 9).

mod anonymous;
mod choices;
mod html;
mod key;
mod recorder;
mod request;
mod snapshots;
mod stories;
mod tables;
mod traces;

use std::time::Duration;

use serde_json::Value;

use crate::cancel::Cancel;
use crate::entry::Content;
use crate::error::Result;
use crate::files::Files;
use recorder::Recorder;

pub(crate) use request::page;

/// Size and contents of the page.
#[derive(Debug, Clone)]
pub struct StaticChoices {
    /// Largest size of the whole file, in bytes.
    pub page_bytes: u64,
    /// Whether source lines of the program's own frames are in the page. They are read from the
    /// files that the trace names.
    pub has_sources: bool,
    /// Whether folders, command lines, names of the machine and texts of a heap are left out.
    pub is_anonymous: bool,
    /// Notes of the author, shown above the views.
    pub notes: Vec<String>,
}

impl Default for StaticChoices {
    /// Size that most bug trackers accept.
    fn default() -> Self {
        Self { page_bytes: 16 << 20, has_sources: false, is_anonymous: false, notes: Vec::new() }
    }
}

/// Interval between two checks whether the files are open.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// View of one file with which the page opens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Number of the file.
    pub(crate) file: usize,
    /// Filter as in a request; null: without a filter.
    pub(crate) filter: Value,
    /// Part of the page's address behind `#`.
    pub(crate) address: String,
}

/// Builds the page with the answers about all files. `progress` is told what is recorded.
///
/// # Errors
/// Fails if a file cannot be opened, or if not even the page without answers fits.
pub fn write_static(
    files: &Files,
    wanted: &StaticChoices,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<u8>> {
    let notes = wanted.notes.iter().map(|note| format!("notes={}", encoded(note)));
    let address = notes.collect::<Vec<_>>().join("&");
    write_seen(files, wanted, Seen { address, ..Seen::default() }, progress, &Cancel::default())
}

/// Builds the page as [`write_static`] does. For the view that is shown first, answers are recorded
/// with its filter, too.
pub(crate) fn write_seen(
    files: &Files,
    wanted: &StaticChoices,
    seen: Seen,
    progress: &mut dyn FnMut(&str),
    cancel: &Cancel,
) -> Result<Vec<u8>> {
    wait(files)?;
    let entries = files.entries();
    let is_filtered = seen.filter.as_object().is_some_and(|filter| !filter.is_empty());
    let file = seen.file;
    let mut recorder = Recorder::new(files, wanted, seen, progress)?;
    if is_filtered && let Some(Content::Trace(trace)) = entries.get(file).map(|entry| entry.content()) {
        recorder.filters_as_seen(true);
        for step in 0..traces::STEPS - 1 {
            cancel.check()?;
            traces::record(&mut recorder, file, &trace, step)?;
        }
        recorder.filters_as_seen(false);
    }
    // The main answers of all files come before the minor ones of the first.
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

/// Encodes a text as a value of the page's address.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
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
