//! Session that depends on the process that started it, and never outlives it.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use anyhow::Context as _;
use heapr_session::{Answer, ClientError, Request, SessionClient, SessionName, StartRequest, StopReport};

use super::recorder_process::KEEP;
use super::start::{Lifetime, begin};

/// Session that ends with this process at the latest, also if this process is killed: the recorder
/// watches the other end of `socket`.
#[derive(Debug)]
pub(crate) struct DependentSession {
    name: SessionName,
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
        Ok(Self { name, socket, is_kept: false, remarks: beginning.remarks })
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

    /// Ends the session, and waits until its processes are let go. Returns the recording if it is
    /// kept.
    ///
    /// # Errors
    /// The recorder does not answer.
    pub(crate) fn end(self) -> anyhow::Result<Option<StopReport>> {
        let request = if self.is_kept { Request::Stop } else { Request::Cancel };
        match SessionClient::find(&self.name).and_then(|client| client.ask(request)) {
            Ok(Answer::Stopped(report)) if self.is_kept => Ok(Some(report)),
            // The session may have been ended by another command.
            Ok(_) | Err(ClientError::NoSuchSession { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
