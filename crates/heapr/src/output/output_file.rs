//! [`NewFile`] with the command line's error messages.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use heapr_files::{Existing, NewFile};

/// File under a temporary name until [`OutputFile::keep`]; removed if dropped before.
#[derive(Debug)]
pub(crate) struct OutputFile {
    file: NewFile,
    path: PathBuf,
}

/// Error for a file that cannot be created or named.
pub(super) fn refusal(path: &Path, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => already_exists(path),
        _ => anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
    }
}

/// Error for a file that must not be overwritten.
pub(crate) fn already_exists(path: &Path) -> anyhow::Error {
    anyhow::anyhow!("{} exists: name another file with -o, or overwrite it with -f", path.display())
}

impl OutputFile {
    /// Creates the file by [`NewFile::create`].
    pub(crate) fn create(path: &Path, may_replace: bool) -> anyhow::Result<Self> {
        let file = NewFile::create(path, Existing::replaced_if(may_replace));
        Ok(Self { file: file.map_err(|error| refusal(path, error))?, path: path.to_owned() })
    }

    /// Creates the file by [`NewFile::create_unnamed`].
    pub(crate) fn create_unnamed(path: &Path, may_replace: bool) -> anyhow::Result<Self> {
        let file = NewFile::create_unnamed(path, Existing::replaced_if(may_replace));
        Ok(Self { file: file.map_err(|error| refusal(path, error))?, path: path.to_owned() })
    }

    /// Wraps a file that is being written already.
    pub(super) fn of(file: NewFile, path: &Path) -> Self {
        Self { file, path: path.to_owned() }
    }

    /// Temporary path of the file.
    pub(crate) fn partial_path(&self) -> PathBuf {
        self.file.partial_path()
    }

    /// Returns the file, by a duplicated descriptor.
    pub(crate) fn try_clone(&self) -> anyhow::Result<File> {
        self.file.try_clone().with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Sets the mode by [`NewFile::set_mode`].
    pub(crate) fn set_mode(&self, mode: u32) -> anyhow::Result<()> {
        self.file.set_mode(mode).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Gives the file its name. If that exists by now, it gets the next one of `free_name`.
    pub(crate) fn keep_as(self, free_name: impl Fn() -> PathBuf) -> anyhow::Result<PathBuf> {
        self.file.keep_as(free_name).map_err(|error| refusal(&self.path, error))
    }

    /// Gives the file its name.
    pub(crate) fn keep(self) -> anyhow::Result<PathBuf> {
        self.file.keep().map_err(|error| refusal(&self.path, error))
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
