//! Sessions in the background: start, update, status, mark, stop, cancel.

mod mark;
mod recorder_process;
mod start;
mod status;
mod status_text;
mod stop;
mod update;

use std::process::ExitCode;

use anyhow::bail;
use heapr_session::{SessionClient, SessionName, sessions};

pub(crate) use mark::MarkArguments;
pub(crate) use recorder_process::RecorderArguments;
pub(crate) use start::{StartArguments, advice};
pub(crate) use status::StatusArguments;
pub(crate) use stop::{CancelArguments, StopArguments};
pub(crate) use update::UpdateArguments;

/// Starts a session.
pub(crate) fn start(arguments: StartArguments) -> anyhow::Result<ExitCode> {
    start::run(arguments)
}

/// Runs the recorder in its own process, which only `start` starts.
pub(crate) fn record(arguments: &RecorderArguments) -> anyhow::Result<ExitCode> {
    recorder_process::run(arguments)
}

/// Shows the state of sessions.
pub(crate) fn status(arguments: &StatusArguments) -> anyhow::Result<ExitCode> {
    status::run(arguments)
}

/// Puts a text into a trace.
pub(crate) fn mark(arguments: &MarkArguments) -> anyhow::Result<ExitCode> {
    mark::run(arguments)
}

/// Changes a session.
pub(crate) fn update(arguments: UpdateArguments) -> anyhow::Result<ExitCode> {
    update::run(arguments)
}

/// Ends a session and completes its file.
pub(crate) fn stop(arguments: StopArguments) -> anyhow::Result<ExitCode> {
    stop::stop(arguments)
}

/// Ends a session and removes its file.
pub(crate) fn cancel(arguments: &CancelArguments) -> anyhow::Result<ExitCode> {
    stop::cancel(arguments)
}

/// Finds the session of that name, or without a name the only one. A session of `heapr run` counts
/// only if it is named, or if no other exists.
fn find(name: Option<&str>) -> anyhow::Result<SessionClient> {
    if let Some(name) = name {
        return Ok(SessionClient::find(&SessionName::new(name)?)?);
    }
    let names: Vec<SessionName> =
        sessions().into_iter().filter_map(|entry| SessionName::new(&entry.name).ok()).collect();
    let (runs, started): (Vec<_>, Vec<_>) = names.iter().partition(|name| name.is_of_run());
    match (started.as_slice(), runs.as_slice()) {
        ([only], _) | ([], [only]) => Ok(SessionClient::find(only)?),
        ([], []) => bail!("no session is running; start one with `heapr start`"),
        _ => {
            let names: Vec<&str> = names.iter().map(SessionName::as_str).collect();
            bail!("which session? running: {}", names.join(", "))
        }
    }
}
