//! Flagged programs that start while a session runs.
//!
//! The processes are looked at five times a second: who is new, or runs another program than at the last look. That sees a
//! program at most a fifth of a second after it began, needs no privilege, and stops nothing; what it had allocated until
//! then is found by the attach, as for any process that runs already.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::flags::FlagKind;
use crate::flags::flag_cache::FlagCache;
use crate::flags::flag_target::ProcessFacts;

/// Processes are looked at this often: some milliseconds of work for a thousand of them.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Watches for processes that are flagged.
#[derive(Debug)]
pub(crate) struct FlagWatch {
    kind: FlagKind,
    flags: FlagCache,
    /// Each process and the program that it runs.
    known: HashMap<u32, PathBuf>,
    next_look: Instant,
}

impl FlagWatch {
    /// Watches for flags of one kind. `takes_running`: processes that run already count as new.
    pub(crate) fn new(kind: FlagKind, takes_running: bool) -> Self {
        let now = Instant::now();
        let known = if takes_running { HashMap::new() } else { programs() };
        Self { kind, flags: FlagCache::default(), known, next_look: now }
    }

    /// Flagged processes that have started since the last look.
    pub(crate) fn started(&mut self) -> Vec<u32> {
        let now = Instant::now();
        if now < self.next_look {
            return Vec::new();
        }
        self.next_look = now + LOOK_EVERY;
        let present = programs();
        let is_new = |(pid, program): &(&u32, &PathBuf)| self.known.get(*pid) != Some(*program);
        let new: Vec<u32> = present.iter().filter(is_new).map(|(&pid, _)| pid).collect();
        self.known = present;
        let me = std::process::id();
        if new.is_empty() {
            return new;
        }
        let (flags, kind) = (self.flags.current(), self.kind);
        let is_flagged =
            |pid: u32| ProcessFacts::of(pid).is_some_and(|facts| flags.matches(&facts) == Some(kind));
        new.into_iter().filter(|&pid| pid != me && is_flagged(pid)).collect()
    }

    /// Why the flags could not be read, once.
    pub(crate) fn take_error(&mut self) -> Option<String> {
        self.flags.take_error()
    }
}

/// The programs that run; the kernel's own threads have none, and others' may not be seen.
fn programs() -> HashMap<u32, PathBuf> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, fs::read_link(format!("/proc/{pid}/exe")).ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_starts_later_is_new_unless_running_ones_are_asked_for() {
        let me = std::process::id();
        assert!(FlagWatch::new(FlagKind::Heap, false).known.contains_key(&me));
        assert!(FlagWatch::new(FlagKind::Heap, true).known.is_empty());
    }
}
