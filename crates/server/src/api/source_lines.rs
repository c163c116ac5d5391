//! Lines of the source files that a trace's debug information names.
//!
//! A trace may come from anywhere, and so may its paths. Only regular files by absolute paths are
//! read, and only text is shown. A request reads each file once, and some megabytes at most.

use std::collections::HashMap;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::Serialize;

/// Largest source file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Largest number of bytes read for a request.
const REQUEST_BYTES_MAX: u64 = 64 << 20;
/// Largest number of characters of a line that are shown.
const LINE_CHARS_MAX: usize = 400;

/// A line with its neighbours.
#[derive(Debug, Serialize)]
pub(super) struct SourceJson {
    first_line: u32,
    lines: Vec<String>,
    is_newer: bool,
}

/// A file that was read.
#[derive(Debug)]
struct SourceText {
    text: String,
    modified_unix_ns: i128,
}

/// Source files of a request.
#[derive(Debug)]
pub(super) struct SourceFiles {
    /// Time of the recording: a file that is newer may have other lines.
    recorded_unix_ns: i128,
    /// Texts by path; `None`: the file is missing or not text.
    texts: HashMap<String, Option<SourceText>>,
    left_bytes: u64,
}

impl SourceFiles {
    pub(super) fn new(recorded_unix_ns: i128) -> Self {
        Self { recorded_unix_ns, texts: HashMap::new(), left_bytes: REQUEST_BYTES_MAX }
    }

    /// The lines around `line`, if the file has it.
    pub(super) fn lines(&mut self, path: &str, line: u32, around: u32) -> Option<SourceJson> {
        if !self.texts.contains_key(path) {
            let most = self.left_bytes.min(FILE_BYTES_MAX);
            let read = read_text(Path::new(path), most);
            self.left_bytes -= read.as_ref().map_or(0, |read| (read.text.len() as u64).min(self.left_bytes));
            self.texts.insert(path.to_owned(), read);
        }
        let SourceText { text, modified_unix_ns } = self.texts.get(path)?.as_ref()?;
        let first_line = line.saturating_sub(around).max(1);
        let count = u64::from(line - first_line.min(line)) + u64::from(around) + 1;
        let lines: Vec<String> = text
            .lines()
            .skip(first_line as usize - 1)
            .take(count as usize)
            .map(|line| line.chars().take(LINE_CHARS_MAX).collect())
            .collect();
        // A file without the line is a different one.
        let is_there = line >= first_line && ((line - first_line) as usize) < lines.len();
        let is_newer = *modified_unix_ns > self.recorded_unix_ns;
        is_there.then_some(SourceJson { first_line, lines, is_newer })
    }
}

/// Reads a text of at most `most_bytes` by an absolute path.
fn read_text(path: &Path, most_bytes: u64) -> Option<SourceText> {
    if !path.is_absolute() {
        return None;
    }
    let file = heapr_files::regular(path).ok()?;
    let metadata = file.metadata().ok()?;
    if metadata.len() > most_bytes {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most_bytes).read_to_end(&mut bytes).ok()?;
    if bytes.contains(&0) {
        return None;
    }
    let modified_unix_ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    Some(SourceText { text: String::from_utf8_lossy(&bytes).into_owned(), modified_unix_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.c");
        std::fs::write(&path, bytes).unwrap();
        let path = path.display().to_string();
        (folder, path)
    }

    #[test]
    fn lines_around_one_are_shown_as_far_as_they_are_there() {
        let (_folder, path) = file(b"one\ntwo\nthree\nfour\n");
        let mut files = SourceFiles::new(0);
        let shown = files.lines(&path, 2, 5).unwrap();
        assert_eq!((shown.first_line, shown.lines.len(), shown.is_newer), (1, 4, true));
        assert_eq!(files.lines(&path, 3, 1).unwrap().lines, ["two", "three", "four"]);
        assert_eq!(files.lines(&path, 4, 0).unwrap().lines, ["four"]);
        for line in [0, 5, u32::MAX] {
            assert!(files.lines(&path, line, 3).is_none(), "line {line}");
        }
        assert!(files.lines(&path, 1, u32::MAX).is_some());
    }

    #[test]
    fn only_plain_text_by_absolute_paths_is_read() {
        let (_folder, path) = file(b"a\0b\n");
        let mut files = SourceFiles::new(0);
        for path in [path.as_str(), "a.c", "/dev/zero", "/", "/nowhere/a.c"] {
            assert!(files.lines(path, 1, 3).is_none(), "{path}");
        }
    }

    #[test]
    fn a_request_reads_only_so_much() {
        let (_folder, path) = file(b"one\n");
        let mut files = SourceFiles::new(0);
        files.left_bytes = 3;
        assert!(files.lines(&path, 1, 3).is_none());
    }
}
