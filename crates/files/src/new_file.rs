//! A file that is being written: private, new, and under its name only when it is complete.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::OwnFolder;

/// Treatment of an existing file of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// The existing file stays, and making a new one is an error.
    Kept,
    /// The new file replaces it; a symbolic link itself is replaced, not its target.
    Replaced,
}

impl Existing {
    /// The treatment that an option `--force` selects.
    #[must_use]
    pub fn replaced_if(may_replace: bool) -> Self {
        if may_replace { Self::Replaced } else { Self::Kept }
    }
}

/// A file under a temporary name, or under none, until [`NewFile::keep`]. It is removed if dropped
/// before.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    folder: OwnedFd,
    /// Temporary name; `None` of a file without a name.
    partial: Option<PathBuf>,
    path: PathBuf,
    existing: Existing,
    is_kept: bool,
}

/// Largest number of temporary names that are tried. Names are in use by files that the process is
/// writing, or were left by an earlier process of the same id.
const TRIES: u32 = 64;

impl NewFile {
    /// Opens `.NAME.NUMBER.partial` beside `path`: mode 0600, new, never through a symbolic link.
    ///
    /// # Errors
    /// The operating system's error; `path` names no file; or a file exists and is to be kept.
    pub fn create(path: &Path, existing: Existing) -> io::Result<Self> {
        if existing == Existing::Kept && path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if path.metadata().is_ok_and(|there| there.is_dir()) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder, flags, Mode::empty())?;
        Self::in_folder(folder, path.to_owned(), existing)
    }

    /// Variant of [`NewFile::create`] for files of no use until they are complete. Where the file
    /// system knows files without names, nothing is left even if the process is killed.
    ///
    /// # Errors
    /// The errors of [`NewFile::create`].
    pub fn create_unnamed(path: &Path, existing: Existing) -> io::Result<Self> {
        let mut new = Self::create(path, existing)?;
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::openat(&new.folder, ".", flags, Mode::RUSR | Mode::WUSR) {
            new.remove_partial();
            new.file = file.into();
        }
        Ok(new)
    }

    /// Variant of [`NewFile::create`] in a checked folder; replaces an existing file.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn create_in(folder: &OwnFolder, name: &Path) -> io::Result<Self> {
        let path = folder.path().join(name);
        Self::in_folder(folder.as_fd().try_clone_to_owned()?, path, Existing::Replaced)
    }

    fn in_folder(folder: OwnedFd, path: PathBuf, existing: Existing) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = with_free_name(&path, |partial| {
            rustix::fs::openat(&folder, partial, flags, Mode::RUSR | Mode::WUSR)
        });
        let (file, partial) = made?;
        Ok(Self { file: file.into(), folder, partial: Some(partial), path, existing, is_kept: false })
    }

    /// Path of the file before [`NewFile::keep`]: the temporary one, or the later one without a
    /// name.
    #[must_use]
    pub fn partial_path(&self) -> PathBuf {
        self.partial.as_ref().map_or_else(|| self.path.clone(), |partial| self.path.with_file_name(partial))
    }

    /// The file, through a duplicated descriptor.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn try_clone(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Sets the file's mode, whatever the umask.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(mode))
    }

    /// Gives the file its name; if that is taken by now, the next free one.
    ///
    /// # Errors
    /// The errors of [`NewFile::keep`].
    pub fn keep_as(mut self, free_name: impl Fn() -> PathBuf) -> io::Result<PathBuf> {
        if self.existing == Existing::Kept {
            while self.path.symlink_metadata().is_ok() {
                let path = free_name();
                if path == self.path || path.parent() != self.path.parent() {
                    break;
                }
                self.path = path;
            }
        }
        self.keep()
    }

    /// Writes the data to the disk and gives the file its name.
    ///
    /// # Errors
    /// The operating system's error; or the name is taken by now.
    pub fn keep(self) -> io::Result<PathBuf> {
        self.file.sync_data()?;
        self.rename()
    }

    /// Variant of [`NewFile::keep`] for files that can be made again: after a loss of power the
    /// file may be empty.
    ///
    /// # Errors
    /// The errors of [`NewFile::keep`].
    pub fn keep_unsynced(self) -> io::Result<PathBuf> {
        self.rename()
    }

    fn rename(mut self) -> io::Result<PathBuf> {
        let Some(from) = self.partial.clone().map_or_else(|| self.link(), |partial| Ok(Some(partial)))?
        else {
            self.is_kept = true;
            return Ok(self.path.clone());
        };
        let name = self.path.file_name().unwrap_or_default();
        let (folder, from) = (self.folder.as_fd(), from.as_path());
        match self.existing {
            Existing::Replaced => rustix::fs::renameat(folder, from, folder, name)?,
            Existing::Kept => {
                match rustix::fs::renameat_with(folder, from, folder, name, RenameFlags::NOREPLACE) {
                    // Some file systems lack this flag; a hard link never replaces a file either.
                    Err(Errno::INVAL | Errno::NOSYS) => {
                        rustix::fs::linkat(folder, from, folder, name, AtFlags::empty())?;
                        rustix::fs::unlinkat(folder, from, AtFlags::empty())?;
                    }
                    other => other?,
                }
            }
        }
        self.is_kept = true;
        Ok(self.path.clone())
    }

    /// Gives a file without a name its own one, where that must be free. Else a temporary one,
    /// which is returned.
    fn link(&mut self) -> io::Result<Option<PathBuf>> {
        let of_file = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let link = |name: &Path| {
            rustix::fs::linkat(rustix::fs::CWD, &*of_file, &self.folder, name, AtFlags::SYMLINK_FOLLOW)
        };
        if self.existing == Existing::Kept {
            link(Path::new(self.path.file_name().unwrap_or_default()))?;
            return Ok(None);
        }
        let ((), partial) = with_free_name(&self.path, link)?;
        self.partial = Some(partial);
        Ok(self.partial.clone())
    }

    fn remove_partial(&mut self) {
        if let Some(partial) = self.partial.take() {
            let _ = rustix::fs::unlinkat(&self.folder, partial, AtFlags::empty());
        }
    }
}

