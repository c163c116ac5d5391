//! Names of captured files in Node's form, `Heap.yyyymmdd.hhmmss.pid.tid.seq.heapsnapshot`, in
//! local time.

use std::path::{Path, PathBuf};

use anyhow::bail;
use jiff::Zoned;

/// Number of files that are to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileCount {
    One,
    Several,
}

/// Destination of captured files.
#[derive(Debug, Clone)]
pub(crate) enum Destination {
    /// Exactly one path.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Whether the file may be replaced.
        may_replace: bool,
    },
    /// Directory in which files have generated names.
    Directory(PathBuf),
}

impl Destination {
    /// Parses `-o`; the default is the working directory.
    pub(crate) fn new(output: Option<&Path>, may_replace: bool, count: FileCount) -> anyhow::Result<Self> {
        let Some(path) = output else { return Ok(Self::Directory(PathBuf::new())) };
        if path.is_dir() {
            return Ok(Self::Directory(path.to_owned()));
        }
        if count == FileCount::Several {
            bail!(
                "{} is no directory, and more than one file is to be written: name one with -o",
                path.display()
            );
        }
        Ok(Self::File { path: path.to_owned(), may_replace })
    }

    /// Returns the directory of the files.
    pub(crate) fn directory(&self) -> &Path {
        let directory = match self {
            Self::File { path, .. } => path.parent().unwrap_or(Path::new("")),
            Self::Directory(directory) => directory,
        };
        if directory.as_os_str().is_empty() { Path::new(".") } else { directory }
    }

    /// Returns the path for a new file, and whether it may replace one.
    pub(crate) fn path(&self, start: &str, pid: u32, thread_number: u32, extension: &str) -> (PathBuf, bool) {
        match self {
            Self::File { path, may_replace } => (path.clone(), *may_replace),
            Self::Directory(directory) => {
                let time = Zoned::now().strftime("%Y%m%d.%H%M%S").to_string();
                let path = (1..)
                    .map(|number| directory.join(name(start, &time, pid, thread_number, number, extension)))
                    .find(|path| path.symlink_metadata().is_err());
                (path.unwrap_or_default(), false)
            }
        }
    }
}

/// Returns the latest snapshot of a process in a directory, except those in `apart_from`.
pub(crate) fn latest_of(pid: u32, directory: &Path, apart_from: &[PathBuf]) -> Option<PathBuf> {
    let is_of_process = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parts: Vec<&str> = name.split('.').collect();
        matches!(parts[..], ["Heap", _, _, of_pid, _, _, "heapsnapshot"] if of_pid == pid.to_string())
    };
    let paths = std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    let other = |path: &PathBuf| !apart_from.iter().any(|apart| apart.file_name() == path.file_name());
    paths.filter(is_of_process).filter(other).max()
}

fn name(start: &str, time: &str, pid: u32, thread_number: u32, number: u32, extension: &str) -> String {
    format!("{start}.{time}.{pid}.{thread_number}.{number:03}.{extension}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_node() {
        let name = name("Heap", "20261121.040213", 11005, 0, 1, "heapsnapshot");
        assert_eq!(name, "Heap.20261121.040213.11005.0.001.heapsnapshot");
    }

    #[test]
    fn a_name_that_is_taken_is_not_given_again() {
        let directory = tempfile::tempdir().unwrap();
        let destination = Destination::new(Some(directory.path()), false, FileCount::Several).unwrap();
        let mut names = std::collections::HashSet::new();
        for _ in 0..5 {
            let (path, may_replace) = destination.path("Heap", 1, 0, "heapsnapshot");
            std::fs::write(&path, "").unwrap();
            assert!(!may_replace && names.insert(path));
        }
    }

    #[test]
    fn only_snapshots_of_the_process_are_its_latest() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            std::fs::write(directory.path().join(name), "").unwrap();
            directory.path().join(name)
        };
        assert_eq!(latest_of(7, directory.path(), &[]), None);
        let old = file("Heap.20260101.000000.7.0.001.heapsnapshot");
        let new = file("Heap.20260102.000000.7.0.001.heapsnapshot");
        file("Heap.20260103.000000.77.0.001.heapsnapshot");
        file("Heap.20260103.000000.7.0.001.heapprofile");
        assert_eq!(latest_of(7, directory.path(), &[]), Some(new.clone()));
        assert_eq!(latest_of(7, directory.path(), &[new]), Some(old));
    }

    #[test]
    fn one_name_for_many_files_is_refused() {
        assert!(Destination::new(Some(Path::new("x.heapsnapshot")), false, FileCount::Several).is_err());
        let one = Destination::new(Some(Path::new("x.heapsnapshot")), false, FileCount::One).unwrap();
        assert_eq!(one.directory(), Path::new("."));
    }
}
