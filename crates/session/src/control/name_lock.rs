//! Lock of a session's name, and the files of a session.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};

use crate::runtime_directory::RuntimeDirectory;

/// File name extension of the lock.
pub(super) const LOCK: &str = ".lock";
/// File name extension of the socket.
pub(super) const SOCKET: &str = ".sock";

/// Result of trying to lock.
pub(super) enum Locked {
    Ours(OwnedFd),
    Taken,
}

/// Whether a name is held. Files of a name that is not held are removed.
pub(super) fn is_running(directory: &RuntimeDirectory, name: &str) -> bool {
    match lock(directory, name, false) {
        Ok(Locked::Taken) => true,
        Ok(Locked::Ours(_lock)) => {
            remove(directory, name);
            false
        }
        Err(_) => false,
    }
}

/// Removes a name's files. The caller holds its lock.
pub(super) fn remove(directory: &RuntimeDirectory, name: &str) {
    for ending in [SOCKET, LOCK] {
        let _ = rustix::fs::unlinkat(directory.descriptor(), format!("{name}{ending}"), AtFlags::empty());
    }
}

/// Takes the lock of a name if it is not held.
pub(super) fn lock(directory: &RuntimeDirectory, name: &str, may_make: bool) -> rustix::io::Result<Locked> {
    let entry = format!("{name}{LOCK}");
    let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    flags.set(OFlags::CREATE, may_make);
    loop {
        let file = rustix::fs::openat(directory.descriptor(), &entry, flags, Mode::from_raw_mode(0o600))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Locked::Taken),
            Err(error) => return Err(error),
        }
        // The last holder may have removed the file between our open and our lock; then our lock is
        // on a file without a name.
        let ours = rustix::fs::fstat(&file)?;
        match rustix::fs::statat(directory.descriptor(), &entry, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino) => {
                return Ok(Locked::Ours(file));
            }
            Ok(_) => {}
            Err(rustix::io::Errno::NOENT) if may_make => {}
            Err(error) => return Err(error),
        }
    }
}
