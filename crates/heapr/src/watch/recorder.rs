//! The session that records what is watched. It has a process of its own, which outlives the
//! watcher: the next watcher goes on with it.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use heapr_incident::Journal;
use heapr_proc::{is_alive, start_ticks};
use heapr_session::{
    Answer, FlaggedTargets, OnFull, Request, Rotation, SampleRate, SessionClient, SessionName,
    SessionProperties, SessionStatus, StartRequest, Update, sessions,
};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};

use crate::sessions::{OF_WATCH, start_background};
use crate::snapshot::native::watchers::free_name;

/// Time after which the next file is begun, and number of earlier files that stay.
const ROTATION: Rotation = Rotation { interval: Duration::from_secs(3600), keep_count: 2 };
/// Size at which the next file is begun before that time, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Session of a watch.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) name: SessionName,
    pub(super) pid: u32,
    pub(super) life: Option<OwnedFd>,
}

impl Recorder {
    /// Starts a session without targets that writes to `path`.
    ///
    /// # Errors
    /// The session cannot be started.
    pub(super) fn start(path: &Path, sample: SampleRate, is_flagged: bool) -> anyhow::Result<Self> {
        let mut properties = SessionProperties::new(path.to_owned());
        let taken: Vec<String> = sessions().into_iter().map(|entry| entry.name).collect();
        let name = |number: Option<u32>| {
            let number = number.map(|number| format!("-{number}")).unwrap_or_default();
            format!("{OF_WATCH}{}{number}", std::process::id())
        };
        properties.name = free_name(name, |name| taken.contains(name));
        properties.sample = Some(sample);
        properties.overwrite = true;
        properties.rotation = Some(ROTATION);
        properties.max_file_bytes = Some(FILE_BYTES_MAX);
        // A recorder that is stopped must not stop the watched programs.
        properties.on_full = OnFull::Drop;
        let name = SessionName::new(&properties.name)?;
        let mut request = StartRequest::new(properties);
        request.flagged = is_flagged.then_some(FlaggedTargets { takes_running: true });
        let recorder_pid = start_background(&request)?;
        Ok(Self { name, pid: recorder_pid, life: life(recorder_pid) })
    }

    /// Goes on with the session of an earlier watcher; `None` if it does not run, or writes
    /// elsewhere.
    pub(super) fn running(name: &str, path: &Path) -> Option<Self> {
        let name = SessionName::new(name).ok()?;
        let mut found = Self { name, pid: 0, life: None };
        let status = found.status().ok()?;
        if Path::new(&status.output) != path {
            return None;
        }
        (found.pid, found.life) = (status.recorder_pid, life(status.recorder_pid));
        Some(found)
    }

    /// State of the session.
    ///
    /// # Errors
    /// The session has ended, or does not answer.
    pub(super) fn status(&self) -> anyhow::Result<SessionStatus> {
        match self.ask(Request::Status)? {
            Answer::Status(status) => Ok(*status),
            _ => bail!("session {} gives an answer that makes no sense", self.name),
        }
    }

    /// Attaches to processes. Returns those that cannot be recorded, with the reason.
    ///
    /// # Errors
    /// The session has ended, or does not answer.
    pub(super) fn add(&self, pids: &[u32]) -> anyhow::Result<Vec<(u32, String)>> {
        let update = Update { add_pids: pids.to_vec(), ..Update::default() };
        let Answer::Updated(report) = self.ask(Request::Update(update))? else {
            bail!("session {} gives an answer that makes no sense", self.name)
        };
        if report.failed.is_empty() {
            return Ok(Vec::new());
        }
        // A child of a recorded process may have been recorded meanwhile.
        let recorded = recorded(&self.status()?);
        let failed = report.failed.into_iter().filter(|(pid, _)| !recorded.contains(pid));
        Ok(failed.map(|(pid, failure)| (pid, failure.message)).collect())
    }

    /// Makes the file complete up to this moment.
    ///
    /// # Errors
    /// The session has ended, or does not answer.
    pub(super) fn flush(&self) -> anyhow::Result<()> {
        self.ask(Request::Update(Update { flush: true, ..Update::default() }))?;
        Ok(())
    }

    /// Sets the rate of sampling, for a while or for good. The session goes back by itself, so that
    /// a watcher that is killed leaves no full recording.
    ///
    /// # Errors
    /// The session has ended, does not answer, or cannot change its rate.
    pub(super) fn sample(&self, rate: SampleRate, time: Option<Duration>) -> anyhow::Result<()> {
        let sample_for_ms = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let update = Update { sample: Some(rate), sample_for_ms, ..Update::default() };
        let Answer::Updated(report) = self.ask(Request::Update(update))? else {
            bail!("session {} gives an answer that makes no sense", self.name)
        };
        report.not_sampled.map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// Lets go of a recorder that has ended: one that this process started is waited for.
    pub(super) fn forget(self) {
        if let Some(life) = &self.life {
            // It may be the child of an earlier watcher.
            let _ = waitid(WaitId::PidFd(life.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }

    /// Ends the session; its file stays.
    pub(super) fn stop(&self) {
        if let Err(error) = self.ask(Request::Stop) {
            warn!("{error:#}");
        }
    }

    fn ask(&self, request: Request) -> anyhow::Result<Answer> {
        Ok(SessionClient::find(&self.name)?.ask(request)?)
    }
}

/// Live processes that a session records.
pub(super) fn recorded(status: &SessionStatus) -> Vec<u32> {
    let is_recorded =
        |process: &&heapr_session::ProcessStatus| process.is_alive && process.disabled.is_none();
    status.processes.iter().filter(is_recorded).map(|process| process.pid).collect()
}

/// Longest time that a recorder takes to write the end of its file.
const END_LIMIT: Duration = Duration::from_secs(30);

/// Ends the recorder of the last watch in order, if it lives and cannot be gone on with: one of
/// another version. The processes that it records could not be recorded by another one. The journal
/// must be of the machine's present run: the same number and start may be another process's later.
pub(super) fn end_left(journal: &Journal) {
    let pid = journal.recorder_pid;
    let lives = || start_ticks(pid) == Some(journal.recorder_start_ticks) && is_alive(pid);
    // The descriptor stays that of the process that is looked at now.
    let Some(process) = life(pid).filter(|_| lives()) else { return };
    match pidfd_send_signal(&process, Signal::TERM) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => {
            warn!("the recorder of the last watch, process {pid}, cannot be ended: {error}; end it by hand");
            return;
        }
    }
    let begin = Instant::now();
    while lives() && begin.elapsed() < END_LIMIT {
        std::thread::sleep(Duration::from_millis(20));
    }
    if lives() {
        warn!("the recorder of the last watch, process {pid}, does not end; end it by hand");
        return;
    }
    tell!(
        "heapr: the recorder of the last watch does not answer, or writes elsewhere, and was ended: another one \
         goes on in its place"
    );
}

fn life(pid: u32) -> Option<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}
