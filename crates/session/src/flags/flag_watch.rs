//! Finds flagged programs that start while a session runs.
//!
//! All processes are sampled five times a second, for new ones and those that have execed. That
//! finds a program at most a fifth of a second after its start, needs no privilege, and stops no
//! process. Its blocks from before are found by the attach, as for any running process.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use heapr_proc::pids;

use crate::flags::FlagKind;
use crate::flags::flag_cache::FlagCache;
use crate::flags::flag_target::ProcessFacts;

/// Interval between two samples of the processes: some milliseconds of work for a thousand of them.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Watch for flagged processes.
#[derive(Debug)]
pub(crate) struct FlagWatch {
    kind: FlagKind,
    takes_running: bool,
    flags: FlagCache,
    /// Program of each known process.
    known: HashMap<u32, PathBuf>,
    next_look: Instant,
}

impl FlagWatch {
    /// Creates a watch for flags of one kind. `takes_running`: processes that already run count as
    /// new.
    pub(crate) fn new(kind: FlagKind, takes_running: bool) -> Self {
        Self {
            kind,
            takes_running,
            flags: FlagCache::default(),
            known: programs(),
            next_look: Instant::now(),
        }
    }

    /// Returns flagged processes that have started since the last sample. If flags were set since
    /// then, it also returns running processes flagged by their id, or all that are flagged if
    /// `takes_running`.
    pub(crate) fn started(&mut self) -> Vec<u32> {
        let now = Instant::now();
        if now < self.next_look {
            return Vec::new();
        }
        self.next_look = now + LOOK_EVERY;
        let present = programs();
        let known = std::mem::replace(&mut self.known, present);
        let is_new = |pid: &u32, program: &PathBuf| known.get(pid) != Some(program);
        let are_flags_new = self.flags.is_changed();
        let has_new = || self.known.iter().any(|(pid, program)| is_new(pid, program));
        if !are_flags_new && !has_new() {
            return Vec::new();
        }
        let (flags, kind, takes_running) = (self.flags.current(), self.kind, self.takes_running);
        let is_wanted = |&(pid, program): &(&u32, &PathBuf)| {
            let is_asked = is_new(pid, program) || are_flags_new;
            let facts = if is_asked { ProcessFacts::of(*pid) } else { None };
            facts.is_some_and(|facts| {
                flags.matches(&facts) == Some(kind)
                    && (is_new(pid, program) || takes_running || flags.names_process(kind, &facts))
            })
        };
        let wanted = self.known.iter().filter(is_wanted).map(|(&pid, _)| pid);
        wanted.filter(|&pid| pid != std::process::id()).collect()
    }

    /// Returns the error of reading the flags, once.
    pub(crate) fn take_error(&mut self) -> Option<String> {
        self.flags.take_error()
    }
}

/// Programs of all processes. Kernel threads, which have no program, are left out, and so are
/// processes of other users that are not visible.
fn programs() -> HashMap<u32, PathBuf> {
    let program = |pid| Some((pid, heapr_proc::executable(pid).ok()?));
    pids().filter_map(program).collect()
}
