//! Kills of the kernel's log, kept until the deaths that they tell of are seen.

use std::time::{Duration, Instant};

use heapr_incident::{KernelKill, KernelLog};

use super::watched_process::has_first_namespace;

/// Time for which a death may be one whose record was lost.
const LOST_KEPT: Duration = Duration::from_secs(10);
/// Largest number of kills that wait for their death.
const KILLS_MAX: usize = 1000;

/// Reader of the kernel's log.
#[derive(Debug)]
pub(super) struct Kills {
    log: Option<KernelLog>,
    /// Reason for which the log is not read.
    pub(super) not_read: Option<String>,
    /// Time at which records were lost.
    lost: Option<Instant>,
    found: Vec<KernelKill>,
}

impl Kills {
    /// Opens the log. `from_start`: kills before this moment count, too.
    pub(super) fn open(from_start: bool) -> Self {
        if !has_first_namespace() {
            let not_read = Some("the kernel's log has other process ids than this namespace".to_owned());
            return Self { log: None, not_read, lost: None, found: Vec::new() };
        }
        match KernelLog::open(from_start) {
            Ok(log) => Self { log: Some(log), not_read: None, lost: None, found: Vec::new() },
            Err(error) => {
                let not_read = Some(format!("/dev/kmsg: {error}"));
                Self { log: None, not_read, lost: None, found: Vec::new() }
            }
        }
    }

    /// The log's file, to be polled.
    pub(super) fn file(&self) -> Option<&std::fs::File> {
        self.log.as_ref().map(KernelLog::file)
    }

    /// Reads what has come. Two records of one kill become one.
    pub(super) fn read(&mut self) {
        let Some(log) = &mut self.log else { return };
        let kills = log.kills();
        if log.take_lost() {
            self.lost = Some(Instant::now());
        }
        for kill in kills {
            let is_same = |known: &&mut KernelKill| {
                known.pid == kill.pid && kill.time_us.abs_diff(known.time_us) < 60_000_000
            };
            match self.found.iter_mut().rev().find(is_same) {
                Some(known) => {
                    known.is_of_whole_group |= kill.is_of_whole_group;
                    known.rss_bytes = known.rss_bytes.or(kill.rss_bytes);
                    known.limited_group = known.limited_group.take().or(kill.limited_group);
                    known.group = known.group.take().or(kill.group);
                }
                None => self.found.push(kill),
            }
        }
        let more = self.found.len().saturating_sub(KILLS_MAX);
        self.found.drain(..more);
    }

    /// Reason for which a death of this moment may be missing in the log.
    pub(super) fn unread(&self) -> Option<&str> {
        let is_lost = self.lost.is_some_and(|lost| lost.elapsed() < LOST_KEPT);
        let lost = "records of it were overwritten before they were read";
        self.not_read.as_deref().or(is_lost.then_some(lost))
    }

    /// Takes the kills out that `is_wanted` chooses.
    pub(super) fn take_all(&mut self, is_wanted: impl Fn(&KernelKill) -> bool) -> Vec<KernelKill> {
        let (taken, left) = std::mem::take(&mut self.found).into_iter().partition(is_wanted);
        self.found = left;
        taken
    }

    /// Lets go of the kills of other processes than `pids`: their ids are given again one day.
    pub(super) fn keep_of(&mut self, pids: &[u32]) {
        self.found.retain(|kill| pids.contains(&kill.pid));
    }

    /// Takes the kill of a process out.
    pub(super) fn take(&mut self, pid: u32, from_us: u64) -> Option<KernelKill> {
        let place = self.found.iter().position(|kill| kill.pid == pid && kill.time_us >= from_us)?;
        Some(self.found.remove(place))
    }
}
