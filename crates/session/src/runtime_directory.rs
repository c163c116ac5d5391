//! Directory of the sockets and locks of this user's sessions.
//!
//! | tried in this order | if |
//! |---|---|
//! | `$HEAPR_RUNTIME_DIR/heapr` | the variable is set; no other is tried then, nor looked into |
//! | `$XDG_RUNTIME_DIR/heapr` | the variable is set and that directory is this user's |
//! | `/run/heapr` | root |
//! | `/run/user/UID/heapr` | not root (the variable is missing after `su`) |
//! | `/tmp/heapr-UID` | always |
//!
//! A directory is used only if it is not a symbolic link, belongs to this user, and only this user
//! may enter it (0700). The directory above it must not be changeable by another user. Everything
//! in it is reached through its descriptor, so that it cannot be exchanged between check and use.

use std::fs::{self, DirBuilder};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::Error;

/// Opened and checked directory.
#[derive(Debug)]
pub(crate) struct RuntimeDirectory {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl RuntimeDirectory {
    /// Opens the first usable directory, which is created if it does not exist.
    ///
    /// # Errors
    /// No directory is usable; the error has the reason for each.
    pub(crate) fn first() -> Result<Self, Error> {
        let mut reasons = Vec::new();
        for path in candidates() {
            match Self::make(&path) {
                Ok(directory) => return Ok(directory),
                Err(reason) => reasons.push(format!("{}: {reason}", path.display())),
            }
        }
        Err(Error::NoRuntimeDirectory { reasons: reasons.join("; ") })
    }

    /// Opens all existing usable directories: a session may have been started with another
    /// environment.
    pub(crate) fn existing() -> Vec<Self> {
        candidates().iter().filter_map(|path| Self::open(path).ok()).collect()
    }

    fn make(path: &Path) -> Result<Self, String> {
        check_place(path)?;
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.to_string()),
            _ => Self::open(path),
        }
    }

    fn open(path: &Path) -> Result<Self, String> {
        check_place(path)?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| format!("{error} (a symbolic link is not followed)"))?;
        let facts = rustix::fs::fstat(&descriptor).map_err(|error| error.to_string())?;
        if facts.st_uid != rustix::process::geteuid().as_raw() {
            return Err(format!("it belongs to user {}", facts.st_uid));
        }
        if facts.st_mode & 0o077 != 0 {
            return Err(format!("others may enter it (mode {:o}, not 700)", facts.st_mode & 0o777));
        }
        Ok(Self { path: path.to_owned(), descriptor })
    }

    /// Path, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Descriptor of the directory.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// Path to an entry through the descriptor: short enough for any socket, and of this very
    /// directory.
    pub(crate) fn entry(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.descriptor.as_raw_fd()))
    }

    /// Returns the names of the entries that end in `ending`, without it, sorted.
    pub(crate) fn names(&self, ending: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.entry("")) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect();
        names.sort();
        names
    }
}

fn check_place(path: &Path) -> Result<(), String> {
    match path.parent() {
        Some(parent) if path.is_absolute() => check_parent(parent),
        _ => Err("it is not an absolute path".to_owned()),
    }
}

/// Checks that only this user and root may rename entries of the directory above ours.
pub(crate) fn check_parent(parent: &Path) -> Result<(), String> {
    let facts = fs::metadata(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    let me = rustix::process::geteuid().as_raw();
    if facts.uid() != me && facts.uid() != 0 {
        return Err(format!("{} belongs to user {}", parent.display(), facts.uid()));
    }
    let is_open_to_others = facts.mode() & 0o022 != 0;
    let is_sticky = facts.mode() & 0o1000 != 0;
    if is_open_to_others && !is_sticky {
        return Err(format!("others may change {}", parent.display()));
    }
    Ok(())
}

fn candidates() -> Vec<PathBuf> {
    if let Some(base) = std::env::var_os("HEAPR_RUNTIME_DIR") {
        return vec![Path::new(&base).join("heapr")];
    }
    let uid = rustix::process::geteuid().as_raw();
    let from_environment = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let of_system =
        if uid == 0 { PathBuf::from("/run/heapr") } else { PathBuf::from(format!("/run/user/{uid}/heapr")) };
    let mut paths: Vec<PathBuf> = from_environment
        .filter(|base| base.is_absolute())
        .map(|base| base.join("heapr"))
        .into_iter()
        .chain([of_system, PathBuf::from(format!("/tmp/heapr-{uid}"))])
        .collect();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn private_directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        directory
    }

    #[test]
    fn a_symbolic_link_in_its_place_is_not_followed() {
        let base = private_directory();
        fs::create_dir(base.path().join("elsewhere")).unwrap();
        symlink(base.path().join("elsewhere"), base.path().join("heapr")).unwrap();
        RuntimeDirectory::make(&base.path().join("heapr")).unwrap_err();
        assert!(fs::read_dir(base.path().join("elsewhere")).unwrap().next().is_none());
    }

    #[test]
    fn a_relative_path_is_refused() {
        let relative = Path::new("no-such-base/heapr");
        assert!(RuntimeDirectory::make(relative).unwrap_err().contains("not an absolute path"));
        assert!(RuntimeDirectory::open(relative).unwrap_err().contains("not an absolute path"));
    }

    #[test]
    fn one_that_others_may_enter_is_refused() {
        let base = private_directory();
        let path = base.path().join("heapr");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(RuntimeDirectory::make(&path).unwrap_err().contains("others may enter"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        RuntimeDirectory::make(&path).unwrap();
    }

    #[test]
    fn one_below_a_directory_that_others_may_change_is_refused() {
        let base = private_directory();
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(RuntimeDirectory::make(&base.path().join("heapr")).unwrap_err().contains("may change"));
    }

    #[test]
    fn another_users_directory_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let base = private_directory();
        let path = base.path().join("heapr");
        fs::create_dir(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(RuntimeDirectory::make(&path).unwrap_err().contains("12345"));
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        std::os::unix::fs::chown(base.path(), Some(12_345), None).unwrap();
        assert!(RuntimeDirectory::make(&path).unwrap_err().contains("12345"));
    }
}
