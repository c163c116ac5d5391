//! A time after a warning in which all allocations are recorded.

use std::time::Instant;

use heapr_session::SampleRate;

use super::watcher::Watcher;

/// Least room of a warning's group, and of its process's address space. Stacks that samples have
/// not met take memory of the program.
const ROOM_BYTES: u64 = 8 << 20;

impl Watcher {
    /// Begins to record all allocations, if that is wanted and `left_bytes` (`None`: there is no
    /// limit) have room for it. It ends after a time, or with the process `pid`. Returns true if it
    /// begins.
    pub(super) fn begin_full(&mut self, pid: u32, left_bytes: Option<u64>) -> bool {
        let Some(time) = self.full_for else { return false };
        let is_sampling = !matches!(self.sample, SampleRate::All | SampleRate::Off);
        if self.full_until.is_some() || !is_sampling || left_bytes.is_some_and(|left| left < ROOM_BYTES) {
            return false;
        }
        let Some(recorder) = &self.recorder else { return false };
        if let Err(error) = recorder.sample(SampleRate::All, Some(time)) {
            warn!("not all allocations are recorded: {error:#}");
            return false;
        }
        self.full_until = Some((Instant::now() + time, pid));
        true
    }

    /// Goes back to sampling, if the process whose warning has begun the full recording has ended.
    pub(super) fn end_full_of(&mut self, pid: u32) {
        if self.full_until.is_some_and(|(_, full)| full == pid) {
            self.end_full();
        }
    }

    /// Goes back to sampling.
    pub(super) fn end_full(&mut self) {
        self.full_until = None;
        if let Some(Err(error)) = self.recorder.as_ref().map(|recorder| recorder.sample(self.sample, None)) {
            warn!("the session goes back to its samples by itself: {error:#}");
        }
    }
}
