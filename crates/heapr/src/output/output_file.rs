//! A file that is being written: private, new, and under its name only when it is whole.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{Mode, OFlags, RenameFlags};

use crate::output::already_exists;

/// A file under another name until [`OutputFile::keep`]; dropped before, it is removed.
#[derive(Debug)]
pub(crate) struct OutputFile {
    file: File,
    partial: PathBuf,
    path: PathBuf,
    may_replace: bool,
    is_kept: bool,
}

impl OutputFile {
    /// Opens `.NAME.partial` beside `path`: mode 0600, made new, never through a symbolic link.
    pub(crate) fn create(path: &Path, may_replace: bool) -> anyhow::Result<Self> {
        let name = path.file_name().with_context(|| format!("{} names no file", path.display()))?;
        if !may_replace && path.symlink_metadata().is_ok() {
            return Err(already_exists(path));
        }
        let partial =
            path.with_file_name(format!(".{}.{}.partial", name.to_string_lossy(), std::process::id()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&partial, flags, Mode::RUSR | Mode::WUSR)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { file: file.into(), partial, path: path.to_owned(), may_replace, is_kept: false })
    }

    /// What it is called until then.
    pub(crate) fn partial_path(&self) -> &Path {
        &self.partial
    }

    /// Gives the file its name; where somebody has taken that meanwhile, the next that is free.
    pub(crate) fn keep_as(mut self, free_name: impl Fn() -> PathBuf) -> anyhow::Result<PathBuf> {
        if !self.may_replace {
            while self.path.symlink_metadata().is_ok() {
                let path = free_name();
                if path == self.path {
                    break;
                }
                self.path = path;
            }
        }
        self.keep()
    }

    /// Gives the file its name.
    pub(crate) fn keep(mut self) -> anyhow::Result<PathBuf> {
        let cannot = || format!("cannot write {}", self.path.display());
        self.file.sync_data().with_context(cannot)?;
        let (from, to) = (&self.partial, &self.path);
        if self.may_replace {
            std::fs::rename(from, to).with_context(cannot)?;
        } else {
            let flags = RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, flags) {
                // Some file systems know no such flag; a hard link replaces nothing either.
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                    std::fs::hard_link(from, to).with_context(cannot)?;
                    std::fs::remove_file(from).with_context(cannot)?;
                }
                other => other.with_context(cannot)?,
            }
        }
        self.is_kept = true;
        Ok(self.path.clone())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_taken_meanwhile_is_not_an_error_where_another_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["1", "2"].map(|name| folder.path().join(name));
        let file = OutputFile::create(&first, false).unwrap();
        std::fs::write(&first, "another's").unwrap();
        assert_eq!(file.keep_as(|| second.clone()).unwrap(), second);
        let file = OutputFile::create(&folder.path().join("3"), false).unwrap();
        std::fs::write(folder.path().join("3"), "another's").unwrap();
        assert!(file.keep_as(|| folder.path().join("3")).is_err(), "a file that is named is not renamed");
        assert_eq!(std::fs::read_to_string(&first).unwrap(), "another's");
    }
}
