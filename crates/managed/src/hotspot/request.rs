//! File that asks a virtual machine to listen.

use std::fs::File;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::error::AttachError;
use super::folder::opened;

/// File that asks the virtual machine to listen. It is removed at the end if it was made here.
pub(super) struct Request {
    folder: File,
    name: String,
    is_made: bool,
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.is_made {
            let _ = rustix::fs::unlinkat(&self.folder, &*self.name, AtFlags::empty());
        }
    }
}

impl Request {
    /// Makes the file in the working directory of the process, else in its directory of temporary
    /// files.
    pub(super) fn make(pid: u32, user: (u32, u32)) -> Result<Self, AttachError> {
        let name = format!(".attach_pid{}", heapr_proc::inner_pid(pid));
        let mut last = AttachError::NoFolder;
        for folder in [format!("/proc/{pid}/cwd/."), format!("/proc/{pid}/root/tmp")] {
            let path = PathBuf::from(&folder).join(&name);
            let held = match opened(rustix::fs::CWD, &folder, OFlags::DIRECTORY) {
                Ok(held) => held,
                Err(error) => {
                    last = AttachError::of_file(path, error.into());
                    continue;
                }
            };
            match Self::make_in(held, &name, user) {
                Ok(request) => return Ok(request),
                // The virtual machine looks at this file first, and ignores another user's.
                Err(Errno::EXIST) => {
                    return Err(AttachError::of_file(path, Errno::EXIST.into()));
                }
                Err(error) => last = AttachError::of_file(path, error.into()),
            }
        }
        Err(last)
    }

    fn make_in(folder: File, name: &str, (user, group): (u32, u32)) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = name.to_owned();
        match rustix::fs::openat(&folder, &*name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => {
                let request = Self { folder, name, is_made: true };
                let is_own = rustix::process::geteuid().as_raw() == user;
                if !is_own {
                    let given = fchown(&file, Some(user), Some(group));
                    given.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::PERM))?;
                }
                Ok(request)
            }
            // Another tool asks at this moment, or was killed: its file serves, and stays.
            Err(Errno::EXIST) => {
                let file = rustix::fs::openat(
                    &folder,
                    &*name,
                    OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                    Mode::empty(),
                )?;
                let metadata = File::from(file).metadata();
                let serves = metadata.is_ok_and(|it| it.is_file() && (it.uid() == user || it.uid() == 0));
                if serves { Ok(Self { folder, name, is_made: false }) } else { Err(Errno::EXIST) }
            }
            Err(error) => Err(error),
        }
    }
}
