//! Target to explain: a process, a session that runs, or files.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use heapr_session::{SessionClient, SessionName, sessions};

use crate::processes;

/// Target that the words of the command line name.
#[derive(Debug)]
pub(super) enum Target {
    /// Process that runs.
    Process(u32),
    /// Session that runs, by its name.
    Session(String),
    /// Traces, or snapshots of V8.
    Files(Vec<PathBuf>),
}

impl Target {
    /// Resolves the words. A file goes before a session, and a session before a process.
    pub(super) fn of(words: &[PathBuf]) -> anyhow::Result<Self> {
        let [only] = words else { return Ok(Self::Files(words.to_vec())) };
        let text = only.to_string_lossy();
        if only.exists() {
            return Ok(Self::Files(words.to_vec()));
        }
        if sessions().iter().any(|entry| entry.name == text) {
            return Ok(Self::Session(text.into_owned()));
        }
        match text.parse() {
            Ok(pid) if heapr_proc::is_alive(pid) => Ok(Self::Process(pid)),
            Ok(pid) => bail!("no process has the id {pid}, and no file or session has this name"),
            Err(_) if text.contains(['/', '.']) => {
                bail!("{text} is no file, no session that runs, and no process")
            }
            Err(_) => {
                let found = processes::named(&[text.clone().into_owned()], false);
                let pids = found.with_context(|| format!("{text} is no file and no session that runs"))?;
                let [pid] = *pids.as_slice() else {
                    bail!("{text} means {} processes: give a number", pids.len())
                };
                Ok(Self::Process(pid))
            }
        }
    }

    /// Name of the target in messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Process(pid) => format!("process {pid}"),
            Self::Session(name) => format!("session {name}"),
            Self::Files(files) => {
                files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// Returns the client of a session by its name.
pub(super) fn client(name: &str) -> anyhow::Result<SessionClient> {
    Ok(SessionClient::find(&SessionName::new(name)?)?)
}
