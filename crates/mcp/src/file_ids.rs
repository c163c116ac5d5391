//! Short ids for files in answers: `t1` for a trace, `s2` for a snapshot.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::{Error, Result};

/// Files that were recorded or named, by id.
#[derive(Debug, Default)]
pub(crate) struct FileIds {
    paths: Mutex<Vec<PathBuf>>,
}

impl FileIds {
    /// Id of a file, equal on each call.
    pub(crate) fn id(&self, path: &Path) -> String {
        let mut paths = self.paths.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let index = paths.iter().position(|known| known == path).unwrap_or_else(|| {
            paths.push(path.to_owned());
            paths.len() - 1
        });
        let is_trace = path.extension().is_some_and(|extension| extension == "heapr");
        format!("{}{}", if is_trace { 't' } else { 's' }, index + 1)
    }

    /// Absolute path of the file that an id or a path names; it cannot be mistaken for an option.
    pub(crate) fn path(&self, name: &'static str, word: &str) -> Result<PathBuf> {
        let wrong = |reason: String| Error::Argument { name, reason };
        let digits = word.strip_prefix(['t', 's']).unwrap_or_default();
        if let Ok(number) = digits.parse::<usize>() {
            let paths = self.paths.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let known = number.checked_sub(1).and_then(|index| paths.get(index)).cloned();
            return known.ok_or_else(|| wrong(format!("no file has the id {word}")));
        }
        let path = std::path::absolute(word).and_then(|path| path.canonicalize());
        let path = path.map_err(|error| wrong(format!("{word}: {error}")))?;
        match path.is_file() {
            true => Ok(path),
            // A device has no end, and a pipe may never have a writer.
            false => Err(wrong(format!("{word} is a folder, a device or a pipe: name a regular file"))),
        }
    }
}

#[test]
fn an_id_stays_and_an_unknown_one_is_refused() {
    let ids = FileIds::default();
    let folder = tempfile::tempdir().unwrap();
    let (trace, snapshot) = (folder.path().join("a.heapr"), folder.path().join("a.heapsnapshot"));
    for (path, id) in [(&trace, "t1"), (&snapshot, "s2"), (&trace, "t1")] {
        assert_eq!(ids.id(path), id);
        assert_eq!(&ids.path("file", id).unwrap(), path);
    }
    for word in ["t9", "t0", "--output=x", "", "no/such/file", "/dev/zero", "/tmp"] {
        assert!(ids.path("file", word).is_err(), "{word}");
    }
}
