//! Cause of a death, from facts alone.

use heapr_table::quantity::{bytes, plural};
use serde::{Deserialize, Serialize};

use crate::ending::{Ending, signal_name};
use crate::group_levels::More;
use crate::kernel_log::{KernelKill, Scope};
use crate::own_limits::{AtOutOfMemory, Limited, RuntimeLimit};

/// Kind of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// Kernel, for the limit of a control group.
    KernelGroup,
    /// Kernel, for the limit of a control group whose processes it kills together.
    KernelWholeGroup,
    /// Kernel, for the memory of the machine.
    KernelMachine,
    /// Kernel, for lack of memory: of nodes of the machine, or of something unknown.
    Kernel,
    /// systemd-oomd, for pressure.
    SystemdOomd,
    /// Process itself, at its limit of address space.
    AddressSpace,
    /// Process itself, at the limit of its language's heap.
    RuntimeLimit,
    /// Process itself, after an OutOfMemoryError of its Java that its heap's size does not show.
    OutOfMemoryError,
    /// Process itself, after allocations that failed.
    FailedAllocation,
    /// Signal other than SIGKILL, mostly of the process itself: a fault or an abort.
    Crash,
    /// SIGKILL of an unknown sender.
    Killed,
    /// Process itself, by an exit status that is not 0.
    Exit,
    /// Limit that is near: the process lives.
    NearLimit,
    /// Limit of the process itself that is near: it lives.
    NearOwnLimit,
    /// Unknown cause.
    #[default]
    Unknown,
}

impl CauseKind {
    /// Name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KernelGroup => "kernel_group",
            Self::KernelWholeGroup => "kernel_whole_group",
            Self::KernelMachine => "kernel_machine",
            Self::Kernel => "kernel",
            Self::SystemdOomd => "systemd_oomd",
            Self::AddressSpace => "address_space",
            Self::RuntimeLimit => "runtime_limit",
            Self::OutOfMemoryError => "out_of_memory_error",
            Self::FailedAllocation => "failed_allocation",
            Self::Crash => "crash",
            Self::Killed => "killed",
            Self::Exit => "exit",
            Self::NearLimit => "near_limit",
            Self::NearOwnLimit => "near_own_limit",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the memory of all processes counts that share a limit, not that of one process.
    #[must_use]
    pub fn is_of_group(self) -> bool {
        matches!(
            self,
            Self::KernelGroup
                | Self::KernelWholeGroup
                | Self::KernelMachine
                | Self::Kernel
                | Self::SystemdOomd
                | Self::NearLimit
        )
    }
}

/// Certainty of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// A record of the kernel or of the process's own end tells it.
    Fact,
    /// Figures fit, and no record tells it.
    Likely,
    /// No fact tells it.
    #[default]
    Unknown,
}

/// Cause of an incident.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cause {
    /// Kind of the cause.
    pub kind: CauseKind,
    /// Certainty of the kind.
    pub certainty: Certainty,
    /// Group whose limit was met.
    pub group: Option<String>,
    /// Limit that was met, in bytes.
    pub limit_bytes: Option<u64>,
    /// Sentences with the facts that tell the cause.
    pub evidence: Vec<String>,
}

/// Time before an end in which an allocation that failed may be the cause, in seconds.
pub const FAILED_SECONDS: u64 = 10;

/// Facts about a death.
#[derive(Debug, Clone, Default)]
pub struct DeathFacts<'a> {
    /// End of the process.
    pub ending: Ending,
    /// Kill of the process in the kernel's log.
    pub kill: Option<&'a KernelKill>,
    /// Whether the kernel's log was read until after the death.
    pub is_log_read: bool,
    /// Events of the process's group and of the groups above it while it was watched.
    pub levels: &'a [More],
    /// Deaths in the group whose kill is not told by the log, with this one.
    pub deaths_without_record: u64,
    /// Deaths in the group whose kill is told by the log.
    pub deaths_with_record: u64,
    /// Address space at the last reading.
    pub address_space: Option<Limited>,
    /// Heap of the language at the last reading.
    pub runtime: Option<&'a RuntimeLimit>,
    /// Options by which the program ends at an OutOfMemoryError.
    pub at_out_of_memory: &'a [AtOutOfMemory],
    /// Recorded allocations of the process that failed in its last [`FAILED_SECONDS`].
    pub failed_count: u64,
}

