//! A session's name, taken for as long as its recorder lives.
//!
//! ```text
//! NAME.lock   locked (flock) by the recorder for its life: the name is taken exactly while somebody holds it
//! NAME.sock   its socket; whoever holds the lock may remove what an earlier holder left
//! ```
//!
//! A recorder that is killed loses the lock with its life, so nothing that it leaves behind blocks the next session. Its life ends
//! when its last thread has run once more, which on a busy machine takes a while for those in spare time: whoever wants the name
//! waits a moment while its holder does not answer.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};

use super::client::SessionClient;
use super::protocol::Request;
use crate::control::runtime_directory::RuntimeDirectory;
use crate::{Error, SessionName};

/// The endings of a session's files.
const LOCK: &str = ".lock";
/// See [`LOCK`].
pub(super) const SOCKET: &str = ".sock";

/// How long to wait for a name whose holder does not answer. Of 60 recorders that were killed beside
/// busy programs on two processors, three took 0.3 to 0.65 s to be gone, half of them 12 ms.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks at it.
const PAUSE: Duration = Duration::from_millis(10);

/// The right to a name, and the socket behind it.
#[derive(Debug)]
pub(crate) struct NameClaim {
    directory: RuntimeDirectory,
    name: SessionName,
    _lock: OwnedFd,
}

/// What became of trying to lock.
enum Locked {
    Ours(OwnedFd),
    Taken,
}

impl NameClaim {
    /// Takes a name that no session has. Waits some seconds if somebody holds it who does not answer, as a recorder that is
    /// about to die.
    ///
    /// # Errors
    /// A session has it, or its directory cannot be used.
    pub(crate) fn new(name: &SessionName) -> Result<Self, Error> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(claim) = Self::take(name)? {
                return Ok(claim);
            }
            let patience = deadline.saturating_duration_since(Instant::now());
            if patience < PAUSE || answers(name, patience) {
                return Err(Error::SessionExists { name: name.to_string() });
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Takes a name if nobody holds it.
    fn take(name: &SessionName) -> Result<Option<Self>, Error> {
        let directory = RuntimeDirectory::first()?;
        let existing = RuntimeDirectory::existing();
        let mut others = existing.iter().filter(|other| other.path() != directory.path());
        if others.any(|other| is_running(other, name.as_str())) {
            return Ok(None);
        }
        match lock(&directory, name.as_str(), true) {
            Ok(Locked::Ours(lock)) => Ok(Some(Self { directory, name: name.clone(), _lock: lock })),
            Ok(Locked::Taken) => Ok(None),
            Err(source) => {
                let path = directory.path().join(format!("{name}{LOCK}"));
                Err(Error::Control { path, source: source.into() })
            }
        }
    }

    /// Makes the socket, in place of one that a killed recorder left.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn listen(&self) -> Result<UnixListener, Error> {
        let entry = format!("{}{SOCKET}", self.name);
        let failed = |source: io::Error| Error::Control { path: self.directory.path().join(&entry), source };
        match rustix::fs::unlinkat(self.directory.descriptor(), &entry, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(failed(error.into())),
        }
        UnixListener::bind(self.directory.entry(&entry)).map_err(failed)
    }
}

impl Drop for NameClaim {
    fn drop(&mut self) {
        remove(&self.directory, self.name.as_str());
    }
}

/// Whether somebody holds a name. What nobody holds is cleaned away.
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

fn answers(name: &SessionName, patience: Duration) -> bool {
    SessionClient::find(name).is_ok_and(|client| client.ask_within(Request::Status, patience).is_ok())
}

/// Removes a name's files. The caller holds its lock.
fn remove(directory: &RuntimeDirectory, name: &str) {
    for ending in [SOCKET, LOCK] {
        let _ = rustix::fs::unlinkat(directory.descriptor(), format!("{name}{ending}"), AtFlags::empty());
    }
}

fn lock(directory: &RuntimeDirectory, name: &str, may_make: bool) -> rustix::io::Result<Locked> {
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
        // Its last holder may have removed it between our opening and our locking: then the lock is one of nothing.
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
