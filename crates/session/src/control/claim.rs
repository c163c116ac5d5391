//! Name of a session, taken for as long as its recorder lives.
//!
//! ```text
//! NAME.lock   locked (flock) by the recorder for its life: the name is taken while it is locked
//! NAME.sock   socket of the session; the holder of the lock may remove what an earlier holder left
//! ```
//!
//! A recorder that is killed loses the lock with its life, so its leftovers never block the next
//! session. Its life ends when its last thread has run once more. On a busy machine that takes a
//! while for a thread in spare time. So a claim waits a moment while the holder does not answer.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use rustix::fs::AtFlags;

use super::client::SessionClient;
use super::name_lock::{LOCK, Locked, SOCKET, is_running, lock, remove};
use super::protocol::Request;
use crate::runtime_directory::RuntimeDirectory;
use crate::{Error, SessionName};

/// Longest wait for a name whose holder does not answer. Of 60 recorders killed beside busy
/// programs on two processors, three took 0.3 to 0.65 s to be gone, half of them 12 ms.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// Right to a name, and the socket behind it.
#[derive(Debug)]
pub(crate) struct NameClaim {
    directory: RuntimeDirectory,
    name: SessionName,
    lock: OwnedFd,
}

impl NameClaim {
    /// Takes a name that no session has. Waits some seconds if the holder does not answer, as a
    /// recorder that is about to die.
    ///
    /// # Errors
    /// A session has the name, or its directory cannot be used.
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

    /// Takes a name if it is not held.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub(super) fn take(name: &SessionName) -> Result<Option<Self>, Error> {
        let directory = RuntimeDirectory::first()?;
        let existing = RuntimeDirectory::existing();
        let mut others = existing.iter().filter(|other| other.path() != directory.path());
        if others.any(|other| is_running(other, name.as_str())) {
            return Ok(None);
        }
        match lock(&directory, name.as_str(), true) {
            Ok(Locked::Ours(lock)) => Ok(Some(Self { directory, name: name.clone(), lock })),
            Ok(Locked::Taken) => Ok(None),
            Err(source) => {
                let path = directory.path().join(format!("{name}{LOCK}"));
                Err(Error::Control { path, source: source.into() })
            }
        }
    }

    /// False if the lock's file was removed, as with its directory at the end of a login. Then no
    /// command finds the session.
    pub(crate) fn has_name(&self) -> bool {
        rustix::fs::fstat(&self.lock).is_ok_and(|facts| facts.st_nlink > 0)
    }

    /// Creates the socket, in place of one that a killed recorder left.
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

fn answers(name: &SessionName, patience: Duration) -> bool {
    SessionClient::find(name).is_ok_and(|client| client.ask_within(Request::Status, patience).is_ok())
}
