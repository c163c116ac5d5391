//! Flagged programs of a session: seen at their exec where that is allowed, else soon afterwards.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::attach::{AttachOutcome, Preload};
use crate::flags::FlagKind;
use crate::flags::exec_guard::{ExecGuard, News};
use crate::flags::flag_watch::FlagWatch;
use crate::flags::shell_flags::{ShellFlags, is_told_by_shell};

/// Longest time until a prepared program has loaded the agent: it loads before its own libraries,
/// within milliseconds.
const LOAD_LIMIT: Duration = Duration::from_secs(2);

/// Flagged programs as targets of a session. A session that records events has those flagged for
/// the heap; one that records only snapshots has those flagged for snapshots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlaggedTargets {
    /// Whether flagged programs that already run are attached to as well.
    pub takes_running: bool,
}

/// Both methods of seeing flagged programs.
#[derive(Debug)]
pub(crate) struct Flagged {
    guard: Option<ExecGuard>,
    watch: FlagWatch,
    shell: Option<ShellFlags>,
    method: String,
    /// Processes that load the agent by themselves.
    prepared: HashMap<u32, Prepared>,
}

#[derive(Debug)]
struct Prepared {
    since: Instant,
    is_told: bool,
}

impl Prepared {
    fn now(is_told: bool) -> Self {
        Self { since: Instant::now(), is_told }
    }
}

/// Result of one check.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Processes to attach to.
    pub(crate) to_attach: Vec<u32>,
    /// Processes that were attached to before their own code ran.
    pub(crate) attached: Vec<(u32, Box<AttachOutcome>)>,
    /// Remarks for the status.
    pub(crate) remarks: Vec<String>,
}

const LOOKING: &str = "processes are looked at five times a second";
const BY_SHELL: &str = "programs of shells with `heapr config shell` are traced from their first instruction";

impl Flagged {
    pub(crate) fn watch(kind: FlagKind, flagged: FlaggedTargets, preload: Preload) -> Self {
        let mut shell = ShellFlags::new(kind, &preload.session);
        if let Some(shell) = &mut shell {
            shell.renew();
        }
        let guard = ExecGuard::start(kind, preload);
        let method = match &guard {
            Ok(_) => "each exec is held until it is known (fanotify)".to_owned(),
            Err(error) => format!("{LOOKING} (fanotify: {error}); {BY_SHELL}"),
        };
        let watch = FlagWatch::new(kind, flagged.takes_running);
        Self { guard: guard.ok(), watch, shell, method, prepared: HashMap::new() }
    }

    /// Whether starting programs are found by samples, instead of being reported by the kernel.
    pub(crate) fn looks_itself(&self) -> bool {
        self.guard.is_none()
    }

    /// Method by which starting programs are seen.
    pub(crate) fn method(&self) -> &str {
        &self.method
    }

    /// Returns what has started since the last check. `records`: whether a process is being
    /// recorded.
    pub(crate) fn look(&mut self, records: impl Fn(u32) -> bool) -> Findings {
        let mut findings = Findings::default();
        if let Some(shell) = &mut self.shell {
            shell.renew();
        }
        // The sample comes first: what the guard has handled since then is in its outcomes.
        let started = self.watch.started();
        if let Some(error) = self.watch.take_error() {
            findings.remarks.push(format!("the flags cannot be read: {error}"));
        }
        let is_being_seen_to = |pid: u32| self.guard.as_ref().is_some_and(|guard| guard.is_at(pid));
        let mut started: Vec<u32> = started.into_iter().filter(|&pid| !is_being_seen_to(pid)).collect();
        started.retain(|&pid| {
            let is_told = self.shell.is_some() && is_told_by_shell(pid);
            if is_told {
                self.prepared.entry(pid).or_insert_with(|| Prepared::now(false));
            }
            !is_told
        });
        let news = self.guard.as_ref().map(ExecGuard::news).unwrap_or_default();
        for news in news {
            match news {
                News::Prepared(pid) => {
                    self.prepared.insert(pid, Prepared::now(true));
                    findings
                        .remarks
                        .push(format!("process {pid} is flagged and traced from its first instruction"));
                }
                News::Attached(pid, outcome) => {
                    self.prepared.insert(pid, Prepared::now(true));
                    findings.attached.push((pid, outcome));
                }
                News::Unprepared(pid, reason) => {
                    started.push(pid);
                    if let Some(reason) = reason {
                        findings.remarks.push(format!(
                            "process {pid} is flagged, and could not be traced from its first instruction: {reason}"
                        ));
                    }
                }
                News::Inherited(pid) => drop(self.prepared.insert(pid, Prepared::now(true))),
                News::Settled => {}
                News::Ended(reason) => {
                    self.method = format!("{LOOKING} (fanotify: {reason}); {BY_SHELL}");
                    self.guard = None;
                }
            }
        }
        self.prepared.retain(|&pid, prepared| {
            let is_recorded = records(pid);
            if is_recorded && !prepared.is_told {
                prepared.is_told = true;
                findings
                    .remarks
                    .push(format!("process {pid} is flagged and traced from its first instruction"));
            }
            let is_overdue = prepared.since.elapsed() > LOAD_LIMIT;
            if is_overdue && !is_recorded && heapr_proc::is_alive(pid) {
                started.push(pid);
            }
            !is_overdue
        });
        started.retain(|pid| !self.prepared.contains_key(pid));
        started.sort_unstable();
        started.dedup();
        findings.to_attach = started;
        findings
    }
}
