//! Names and replaces the files of a session with files in turn.
//!
//! ```text
//! web.000007.heapr   closed     the oldest is removed when there are too many
//! web.000008.heapr   closed
//! web.heapr          present file; gets its number when it is closed
//! ```
//!
//! Numbers are used instead of times: they continue where an earlier recorder stopped, even if the
//! clock was changed.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Interval of files in turn, and how many of them stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// Time after which the next file is begun.
    pub interval: Duration,
    /// Largest number of closed files; the oldest is removed for one more.
    pub keep_count: u32,
}

/// Suffix of a file that was begun and is not in its place yet.
const NEXT_SUFFIX: &str = ".next";
/// First bytes of heapr's files.
const MAGIC: [u8; 8] = *b"HEAPRTRC";

/// Names of a session's files.
#[derive(Debug)]
pub(crate) struct FileSeries {
    output: PathBuf,
    keep_count: usize,
}

impl FileSeries {
    pub(crate) fn new(output: &Path, keep_count: u32) -> Self {
        Self { output: output.to_owned(), keep_count: keep_count as usize }
    }

    /// Path of the next file until the present one has been renamed.
    pub(crate) fn next_path(&self) -> PathBuf {
        let mut name = self.output.clone().into_os_string();
        name.push(NEXT_SUFFIX);
        name.into()
    }

    /// Returns `web.` and `.heapr` for `web.heapr`.
    fn parts(&self) -> (OsString, OsString) {
        let mut stem = self.output.file_stem().unwrap_or_default().to_owned();
        stem.push(".");
        let mut ending = OsString::from(".");
        ending.push(self.output.extension().unwrap_or(OsStr::new("heapr")));
        (stem, ending)
    }

    /// Returns the closed files with their numbers, the oldest first.
    pub(crate) fn closed(&self) -> Vec<(u64, PathBuf)> {
        use std::os::unix::ffi::OsStrExt as _;
        let (stem, ending) = self.parts();
        let folder = self.output.parent().filter(|folder| !folder.as_os_str().is_empty());
        let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
        let mut found: Vec<(u64, PathBuf)> = entries
            .filter_map(|entry| {
                let name = entry.file_name();
                let digits =
                    name.as_bytes().strip_prefix(stem.as_bytes())?.strip_suffix(ending.as_bytes())?;
                let is_number = digits.len() >= 6 && digits.iter().all(u8::is_ascii_digit);
                let number = std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()?;
                entry.file_type().is_ok_and(|kind| kind.is_file()).then(|| (number, entry.path()))
            })
            .collect();
        found.sort_unstable();
        found
    }

    /// Closes the present file, if it exists, and removes closed files that are too old.
    pub(crate) fn close_present(&self) -> std::io::Result<()> {
        let closed = self.closed();
        if self.output.symlink_metadata().is_ok_and(|there| there.is_file()) {
            let number = closed.last().map_or(1, |(number, _)| number.saturating_add(1));
            let (mut name, ending) = self.parts();
            name.push(format!("{number:06}"));
            name.push(ending);
            std::fs::rename(&self.output, self.output.with_file_name(name))?;
        }
        let closed = self.closed();
        let too_old = closed.len().saturating_sub(self.keep_count);
        for (_, path) in closed.iter().take(too_old).filter(|(_, path)| is_trace(path)) {
            std::fs::remove_file(path)?;
        }
        Ok(())
    }

    /// Makes the next file the present one.
    pub(crate) fn put_next_in_place(&self) -> std::io::Result<()> {
        self.close_present()?;
        std::fs::rename(self.next_path(), &self.output)
    }

    /// Whether the present file's path is taken by something that is not a trace.
    pub(crate) fn is_taken_by_another(&self) -> bool {
        self.output.symlink_metadata().is_ok_and(|there| !there.is_file() || !is_trace(&self.output))
    }
}

/// Returns the closed files of a session that writes `output`, with their numbers, the oldest
/// first.
#[must_use]
pub fn closed_files(output: &Path) -> Vec<(u64, PathBuf)> {
    FileSeries::new(output, 0).closed()
}

/// Whether a file is a trace; only these are moved or removed.
fn is_trace(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    let read = heapr_files::regular(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == MAGIC
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_goes_and_numbers_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let series = FileSeries::new(&path("web.heapr"), 2);
        for _ in 0..4 {
            std::fs::write(series.next_path(), MAGIC).unwrap();
            series.put_next_in_place().unwrap();
        }
        assert_eq!(names(folder.path()), ["web.000002.heapr", "web.000003.heapr", "web.heapr"]);
        // Another recorder, after a restart.
        FileSeries::new(&path("web.heapr"), 2).close_present().unwrap();
        assert_eq!(names(folder.path()), ["web.000003.heapr", "web.000004.heapr"]);
    }

    #[test]
    fn what_is_no_trace_is_neither_moved_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("web.000001.heapr"), "a letter").unwrap();
        std::fs::write(path("web.heapr"), MAGIC).unwrap();
        let series = FileSeries::new(&path("web.heapr"), 1);
        assert!(!series.is_taken_by_another());
        series.close_present().unwrap();
        assert_eq!(names(folder.path()), ["web.000001.heapr", "web.000002.heapr"], "the first is no trace");
        std::fs::write(path("web.heapr"), "a letter").unwrap();
        assert!(series.is_taken_by_another());
    }
}