/// Determines the cause of a death.
#[must_use]
pub fn cause(facts: &DeathFacts<'_>) -> Cause {
    if let Some(kill) = facts.kill {
        return by_log(kill, facts.levels);
    }
    match facts.ending {
        Ending::Signalled { .. } if facts.ending.is_kill() => by_counters(facts),
        Ending::Unknown => by_counters(facts),
        Ending::Signalled { signal, has_core } => by_itself(facts, signal, has_core),
        Ending::Exited { status } => by_exit(facts, status),
    }
}

fn by_log(kill: &KernelKill, levels: &[More]) -> Cause {
    let kind = match kill.scope {
        Scope::Machine => CauseKind::KernelMachine,
        Scope::Nodes => CauseKind::Kernel,
        Scope::Group if kill.is_of_whole_group => CauseKind::KernelWholeGroup,
        Scope::Group => CauseKind::KernelGroup,
    };
    let seconds = kill.time_us / 1_000_000;
    let mut evidence = vec![format!(
        "the kernel's log has the kill of {} ({}) at {seconds}.{:06} s since boot",
        kill.name,
        kill.pid,
        kill.time_us % 1_000_000
    )];
    let limited = match &kill.limited_group {
        Some(path) => levels.iter().find(|level| level.path == *path),
        None if kill.scope == Scope::Group => limit_that_was_hit(levels),
        None => None,
    };
    if kill.scope == Scope::Group && kill.limited_group.is_none() {
        let hit = limited.map(|level| format!(": the limit of {} was hit", level.path)).unwrap_or_default();
        evidence.push(format!("the record does not name the limited group{hit}"));
    }
    if kill.scope == Scope::Nodes {
        evidence.push("a cpuset or a memory policy left it nodes that had no memory".to_owned());
    }
    // The second line of a record is the same for the machine and for its nodes.
    let is_likely = kill.scope == Scope::Machine && kill.group.is_none();
    Cause {
        kind,
        certainty: if is_likely { Certainty::Likely } else { Certainty::Fact },
        group: kill.limited_group.clone().or_else(|| limited.map(|level| level.path.clone())),
        limit_bytes: limited.and_then(|level| level.limit_bytes),
        evidence,
    }
}

/// Level whose hard limit was hit while the group was watched, the inner one first. Version 2 also
/// counts hits that files gave way to, and tells those apart after which memory ran out.
fn limit_that_was_hit(levels: &[More]) -> Option<&More> {
    let is_hit = |level: &&More| {
        let times = level.events.oom.or(level.events.limit_hits);
        level.limit_bytes.is_some() && times.is_some_and(|times| times > 0)
    };
    levels.iter().find(is_hit)
}

/// Cause of an end by SIGKILL, or of an unknown end, of which the log has no record.
fn by_counters(facts: &DeathFacts<'_>) -> Cause {
    if let Some(level) =
        facts.levels.iter().find(|level| level.events.oomd_kill.is_some_and(|times| times > 0))
    {
        return Cause {
            kind: CauseKind::SystemdOomd,
            certainty: if facts.ending.is_kill() { Certainty::Fact } else { Certainty::Likely },
            group: Some(level.path.clone()),
            limit_bytes: None,
            evidence: vec![format!("systemd-oomd counts a kill in {}", level.path)],
        };
    }
    let kills = facts.levels.first().and_then(|own| own.events.oom_kill);
    // Kills that the log tells are of other processes.
    match kills.map(|kills| kills.saturating_sub(facts.deaths_with_record)) {
        Some(kills) if kills > 0 => by_kill_counter(facts, kills),
        _ => without_record(facts, kills),
    }
}

fn by_kill_counter(facts: &DeathFacts<'_>, kills: u64) -> Cause {
    let hit = limit_that_was_hit(facts.levels);
    let is_whole =
        facts.levels.iter().any(|level| level.events.oom_group_kill.is_some_and(|times| times > 0));
    // Version 2 counts the times that memory ran out. Groups above a namespace's root are not seen.
    let has_no_hit = facts.levels.iter().all(|level| level.path != "/" && level.events.oom == Some(0));
    let kind = match hit {
        _ if is_whole => CauseKind::KernelWholeGroup,
        Some(_) => CauseKind::KernelGroup,
        None if has_no_hit => CauseKind::KernelMachine,
        None => CauseKind::Kernel,
    };
    // The counter tells how many processes were killed, not which; a log that was read would.
    let is_certain = kills >= facts.deaths_without_record
        && facts.ending.is_kill()
        && !facts.is_log_read
        && kind != CauseKind::KernelMachine;
    let mut evidence =
        vec![format!("the group's counter of kills for lack of memory rose by {kills} while it was watched")];
    if let Some(level) = hit {
        evidence.push(format!("the limit of {} was hit", level.path));
    }
    let log = if facts.is_log_read { "has no kill of it" } else { "could not be read" };
    evidence.push(format!("the kernel's log {log}"));
    Cause {
        kind,
        certainty: if is_certain { Certainty::Fact } else { Certainty::Likely },
        group: hit.map(|level| level.path.clone()),
        limit_bytes: hit.and_then(|level| level.limit_bytes),
        evidence,
    }
}

