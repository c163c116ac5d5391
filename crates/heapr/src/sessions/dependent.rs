//! Session that depends on the process that started it, and never outlives it.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use anyhow::Context as _;
use heapr_session::{SessionName, StartRequest};

use super::session_end::{KEEP, SessionEnd, end};
use super::start::{Lifetime, begin};

/// Beginning of the names of sessions that a view starts for itself: a process id follows.
pub(crate) const OF_VIEW: &str = "top-";

/// Beginning of the names of sessions that a watch starts for itself: a process id follows.
pub(crate) const OF_WATCH: &str = "watch-";

/// True if the name is one that views and watches give their sessions.
pub(super) fn is_of_view(name: &SessionName) -> bool {
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    let numbers = [OF_VIEW, OF_WATCH].iter().find_map(|start| name.as_str().strip_prefix(start));
    numbers.is_some_and(|rest| rest.split('-').all(is_number))
}

/// Session that ends with this process at the latest, also if this process is killed: the recorder
/// watches the other end of `socket`.
#[derive(Debug)]
pub(crate) struct DependentSession {
    name: SessionName,
    /// Process id of the recorder; another session may get the name once this one has ended.
    pub(crate) recorder_pid: u32,
    socket: UnixStream,
    is_kept: bool,
    /// Remarks on the targets.
    pub(crate) remarks: Vec<String>,
}

impl DependentSession {
    /// Starts a session.
    ///
    /// # Errors
    /// See [`heapr_session::BackgroundSession::begin`].
    pub(crate) fn start(request: &StartRequest) -> anyhow::Result<Self> {
        let name = SessionName::new(&request.properties.name)?;
        let (beginning, socket) = begin(request, Lifetime::OfStarter)?;
        let (recorder_pid, remarks) = (beginning.recorder_pid, beginning.remarks);
        Ok(Self { name, recorder_pid, socket, is_kept: false, remarks })
    }

    pub(crate) fn name(&self) -> &SessionName {
        &self.name
    }

    /// Keeps the recording when the session ends, by whatever means.
    pub(crate) fn keep(&mut self) -> anyhow::Result<()> {
        if !self.is_kept {
            self.socket.write_all(&[KEEP]).context("the recorder has gone")?;
            self.is_kept = true;
        }
        Ok(())
    }

    /// Ends the session, and waits until its processes are let go. A recording with a snapshot is
    /// kept, too.
    ///
    /// # Errors
    /// The recorder does not answer.
    pub(crate) fn end(self) -> anyhow::Result<SessionEnd> {
        Ok(end(&self.name, self.recorder_pid, self.is_kept)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_views_are_known() {
        let is = |name: &str| is_of_view(&SessionName::new(name).unwrap());
        assert!(is("top-7") && is("top-7-2") && is("watch-7"));
        assert!(!is("watch") && !is("top") && !is("top-") && !is("top-x") && !is("stop-7"));
    }
}
