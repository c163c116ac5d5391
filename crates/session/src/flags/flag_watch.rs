//! Flagged programs that start while a session runs.
//!
//! The processes are looked at five times a second: who is new, or runs another program than at the
//! last look. That sees a program at most a fifth of a second after it began, needs no privilege,
//! and stops nothing; what it had allocated until then is found by the attach, as for any process
//! that runs already.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use heapr_proc::pids;

use crate::flags::FlagKind;
use crate::flags::flag_cache::FlagCache;
use crate::flags::flag_target::ProcessFacts;

/// Processes are looked at this often: some milliseconds of work for a thousand of them.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Watches for processes that are flagged.
#[derive(Debug)]
pub(crate) struct FlagWatch {
    kind: FlagKind,
    takes_running: bool,
    flags: FlagCache,
    /// Each process and the program that it runs.
    known: HashMap<u32, PathBuf>,
    next_look: Instant,
}

impl FlagWatch {
    /// Watches for flags of one kind. `takes_running`: processes that run already count as new.
    pub(crate) fn new(kind: FlagKind, takes_running: bool) -> Self {
        Self {
            kind,
            takes_running,
            flags: FlagCache::default(),
            known: programs(),
            next_look: Instant::now(),
        }
    }

    /// Flagged processes that have started since the last look; and, where flags have been set
    /// since then, those that run already and are flagged by their number, or all that are
    /// flagged.
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

    /// Why the flags could not be read, once.
    pub(crate) fn take_error(&mut self) -> Option<String> {
        self.flags.take_error()
    }
}

/// The programs that run; the kernel's own threads have none, and others' may not be seen.
fn programs() -> HashMap<u32, PathBuf> {
    let program = |pid| Some((pid, heapr_proc::executable(pid).ok()?));
    pids().filter_map(program).collect()
}
