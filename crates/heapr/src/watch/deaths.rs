//! Incidents of processes that have ended.

use heapr_incident::{
    CauseKind, DeathFacts, Ending, GroupProcess, Incident, KernelKill, Kind, SCHEMA, cause, tell,
};

use super::dead::{Dead, DeadsGroup, keep_largest};
use super::failed_calls::failed_count;
use super::held::add_holders;
use super::recorded::Recorded;

/// Dead process with the kill that the kernel's log tells.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) dead: Dead,
    pub(super) kill: Option<KernelKill>,
}

/// Circumstances of the deaths of one group.
#[derive(Debug)]
pub(super) struct Circumstances<'a> {
    pub(super) group: Option<&'a DeadsGroup>,
    pub(super) recorded: Recorded<'a>,
    /// Reason for which the kernel's log is not read.
    pub(super) log_not_read: Option<&'a str>,
}

/// Makes the incidents of processes of one group that ended together. The kernel's kills have an
/// incident each. Processes that were killed with them are named in the first one.
pub(super) fn incidents(all: Vec<Told>, circumstances: &Circumstances<'_>) -> Vec<Incident> {
    let possible = all.iter().filter(|told| is_kill_possible(told.dead.ending));
    let (with_record, without_record): (Vec<_>, Vec<_>) = possible.partition(|told| told.kill.is_some());
    let counts = (with_record.len() as u64, without_record.len() as u64);
    let mut judged: Vec<Incident> = Vec::new();
    let mut company: Vec<GroupProcess> = Vec::new();
    let mut all: Vec<Told> = all
        .into_iter()
        .filter(|told| told.kill.is_some() || told.dead.is_incident(circumstances.group))
        .collect();
    // The log has the size of that moment, the last reading may be older.
    for told in &mut all {
        let killed_bytes = told.kill.as_ref().and_then(|kill| kill.rss_bytes);
        told.dead.named.rss_bytes = killed_bytes.or(told.dead.named.rss_bytes);
    }
    // The kernel's kills first, then the largest process.
    all.sort_by_key(|told| (told.kill.is_none(), std::cmp::Reverse(told.dead.named.rss_bytes)));
    for told in all {
        let is_first = judged.is_empty();
        let is_company = !is_first && told.kill.is_none() && is_kill_possible(told.dead.ending);
        if is_company {
            company.push(GroupProcess {
                pid: told.dead.named.pid,
                name: told.dead.named.name.clone(),
                rss_bytes: told.dead.named.rss_bytes.unwrap_or(0),
                is_recorded: told.dead.not_recorded.is_none(),
            });
            continue;
        }
        judged.push(incident(told, circumstances, counts));
    }
    if let Some(first) = judged.first_mut() {
        first.ended_with = company;
    }
    judged.iter_mut().for_each(tell);
    judged
}

/// Whether the kernel may have ended a process so for lack of memory.
pub(super) fn is_kill_possible(ending: Ending) -> bool {
    ending.is_kill() || ending == Ending::Unknown
}

/// Makes an incident. `counts`: deaths of the group that the kernel's log tells, and others.
fn incident(told: Told, circumstances: &Circumstances<'_>, counts: (u64, u64)) -> Incident {
    let Told { dead, kill } = told;
    let is_by_itself = kill.is_none() && !is_kill_possible(dead.ending);
    let failed_count = match is_by_itself {
        true => failed_count(circumstances.recorded.path, dead.named.pid, dead.time_unix_ns).unwrap_or(0),
        false => 0,
    };
    let levels = circumstances.group.map(|group| group.levels.as_slice()).unwrap_or_default();
    let mut cause = cause(&DeathFacts {
        ending: dead.ending,
        kill: kill.as_ref(),
        is_log_read: circumstances.log_not_read.is_none(),
        levels,
        deaths_with_record: counts.0,
        deaths_without_record: counts.1,
        address_space: dead.address_space,
        runtime: dead.runtime.as_ref(),
        at_out_of_memory: &dead.at_out_of_memory,
        failed_count,
    });
    let mut group = circumstances.group.map(|group| group.facts.clone());
    // systemd removes a unit's group with its last process: the limit is that of the last reading.
    if let Some(facts) = group.as_ref().filter(|facts| facts.limited_group == cause.group) {
        let is_of_group = cause.kind.is_of_group() && cause.group.is_some();
        cause.limit_bytes = cause.limit_bytes.or(facts.limit_bytes.filter(|_| is_of_group));
    }
    // The list of the group has the same size of it.
    if let (Some(facts), Some(rss_bytes)) = (&mut group, dead.named.rss_bytes) {
        let own = facts.processes.iter_mut().filter(|process| process.pid == dead.named.pid);
        own.for_each(|own| own.rss_bytes = rss_bytes);
        keep_largest(&mut facts.processes);
    }
    let mut incident = Incident {
        schema: SCHEMA.to_owned(),
        kind: Kind::Death,
        time_unix_ns: dead.time_unix_ns,
        not_before_unix_ns: dead.not_before_unix_ns,
        process: dead.named,
        ending: Some(dead.ending),
        cause,
        group,
        account: dead.account,
        course: circumstances.group.map(|group| group.course.clone()).unwrap_or_default(),
        ..Incident::default()
    };
    if let Some(why) = circumstances.log_not_read {
        incident.unknown.push(format!("the kernel's log was not read: {why}"));
    }
    if let Some(why) = dead.not_recorded {
        incident.unknown.push(format!("it was not recorded: {why}"));
    }
    if dead.ending == Ending::Unknown {
        incident.unknown.push("its exit status could not be read".to_owned());
    }
    if incident.cause.kind == CauseKind::Killed {
        incident.unknown.push("who sent the SIGKILL".to_owned());
    }
    let mut accounts = circumstances.group.map(|group| group.accounts.clone()).unwrap_or_default();
    if let Some(own) =
        incident.account.clone().filter(|own| accounts.iter().all(|known| known.pid != own.pid))
    {
        accounts.push(own);
    }
    // A crash or an exit is of this process alone.
    if !incident.cause.kind.is_of_group() {
        accounts.retain(|account| account.pid == incident.process.pid);
    }
    add_holders(&mut incident, circumstances.recorded, &accounts, true);
    incident
}
