//! Folder of traces without a name of the user.

use std::path::{Path, PathBuf};

use heapr_files::OwnFolder;
use rustix::fs::Access;

/// Path of a trace that the user has not named: in the working directory, or in the user's cache
/// where that cannot be written.
#[derive(Debug)]
pub(crate) struct DefaultPath {
    pub(crate) path: PathBuf,
    /// True if the working directory cannot be written.
    pub(crate) is_elsewhere: bool,
}

impl DefaultPath {
    /// Returns the path for a file of this name.
    pub(crate) fn of(name: &str) -> Self {
        let here = || Self { path: PathBuf::from(name), is_elsewhere: false };
        if can_write(Path::new(".")) {
            return here();
        }
        match cache_folder() {
            Some(folder) => Self { path: folder.join(name), is_elsewhere: true },
            // The error of the working directory is told.
            None => here(),
        }
    }

    /// Says where the file is, if the user would not look there.
    pub(crate) fn tell(&self) {
        if self.is_elsewhere {
            warn!("this folder cannot be written: the trace is {}", self.path.display());
        }
    }
}

fn can_write(folder: &Path) -> bool {
    rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Returns `$XDG_CACHE_HOME/heapr/traces`, made for this user alone. `None` if it cannot be made,
/// is a link, or others own it or may write to it.
fn cache_folder() -> Option<PathBuf> {
    let absolute =
        |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let folder = OwnFolder::made(&cache.join("heapr/traces")).ok()?;
    can_write(folder.path()).then(|| folder.path().to_owned())
}
