//! Sessions that record given processes.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use heapr_session::{Answer, ProcessStatus, Request, SessionClient, SessionName, sessions};

/// Session, and the requested processes that it records.
#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) client: SessionClient,
    pub(crate) pids: Vec<u32>,
}

/// Returns the sessions that record these processes, and the processes that no session records.
pub(crate) fn find(pids: &[u32]) -> (Vec<Watcher>, Vec<u32>) {
    let mut left = pids.to_vec();
    let mut watchers = Vec::new();
    for client in all() {
        let Ok(Answer::Status(status)) = client.ask(Request::Status) else { continue };
        let is_recorded = |pid: &u32| {
            let is_it = |process: &ProcessStatus| process.pid == *pid && process.is_alive;
            status.processes.iter().any(|process| is_it(process) && process.disabled.is_none())
        };
        let (known, others) = left.into_iter().partition(is_recorded);
        left = others;
        if !known.is_empty() {
            watchers.push(Watcher { client, pids: known });
        }
    }
    (watchers, left)
}

/// Tells the user that `-o` does not apply to processes that sessions record into their own files.
pub(super) fn tell_unused(output: &Path, watched: &[Watcher]) {
    for watcher in watched {
        let pids = watcher.pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let (name, output) = (watcher.client.name(), output.display());
        tell!("heapr: {output} is not for process {pids}: session {name} records it, into its own file");
    }
}

/// Returns all sessions that run.
pub(super) fn all() -> impl Iterator<Item = SessionClient> {
    let names = sessions().into_iter().filter_map(|entry| SessionName::new(&entry.name).ok());
    names.filter_map(|name| SessionClient::find(&name).ok())
}

/// Starts a background session that tracks the live heap of these processes, and finds it.
pub(super) fn start(pids: &[u32], output: &Path, more: &[String]) -> anyhow::Result<SessionClient> {
    let name = session_name(pids);
    let program = std::env::current_exe().context("cannot find heapr's own file")?;
    let mut command = std::process::Command::new(program);
    let listed = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    command.args(["start", &name, "--mode", "snapshot", "-o"]).arg(output).args(more);
    command.args(["--pid", &listed]).stdout(std::process::Stdio::null());
    let status = command.status().context("cannot start a session")?;
    if !status.success() {
        bail!("no session for {}: see above", pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", "));
    }
    let name = SessionName::new(&name)?;
    Ok(SessionClient::find(&name)?)
}

/// Returns `snapshot-1234`, after the first process, with a number appended if that name is taken.
pub(super) fn session_name(pids: &[u32]) -> String {
    let taken: Vec<String> = sessions().into_iter().map(|entry| entry.name).collect();
    let base = format!("snapshot-{}", pids.first().copied().unwrap_or_default());
    free_name(
        |number| format!("{base}{}", number.map(|number| format!("-{number}")).unwrap_or_default()),
        |name| taken.contains(name),
    )
}

/// Returns the file for snapshots of processes that no session records. It is the requested one,
/// else `heapr.PID.heapr`, with a number if that exists and must not be overwritten.
pub(super) fn output(asked: Option<&Path>, pids: &[u32], may_overwrite: bool) -> anyhow::Result<PathBuf> {
    if let Some(asked) = asked {
        if is_name_of_javascript(asked) {
            bail!(
                "{} is named as a snapshot of JavaScript, and this one is native: name it .heapr",
                asked.display()
            );
        }
        return Ok(asked.to_owned());
    }
    let pid = pids.first().copied().unwrap_or_default();
    let name = |number: Option<u32>| {
        format!("heapr.{pid}{}.heapr", number.map(|number| format!(".{number}")).unwrap_or_default())
    };
    Ok(free_name(name, |name| !may_overwrite && Path::new(name).symlink_metadata().is_ok()).into())
}

/// Whether a file is named like a snapshot or profile of JavaScript.
pub(crate) fn is_name_of_javascript(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".heapsnapshot", ".heapprofile", ".heaptimeline"].iter().any(|end| name.ends_with(end))
}

/// Returns the first free name: without a number, then with 2 and so on.
pub(crate) fn free_name(name: impl Fn(Option<u32>) -> String, is_taken: impl Fn(&String) -> bool) -> String {
    let numbers = std::iter::once(None).chain((2..).map(Some));
    numbers.map(name).find(|name| !is_taken(name)).unwrap_or_default()
}
