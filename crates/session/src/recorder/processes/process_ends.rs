//! Finds the ends of processes: the blocks that a process left end with it, before the next event
//! of another.
//!
//! No clock shows the time of an end, only that it has happened. Ends are looked for before each
//! round, and the round merges events only up to an earlier time. So an end is known before an
//! event that follows it is counted. The earliest possible time is used, so that two lives one
//! after the other are not added up:
//!
//! ```text
//! rounds     ──┬───────────┬──────
//!            alive       over         end = last event, or right after it was seen alive
//! ```

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::recorder::Recorder;
use crate::recorder::state::process_state::ProcessState;

impl Recorder {
    /// Checks which processes live, with one system call for all. `now_ns`: a time before the
    /// check.
    pub(crate) fn look_at_lives(&mut self, now_ns: u64) {
        let lives = |process: &&mut ProcessState| !process.has_ended && !process.is_done;
        // A process that had ended when it was found has no descriptor.
        let is_new =
            |process: &&mut ProcessState| process.life.descriptor().is_none() && process.alive_ns == 0;
        for process in self.processes.iter_mut().filter(lives).filter(is_new) {
            process.look_at_life();
            process.alive_ns = if process.has_ended { 0 } else { now_ns };
        }
        let mut asked: Vec<&mut ProcessState> = self
            .processes
            .iter_mut()
            .filter(lives)
            .filter(|process| process.life.descriptor().is_some())
            .collect();
        let mut polled: Vec<PollFd<'_>> = asked
            .iter()
            .filter_map(|process| process.life.descriptor())
            .map(|descriptor| PollFd::new(descriptor, PollFlags::IN))
            .collect();
        let is_known = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok();
        let over: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
        drop(polled);
        for (process, is_over) in asked.iter_mut().zip(over).filter(|_| is_known) {
            if !is_over {
                process.life.note_alive();
            }
            // A process may only seem to be over while it execs.
            process.has_ended = is_over && process.look_at_life();
            if !process.has_ended {
                process.alive_ns = now_ns;
            }
        }
    }

    /// Determines when processes ended that have ended since the last call. Called after a scan:
    /// all that they published is known, and when.
    pub(crate) fn count_ends(&mut self) {
        for place in 0..self.processes.len() {
            let process = &self.processes[place];
            if !process.has_ended || process.is_end_counted || process.is_let_go || process.is_superseded {
                continue;
            }
            let started_ns = process.entry.as_ref().map_or(0, |entry| entry.start_ns);
            let alive_ns = process.alive_ns.max(started_ns);
            let own = self.streams.iter().filter(|stream| stream.process == place);
            let last_ticks = own.filter_map(|stream| stream.published_ticks(&self.pool)).max();
            let last_ns = last_ticks.map_or(0, |ticks| self.clock.ns(ticks));
            let end_ns = alive_ns.max(last_ns);
            let process = &mut self.processes[place];
            process.is_end_counted = true;
            if let Some(entry) = &mut process.entry {
                entry.end_ns.get_or_insert(end_ns);
            }
            self.sink.add_end(end_ns, process.index);
        }
    }
}
