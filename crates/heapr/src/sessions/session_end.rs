//! End of a session that depends on its starter, which the starter or the recorder asks for.

use heapr_session::{Answer, ClientError, FailureKind, Request, SessionClient, SessionName, StopReport};

/// Byte by which a starter, on which the session depends, keeps the recording.
pub(super) const KEEP: u8 = b'k';

/// End of a session.
#[derive(Debug)]
pub(crate) enum SessionEnd {
    /// The recording is complete.
    Kept(StopReport),
    /// The recording is removed.
    Removed,
    /// The session had ended before.
    Before,
}

/// Ends the session of this name if it is that of this recorder.
///
/// # Errors
/// The recorder does not answer.
pub(super) fn end(name: &SessionName, recorder_pid: u32, is_kept: bool) -> Result<SessionEnd, ClientError> {
    match end_running(name, recorder_pid, is_kept) {
        Err(error) if error.kind() == FailureKind::NoSuchSession => Ok(SessionEnd::Before),
        ended => ended,
    }
}

fn end_running(name: &SessionName, recorder_pid: u32, is_kept: bool) -> Result<SessionEnd, ClientError> {
    let client = SessionClient::find(name)?;
    let status = match client.ask(Request::Status)? {
        Answer::Status(status) if status.recorder_pid == recorder_pid => status,
        // The session was ended by another command, and its name is another's now.
        _ => return Ok(SessionEnd::Before),
    };
    // A snapshot was asked for by somebody who wants to read it.
    if !is_kept && status.snapshot_count == 0 {
        client.ask(Request::Cancel)?;
        return Ok(SessionEnd::Removed);
    }
    match client.ask(Request::Stop)? {
        Answer::Stopped(report) => Ok(SessionEnd::Kept(report)),
        _ => Ok(SessionEnd::Before),
    }
}
