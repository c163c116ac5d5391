//! Folders for files that outlive a run.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// A folder that belongs to the user, and that only the user can write to. It is held by a
/// descriptor, so that files are made in this folder even if it is renamed.
#[derive(Debug)]
pub struct OwnFolder {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl OwnFolder {
    /// Opens the folder.
    ///
    /// # Errors
    /// The folder does not exist, is a symbolic link, belongs to another user, or others may write
    /// to it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
        let facts = rustix::fs::fstat(&descriptor)?;
        let me = rustix::process::geteuid().as_raw();
        if facts.st_uid != me || facts.st_mode & 0o022 != 0 {
            let what = format!(
                "the folder {} must belong to user {me} and be written by nobody else (user {}, mode {:o})",
                path.display(),
                facts.st_uid,
                facts.st_mode & 0o7777
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        Ok(Self { descriptor, path: path.to_owned() })
    }

    /// Makes the folder if it does not exist, private to this user, and opens it.
    ///
    /// # Errors
    /// The errors of [`OwnFolder::open`], or making the folder fails.
    pub fn made(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Self::open(path)
    }

    /// Path of the folder when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file of this user in the folder for reading. Files of other users are
    /// refused, because their contents are not trusted.
    ///
    /// # Errors
    /// The file does not exist, or is something else.
    pub fn regular(&self, name: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file: File = rustix::fs::openat(&self.descriptor, name, flags, Mode::empty())?.into();
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file of this user's"));
        }
        Ok(file)
    }
}

impl AsFd for OwnFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_folder_that_others_write_is_none_of_ours_and_links_in_ours_are_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("a/b");
        let folder = OwnFolder::made(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(base.path().join("secret"), "text").unwrap();
        std::os::unix::fs::symlink(base.path().join("secret"), path.join("link")).unwrap();
        rustix::fs::mknodat(&folder, "fifo", rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(folder.regular(Path::new("link")).is_err());
        assert!(folder.regular(Path::new("fifo")).is_err());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(OwnFolder::open(&path).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        std::os::unix::fs::symlink(&path, base.path().join("other")).unwrap();
        assert!(OwnFolder::made(&base.path().join("other")).is_err());
    }
}
