//! Facts of a watched group for an incident.

use heapr_incident::{GroupProcess, More};

use super::dead::DeadsGroup;
use super::watched_group::WatchedGroup;
use super::watched_process::WatchedProcess;

/// Largest number of processes that an incident lists.
const PROCESSES_MAX: usize = 50;

/// Facts of a group, with its living and its dead processes.
pub(super) fn of_group<'a>(
    group: &WatchedGroup,
    processes: impl Iterator<Item = &'a WatchedProcess>,
    levels: Vec<More>,
) -> DeadsGroup {
    let mut facts = group.facts.clone();
    let mut accounts = Vec::new();
    for process in processes {
        facts.processes.push(GroupProcess {
            pid: process.pid(),
            name: process.named.name.clone(),
            rss_bytes: process.named.rss_bytes.unwrap_or(0),
            is_recorded: process.not_recorded.is_none(),
        });
        accounts.extend(process.account.clone());
    }
    facts
        .processes
        .sort_by(|one, other| other.rss_bytes.cmp(&one.rss_bytes).then_with(|| one.pid.cmp(&other.pid)));
    facts.processes.truncate(PROCESSES_MAX);
    facts.events = levels.first().map(|own| own.events).unwrap_or_default();
    DeadsGroup { facts, course: group.course.clone(), levels, accounts }
}
