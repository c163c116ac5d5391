//! The recording of a watch, with the files of modules that its recorder holds open. A container's
//! programs have no path in this namespace, and are gone once it has died.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use heapr_symbols::{ModuleKey, build_id_of};
use heapr_trace::Trace;

/// Recording of a watch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recorded<'a> {
    pub(super) path: &'a Path,
    /// Process that writes it; `None`: none does.
    pub(super) recorder_pid: Option<u32>,
}

impl Recorded<'_> {
    /// Files of the recording's modules that their paths do not lead to.
    pub(super) fn module_files(&self, trace: &Trace) -> HashMap<ModuleKey, PathBuf> {
        let Some(pid) = self.recorder_pid else { return HashMap::new() };
        let held = held_files(&PathBuf::from(format!("/proc/{pid}/fd")));
        let is_elsewhere = |key: &ModuleKey| {
            !key.build_id.is_empty() && build_id_of(&key.path).as_ref() != Some(&key.build_id)
        };
        let keys = trace
            .modules()
            .iter()
            .map(|module| ModuleKey { path: PathBuf::from(&module.path), build_id: module.build_id.clone() });
        let found = keys.filter(is_elsewhere).filter_map(|key| {
            let is_it = |file: &&(PathBuf, PathBuf)| {
                file_name(&file.1) == file_name(&key.path)
                    && build_id_of(&file.0).as_ref() == Some(&key.build_id)
            };
            let path = held.iter().find(is_it)?.0.clone();
            Some((key, path))
        });
        found.collect()
    }
}

/// Regular files that a process holds open: path under its descriptors, and the file's own path in
/// the namespace that it was opened in.
fn held_files(descriptors: &Path) -> Vec<(PathBuf, PathBuf)> {
    let entries = std::fs::read_dir(descriptors).into_iter().flatten().flatten();
    let file = |entry: std::fs::DirEntry| {
        let (path, target) = (entry.path(), std::fs::read_link(entry.path()).ok()?);
        (target.is_absolute() && path.metadata().is_ok_and(|facts| facts.is_file())).then_some((path, target))
    };
    entries.filter_map(file).collect()
}

/// Name of a file by its path. The kernel adds a word to the path of one that was deleted.
fn file_name(path: &Path) -> Option<&[u8]> {
    let name = path.file_name()?.as_bytes();
    Some(name.strip_suffix(b" (deleted)").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_is_found_by_its_descriptor_also_without_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::copy("/proc/self/exe", &path).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let held = held_files(Path::new("/proc/self/fd"));
        let (descriptor, _) = held.iter().find(|(_, own)| *own == path).unwrap();
        let id = build_id_of(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(build_id_of(descriptor), id);
        let held = held_files(Path::new("/proc/self/fd"));
        assert!(held.iter().any(|(own, target)| own == descriptor && file_name(target) == file_name(&path)));
        drop(file);
    }
}
