//! Another recorder in place of one that has ended.

use std::time::Instant;

use super::earlier::left_path;
use super::recorder::Recorder;
use super::replacements::{AT_ONCE, REPLACED_EVERY};
use super::watched_process::WatchedProcess;
use super::watcher::Watcher;

impl Watcher {
    /// Lets go of a recorder that has ended, and has another one started.
    pub(super) fn replace_recorder(&mut self) {
        if let Some(ended) = self.recorder.take() {
            ended.forget();
        }
        match self.replacements.due(Instant::now()) {
            None => {
                warn!("the recorder has ended; another one goes on");
                self.start_recorder();
            }
            Some(due) => {
                warn!(
                    "the recorder has ended {} times; another one is started within {} minutes",
                    AT_ONCE + 1,
                    REPLACED_EVERY.as_secs() * AT_ONCE as u64 / 60
                );
                self.recorder_due = Some(due);
                self.have_all_recorded();
            }
        }
    }

    /// Starts another recorder. One that cannot be started is tried again later.
    pub(super) fn start_recorder(&mut self) {
        let now = Instant::now();
        self.replacements.note(now);
        (self.recorder_due, self.full_until) = (None, None);
        let _ = std::fs::rename(&self.recording, left_path(&self.recording));
        match Recorder::start(&self.recording, self.sample, self.targets.has_flagged) {
            Ok(recorder) => self.recorder = Some(recorder),
            Err(error) => {
                warn!("no recorder: {error:#}");
                self.recorder_due = Some(now + REPLACED_EVERY);
            }
        }
        self.have_all_recorded();
    }

    fn have_all_recorded(&mut self) {
        let pids: Vec<u32> = self.watched.processes.iter().map(WatchedProcess::pid).collect();
        self.watched.have_recorded(&pids, self.recorder.as_ref());
        self.is_journal_old = true;
    }
}
