//! Facts of a watched group for an incident.

use std::collections::BTreeSet;

use heapr_incident::{GroupFacts, GroupProcess, More};
use heapr_proc::GroupFolder;
use heapr_session::ProcessFacts;

use super::dead::{DeadsGroup, PROCESSES_MAX, keep_largest};
use super::watched_group::WatchedGroup;
use super::watched_process::WatchedProcess;

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
    let known: BTreeSet<u32> = facts.processes.iter().map(|process| process.pid).collect();
    facts.processes.extend(neighbours(facts.limited_group.as_deref(), &known));
    keep_largest(&mut facts.processes);
    facts.events = levels.first().map(|own| own.events).unwrap_or_default();
    read_limit_again(&mut facts, &levels, group);
    DeadsGroup { facts, course: group.course.clone(), levels, accounts }
}

/// Takes over the limit of this moment: it may have been lowered since the last reading.
fn read_limit_again(facts: &mut GroupFacts, levels: &[More], group: &WatchedGroup) {
    if facts.limit_bytes.is_some_and(|limit_bytes| group.has_limit(facts, limit_bytes)) {
        return;
    }
    let limited = levels.iter().find(|level| Some(&level.path) == facts.limited_group.as_ref());
    if let Some(limit_bytes) = limited.and_then(|level| level.limit_bytes) {
        let now = GroupFacts { limit_bytes: Some(limit_bytes), ..facts.clone() };
        facts.lowered = now.lowered_since(facts);
        facts.limit_bytes = Some(limit_bytes);
    }
}

/// Largest processes that share the limit and are not watched.
fn neighbours(limited: Option<&str>, known: &BTreeSet<u32>) -> Vec<GroupProcess> {
    let pids = limited.and_then(GroupFolder::named).map(|group| group.pids()).unwrap_or_default();
    let others = pids.into_iter().filter(|pid| !known.contains(pid));
    let mut sizes: Vec<(u64, u32)> =
        others.filter_map(|pid| Some((heapr_proc::resident_bytes(pid)?, pid))).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    sizes.truncate(PROCESSES_MAX);
    let of = |(rss_bytes, pid): (u64, u32)| {
        let facts = ProcessFacts::of(pid)?;
        Some(GroupProcess { pid, name: facts.name().to_owned(), rss_bytes, is_recorded: false })
    };
    sizes.into_iter().filter_map(of).collect()
}
