//! A process that has ended, with the facts of its last readings.

use std::time::Instant;

use heapr_incident::{
    Account, AtOutOfMemory, Course, Ending, GroupFacts, GroupProcess, Limited, More, ProcessNamed,
    RuntimeLimit,
};

/// Largest number of processes that an incident lists.
pub(super) const PROCESSES_MAX: usize = 50;

/// Process that has ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Dead {
    pub(super) named: ProcessNamed,
    pub(super) ending: Ending,
    pub(super) time_unix_ns: u64,
    /// Time at which the process was seen alive last, if its end was not watched.
    pub(super) not_before_unix_ns: Option<u64>,
    pub(super) account: Option<Account>,
    pub(super) address_space: Option<Limited>,
    pub(super) runtime: Option<RuntimeLimit>,
    /// Options by which the program ends at an OutOfMemoryError.
    pub(super) at_out_of_memory: Vec<AtOutOfMemory>,
    pub(super) not_recorded: Option<String>,
    /// Whether the user has named this process.
    pub(super) is_named: bool,
}

/// Group of a dead process, at the last reading.
#[derive(Debug, Clone, Default)]
pub(super) struct DeadsGroup {
    pub(super) facts: GroupFacts,
    pub(super) course: Course,
    pub(super) levels: Vec<More>,
    /// Accounts of the other processes.
    pub(super) accounts: Vec<Account>,
}

/// Process that has ended, before its incident is made.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) process: super::watched_process::WatchedProcess,
    pub(super) time_unix_ns: u64,
    pub(super) due: Instant,
}

/// Brings the processes of a group in the order of an incident, and lets go of the smallest.
pub(super) fn keep_largest(processes: &mut Vec<GroupProcess>) {
    processes.sort_by(|one, other| other.rss_bytes.cmp(&one.rss_bytes).then_with(|| one.pid.cmp(&other.pid)));
    processes.truncate(PROCESSES_MAX);
}

impl Dead {
    /// Whether the end is worth an incident. An exit status that is not 0, and an unknown end,
    /// count for a named process and for one with most of the memory. Others are a shell's
    /// commands.
    pub(super) fn is_incident(&self, group: Option<&DeadsGroup>) -> bool {
        let limit = group.and_then(|group| group.facts.limit_bytes);
        let is_at_own_limit = self.runtime.as_ref().is_some_and(RuntimeLimit::is_full);
        let is_large =
            is_at_own_limit || limit.is_some_and(|limit| self.named.rss_bytes.unwrap_or(0) >= limit / 2);
        match self.ending {
            Ending::Exited { status } => status != 0 && (self.is_named || is_large),
            Ending::Unknown => {
                let kills = group.and_then(|group| group.levels.first()?.events.oom_kill);
                // Without a watcher the end may be any.
                let is_unwatched = self.not_before_unix_ns.is_some();
                is_unwatched || self.is_named || is_large || kills.is_some_and(|kills| kills > 0)
            }
            // The end of a pipe ends its writers; what ended the reader has an incident of its own.
            ending if ending.is_of_pipe() => self.is_named || is_large,
            ending @ Ending::Signalled { .. } => !ending.is_orderly(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_by_a_broken_pipe_counts_as_an_exit_status_does() {
        let by = |signal| Ending::Signalled { signal, has_core: false };
        let dead = Dead { ending: by(13), ..Dead::default() };
        assert!(!dead.is_incident(None));
        assert!(Dead { is_named: true, ..dead.clone() }.is_incident(None));
        assert!(Dead { ending: by(11), ..dead }.is_incident(None));
    }
}
