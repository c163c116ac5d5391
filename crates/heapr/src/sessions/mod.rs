//! Sessions in the background: start, update, status, mark, stop, cancel.

mod dependent;
mod mark;
mod recorder_process;
mod session_end;
mod start;
mod status;
mod status_text;
mod stop;
mod update;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::bail;
use clap::Parser as _;
use heapr_session::{SessionClient, SessionName, sessions};

pub(crate) use dependent::{DependentSession, OF_VIEW, OF_WATCH};
pub(crate) use mark::MarkArguments;
use recorder_process::RecorderArguments;
pub(crate) use recorder_process::SUBCOMMAND as RECORDER;
pub(crate) use session_end::SessionEnd;
pub(crate) use start::{StartArguments, advice, start_background};
pub(crate) use status::StatusArguments;
pub(crate) use stop::{CancelArguments, StopArguments};
pub(crate) use update::UpdateArguments;

/// Starts a session.
pub(crate) fn start(arguments: StartArguments) -> anyhow::Result<ExitCode> {
    start::run(arguments)
}

/// Runs the recorder in its own process, which only heapr starts, by these words.
pub(crate) fn record(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    recorder_process::run(&RecorderArguments::parse_from(words.into_iter().skip(1)))
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

/// Finds the session of that name, or without a name the only one. A session of `heapr run`,
/// `heapr top` or `heapr watch` counts only if it is named, or if no other exists.
pub(crate) fn find(name: Option<&str>) -> anyhow::Result<SessionClient> {
    if let Some(name) = name {
        return Ok(SessionClient::find(&SessionName::new(name)?)?);
    }
    let names: Vec<SessionName> =
        sessions().into_iter().filter_map(|entry| SessionName::new(&entry.name).ok()).collect();
    let is_of_other = |name: &&SessionName| name.is_of_run() || dependent::is_of_view(name);
    let (others, started): (Vec<_>, Vec<_>) = names.iter().partition(is_of_other);
    match (started.as_slice(), others.as_slice()) {
        ([only], _) | ([], [only]) => Ok(SessionClient::find(only)?),
        ([], []) => bail!("no session is running; start one with `heapr start`"),
        _ => {
            let names: Vec<&str> = names.iter().map(SessionName::as_str).collect();
            bail!("which session? running: {}", names.join(", "))
        }
    }
}
