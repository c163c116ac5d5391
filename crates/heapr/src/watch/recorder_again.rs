//! Another recorder in place of one that has ended.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::earlier::left_path;
use super::recorder::Recorder;
use super::watched_process::WatchedProcess;
use super::watcher::Watcher;

/// Mean time between two replacements, at least: each one attaches to all processes, and what ended
/// the recorder may last.
const REPLACED_EVERY: Duration = Duration::from_secs(60);
/// Number of replacements that may follow one another at once.
const AT_ONCE: usize = 3;

/// Times of the last replacements, oldest first.
#[derive(Debug, Default)]
pub(super) struct Replacements(VecDeque<Instant>);

impl Replacements {
    /// Earliest time of the next replacement, if it must wait.
    fn due(&self, now: Instant) -> Option<Instant> {
        let oldest = self.0.front().filter(|_| self.0.len() == AT_ONCE)?;
        Some(*oldest + REPLACED_EVERY * AT_ONCE as u32).filter(|due| *due > now)
    }

    fn note(&mut self, now: Instant) {
        if self.0.len() == AT_ONCE {
            self.0.pop_front();
        }
        self.0.push_back(now);
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_replacements_follow_at_once_and_then_one_a_minute() {
        let begin = Instant::now();
        let second = |second: u64| begin + Duration::from_secs(second);
        let mut replacements = Replacements::default();
        for at in [0, 10, 20] {
            assert_eq!(replacements.due(second(at)), None);
            replacements.note(second(at));
        }
        assert_eq!(replacements.due(second(30)), Some(second(180)));
        assert_eq!(replacements.due(second(180)), None);
        replacements.note(second(180));
        assert_eq!(replacements.due(second(181)), Some(second(190)));
    }
}
