//! Session that is shown: one that runs, or one that is started for a process.

use std::path::{Path, PathBuf};

use anyhow::bail;
use heapr_session::{
    Answer, Request, SampleRate, SessionClient, SessionName, SessionProperties, StartRequest, sessions,
};

use super::arguments::TopArguments;
use crate::processes;
use crate::sessions::{self as session_commands, DependentSession, OF_VIEW, SessionEnd};
use crate::snapshot::native::watchers;

/// Largest recording that is not asked for, as it is removed at the end.
const UNASKED_FILE_BYTES_MAX: u64 = 1 << 30;

/// Session that is shown.
#[derive(Debug)]
pub(super) struct Target {
    session: SessionName,
    recorder_pid: u32,
    path: PathBuf,
    title: String,
    /// Session that was started for this view, and ends with it.
    started: Option<DependentSession>,
}

impl Target {
    /// Finds the session, or attaches to the process.
    ///
    /// # Errors
    /// The target does not exist, or may not be attached to.
    pub(super) fn of(arguments: &TopArguments) -> anyhow::Result<Self> {
        let Some(word) = &arguments.target else {
            return Self::running(session_commands::find(None)?, None, arguments);
        };
        if sessions().iter().any(|entry| entry.name == *word) {
            return Self::running(session_commands::find(Some(word))?, None, arguments);
        }
        let pids = processes::named(std::slice::from_ref(word), false)?;
        let [pid] = *pids.as_slice() else {
            bail!("{word} means {} processes: give one of {pids:?}", pids.len())
        };
        let (watchers, _) = watchers::find(&[pid]);
        match watchers.into_iter().next() {
            Some(watcher) => Self::running(watcher.client, Some(pid), arguments),
            None => Self::attached(pid, arguments),
        }
    }

    fn running(client: SessionClient, pid: Option<u32>, arguments: &TopArguments) -> anyhow::Result<Self> {
        anyhow::ensure!(
            arguments.output.is_none()
                && !arguments.all
                && matches!(arguments.sample, SampleRate::Auto { .. }),
            "a session records it already, into its own file: -o, --all and --sample are for a process \
             that is attached to"
        );
        let Answer::Status(status) = client.ask(Request::Status)? else {
            bail!("session {} gives an answer that makes no sense", client.name())
        };
        let session = client.name().clone();
        let title = match pid {
            Some(pid) => format!("process {pid}, recorded by session {session}"),
            None => format!("session {session}"),
        };
        let recorder_pid = status.recorder_pid;
        Ok(Self { session, recorder_pid, path: PathBuf::from(status.output), title, started: None })
    }

    fn attached(pid: u32, arguments: &TopArguments) -> anyhow::Result<Self> {
        anyhow::ensure!(heapr_proc::is_alive(pid), "no process has the number {pid}");
        let path = match &arguments.output {
            Some(output) => std::path::absolute(output)?,
            None => std::env::temp_dir().join(format!("heapr.top.{pid}.{}.heapr", std::process::id())),
        };
        let mut properties = SessionProperties::new(path.clone());
        let taken: Vec<String> = sessions().into_iter().map(|entry| entry.name).collect();
        let name = |number: Option<u32>| {
            format!("{OF_VIEW}{pid}{}", number.map(|number| format!("-{number}")).unwrap_or_default())
        };
        properties.name = watchers::free_name(name, |name| taken.contains(name));
        properties.sample = (!arguments.all).then_some(arguments.sample);
        properties.overwrite = arguments.force;
        properties.max_file_bytes = arguments.output.is_none().then_some(UNASKED_FILE_BYTES_MAX);
        let mut request = StartRequest::new(properties);
        request.pids = vec![pid];
        let mut started = DependentSession::start(&request)?;
        if arguments.output.is_some() {
            started.keep()?;
        }
        let command = processes::command_line(pid).unwrap_or_default();
        let name = command.split_whitespace().next().and_then(|path| path.rsplit('/').next());
        let title = format!("{} ({pid})", name.unwrap_or("process"));
        let (session, recorder_pid) = (started.name().clone(), started.recorder_pid);
        Ok(Self { session, recorder_pid, path, title, started: Some(started) })
    }

    pub(super) fn session(&self) -> &SessionName {
        &self.session
    }

    /// Process id of the recorder.
    pub(super) fn recorder_pid(&self) -> u32 {
        self.recorder_pid
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn title(&self) -> String {
        self.title.clone()
    }

    /// Remark on the process that was attached to.
    pub(super) fn remark(&self) -> Option<String> {
        self.started.as_ref().map(|started| started.remarks.join("; "))
    }

    /// Keeps the recording: it holds a snapshot. Returns its path if it was made for this view.
    pub(super) fn keep(&mut self) -> anyhow::Result<Option<&Path>> {
        let Some(started) = &mut self.started else { return Ok(None) };
        started.keep()?;
        Ok(Some(&self.path))
    }

    /// Lets the process go if it was attached to. Returns a sentence on the recording if it is
    /// kept.
    pub(super) fn end(self) -> anyhow::Result<Option<String>> {
        let Some(started) = self.started else { return Ok(None) };
        Ok(match started.end()? {
            SessionEnd::Kept(report) => {
                Some(format!("the recording is {}", Path::new(&report.output).display()))
            }
            SessionEnd::Before if self.path.exists() => {
                Some(format!("the session was ended before; its recording is {}", self.path.display()))
            }
            SessionEnd::Before | SessionEnd::Removed => None,
        })
    }
}