/// Cause of an end for which neither the log nor a counter tells a kill by the kernel.
fn without_record(facts: &DeathFacts<'_>, kills: Option<u64>) -> Cause {
    let mut evidence = Vec::new();
    match (facts.is_log_read, kills) {
        (true, _) => evidence.push("the kernel's log has no kill of it".to_owned()),
        (false, Some(_)) => {
            evidence.push("the group's counter of kills for lack of memory did not rise".to_owned())
        }
        (false, None) => {
            evidence.push("neither the kernel's log nor a counter of kills could be read".to_owned())
        }
    }
    let is_told = facts.is_log_read || kills.is_some();
    if facts.ending == Ending::Unknown {
        return Cause { evidence, ..Cause::default() };
    }
    if facts.levels.iter().any(|level| level.path.contains("kubepods")) {
        evidence.push("a kubelet that evicts or restarts a container ends it so, too".to_owned());
    }
    Cause {
        kind: if is_told { CauseKind::Killed } else { CauseKind::Unknown },
        // The counter counts from the last incident of the group on, which may be a moment ago.
        certainty: match is_told {
            true if facts.is_log_read => Certainty::Fact,
            true => Certainty::Likely,
            false => Certainty::Unknown,
        },
        evidence,
        ..Cause::default()
    }
}

/// Cause of an end by a signal that a process mostly sends itself.
fn by_itself(facts: &DeathFacts<'_>, signal: i32, has_core: bool) -> Cause {
    let mut evidence = vec![format!("it ended by {}", signal_name(signal))];
    if has_core {
        evidence.push("the kernel wrote a core file".to_owned());
    }
    at_own_limit(facts, evidence, CauseKind::Crash)
}

fn by_exit(facts: &DeathFacts<'_>, status: i32) -> Cause {
    at_own_limit(facts, vec![format!("it ended with status {status}")], CauseKind::Exit)
}

fn at_own_limit(facts: &DeathFacts<'_>, mut evidence: Vec<String>, otherwise: CauseKind) -> Cause {
    let option = facts.at_out_of_memory.iter().find(|option| option.ends_so(facts.ending));
    if let Some(option) = option {
        evidence.push(format!("{} ends it so after an OutOfMemoryError", option.option()));
    }
    if facts.failed_count > 0 {
        let failed = plural(facts.failed_count, "allocation");
        evidence.push(format!("{failed} failed in its last {FAILED_SECONDS} seconds"));
    }
    if let Some(runtime) = facts.runtime.filter(|runtime| runtime.is_full()) {
        let amount = runtime.amount;
        let expected = runtime.expected_bytes.filter(|_| !amount.is_full());
        let later = expected.map(|expected| {
            format!(" at the last reading; at its growth before, {} at the end", bytes(expected))
        });
        evidence.push(format!(
            "{} had {} of the {} that {} allows{}",
            runtime.heap,
            bytes(amount.used_bytes),
            bytes(amount.limit_bytes),
            runtime.set_by,
            later.unwrap_or_default()
        ));
        let limit_bytes = Some(amount.limit_bytes);
        let (kind, certainty) = (CauseKind::RuntimeLimit, Certainty::Likely);
        return Cause { kind, certainty, group: None, limit_bytes, evidence };
    }
    if let Some(space) = facts.address_space.filter(Limited::is_full) {
        evidence.push(format!(
            "it had mapped {} of the {} that its limit of address space allows",
            bytes(space.used_bytes),
            bytes(space.limit_bytes)
        ));
        let limit_bytes = Some(space.limit_bytes);
        let (kind, certainty) = (CauseKind::AddressSpace, Certainty::Likely);
        return Cause { kind, certainty, group: None, limit_bytes, evidence };
    }
    // A program may end so for another reason: its own exit(3), an assertion.
    let kind = match option {
        Some(_) => CauseKind::OutOfMemoryError,
        None if facts.failed_count > 0 => CauseKind::FailedAllocation,
        None => return Cause { kind: otherwise, certainty: Certainty::Fact, evidence, ..Cause::default() },
    };
    Cause { kind, certainty: Certainty::Likely, evidence, ..Cause::default() }
}

#[cfg(test)]
mod tests;
