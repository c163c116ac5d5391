//! [`NewFile`] with the words of the command line.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use heapr_files::{Existing, NewFile};

/// A file under another name until [`OutputFile::keep`]; dropped before, it is removed.
#[derive(Debug)]
pub(crate) struct OutputFile {
    file: NewFile,
    path: PathBuf,
}

/// What is said where a file cannot be made or named.
pub(super) fn refusal(path: &Path, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => already_exists(path),
        _ => anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
    }
}

/// What is said of a file that is not to be overwritten.
pub(crate) fn already_exists(path: &Path) -> anyhow::Error {
    anyhow::anyhow!("{} exists: name another file with -o, or overwrite it with -f", path.display())
}

impl OutputFile {
    /// See [`NewFile::create`].
    pub(crate) fn create(path: &Path, may_replace: bool) -> anyhow::Result<Self> {
        let file = NewFile::create(path, Existing::replaced_if(may_replace));
        Ok(Self { file: file.map_err(|error| refusal(path, error))?, path: path.to_owned() })
    }

    /// One that is being written already.
    pub(super) fn of(file: NewFile, path: &Path) -> Self {
        Self { file, path: path.to_owned() }
    }

    /// What it is called until then.
    pub(crate) fn partial_path(&self) -> PathBuf {
        self.file.partial_path()
    }

    /// The file, by a descriptor of its own.
    pub(crate) fn try_clone(&self) -> anyhow::Result<File> {
        self.file.try_clone().with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// See [`NewFile::set_mode`].
    pub(crate) fn set_mode(&self, mode: u32) -> anyhow::Result<()> {
        self.file.set_mode(mode).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Gives the file its name; where somebody has taken that meanwhile, the next that is free.
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