/// Makes something under a free temporary name, which is returned, too.
fn with_free_name<T>(
    path: &Path,
    mut make: impl FnMut(&Path) -> rustix::io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidFilename, "the path names no file"));
    };
    // (Names have at most 255 bytes.)
    let start: String = name.to_string_lossy().chars().take(50).collect();
    for _ in 0..TRIES {
        let number = NEXT.fetch_add(1, Relaxed);
        let partial = PathBuf::from(format!(".{start}.{}-{number}.partial", std::process::id()));
        match make(&partial) {
            Err(Errno::EXIST) => {}
            other => return Ok((other?, partial)),
        }
    }
    Err(Errno::EXIST.into())
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_kept {
            self.remove_partial();
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
        let file = NewFile::create(&first, Existing::Kept).unwrap();
        std::fs::write(&first, "another's").unwrap();
        assert_eq!(file.keep_as(|| second.clone()).unwrap(), second);
        let file = NewFile::create(&folder.path().join("3"), Existing::Kept).unwrap();
        std::fs::write(folder.path().join("3"), "another's").unwrap();
        assert!(file.keep_as(|| folder.path().join("3")).is_err(), "a file that is named is not renamed");
        assert_eq!(std::fs::read_to_string(&first).unwrap(), "another's");
    }

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let [mine, link] = ["mine", "link"].map(|name| folder.path().join(name));
        std::fs::write(&mine, "mine").unwrap();
        std::os::unix::fs::symlink(&mine, &link).unwrap();
        assert!(NewFile::create(&link, Existing::Kept).is_err());
        let mut file = NewFile::create(&link, Existing::Replaced).unwrap();
        file.write_all(b"new").unwrap();
        file.keep().unwrap();
        assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
        assert!(link.symlink_metadata().unwrap().is_file());
        assert_eq!(link.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
    }

    #[test]
    fn a_file_without_a_name_shows_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let names = || std::fs::read_dir(folder.path()).unwrap().count();
        for (existing, text) in [(Existing::Kept, "new"), (Existing::Replaced, "newer")] {
            let before = names();
            drop(NewFile::create_unnamed(&path, Existing::Replaced).unwrap());
            let mut file = NewFile::create_unnamed(&path, existing).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            // (A file system may lack files without names.)
            assert_eq!(names() - before, usize::from(file.partial.is_some()));
            file.keep().unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(names(), 1);
        }
        assert!(NewFile::create_unnamed(&path, Existing::Kept).is_err());
        let file = NewFile::create_unnamed(&folder.path().join("taken"), Existing::Kept).unwrap();
        std::fs::write(folder.path().join("taken"), "another's").unwrap();
        assert_eq!(file.keep().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn names_that_are_taken_are_passed_over_and_what_is_not_kept_goes() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("file"), folder.path().join("other"));
        std::fs::write(&other, "other").unwrap();
        let probe = NewFile::create(&path, Existing::Kept).unwrap();
        let number: u32 = probe
            .partial
            .as_ref()
            .unwrap()
            .to_string_lossy()
            .split(['-', '.'])
            .nth(3)
            .unwrap()
            .parse()
            .unwrap();
        for number in number + 1..number + 20 {
            let name = format!(".file.{}-{number}.partial", std::process::id());
            std::os::unix::fs::symlink(&other, folder.path().join(name)).unwrap();
        }
        drop(NewFile::create(&path, Existing::Kept).unwrap());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "other");
        assert!(!path.exists());
    }
}
