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
/// incident each, those of a whole group one for all. Processes that were killed with them are
/// named in the first one.
pub(super) fn incidents(all: Vec<Told>, circumstances: &Circumstances<'_>) -> Vec<Incident> {
    let possible = all.iter().filter(|told| is_kill_possible(told.dead.ending));
    let (with_record, without_record): (Vec<_>, Vec<_>) = possible.partition(|told| told.kill.is_some());
    let counts = (with_record.len() as u64, without_record.len() as u64);
    let mut all: Vec<Told> = all
        .into_iter()
        .filter(|told| told.kill.is_some() || told.dead.is_incident(circumstances.group))
        .collect();
    // The log has the size of that moment, the last reading may be older.
    for told in &mut all {
        let killed_bytes = told.kill.as_ref().and_then(|kill| kill.rss_bytes);
        told.dead.named.rss_bytes = killed_bytes.or(told.dead.named.rss_bytes);
    }
    // The kernel's kills first, in their order, then the largest process.
    all.sort_by_key(|told| {
        let kill_us = told.kill.as_ref().map_or(u64::MAX, |kill| kill.time_us);
        (kill_us, std::cmp::Reverse(told.dead.named.rss_bytes))
    });
    let mut all = all.into_iter();
    let Some(first) = all.next() else { return Vec::new() };
    let is_of_whole_group = |told: &Told| told.kill.as_ref().is_some_and(|kill| kill.is_of_whole_group);
    let is_whole_group = is_of_whole_group(&first);
    let (company, others): (Vec<Told>, Vec<Told>) = all.partition(|told| match told.kill {
        Some(_) => is_whole_group && is_of_whole_group(told),
        None => is_kill_possible(told.dead.ending),
    });
    let company = company.iter().map(|told| member(&told.dead)).collect();
    let mut judged = vec![incident(first, company, circumstances, counts)];
    judged.extend(others.into_iter().map(|told| incident(told, Vec::new(), circumstances, counts)));
    judged.iter_mut().for_each(tell);
    judged
}

fn member(dead: &Dead) -> GroupProcess {
    GroupProcess {
        pid: dead.named.pid,
        name: dead.named.name.clone(),
        rss_bytes: dead.named.rss_bytes.unwrap_or(0),
        is_recorded: dead.not_recorded.is_none(),
    }
}

/// Whether the kernel may have ended a process so for lack of memory.
pub(super) fn is_kill_possible(ending: Ending) -> bool {
    ending.is_kill() || ending == Ending::Unknown
}

/// Makes an incident. `company`: processes that ended with it. `counts`: deaths of the group that
/// the kernel's log tells, and others.
fn incident(
    told: Told,
    company: Vec<GroupProcess>,
    circumstances: &Circumstances<'_>,
    counts: (u64, u64),
) -> Incident {
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
        ended_with: company,
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

#[cfg(test)]
mod tests {
    use heapr_incident::{ProcessNamed, Scope};

    use super::*;

    const KILL: Ending = Ending::Signalled { signal: 9, has_core: false };

    fn killed(pid: u32, is_of_whole_group: bool) -> Told {
        let named = ProcessNamed { pid, name: "worker".to_owned(), ..ProcessNamed::default() };
        let kill = KernelKill {
            time_us: 1,
            pid,
            name: "worker".to_owned(),
            scope: Scope::Group,
            limited_group: Some("/g".to_owned()),
            group: Some("/g".to_owned()),
            is_of_whole_group,
            rss_bytes: Some(u64::from(pid) << 20),
        };
        Told { dead: Dead { named, ending: KILL, ..Dead::default() }, kill: Some(kill) }
    }

    fn company(is_of_whole_group: bool) -> Vec<(u32, Vec<u32>)> {
        let circumstances = Circumstances {
            group: None,
            recorded: Recorded { path: std::path::Path::new("/nonexistent"), recorder_pid: None },
            log_not_read: None,
        };
        let all = [1, 3, 2].map(|pid| killed(pid, is_of_whole_group)).into();
        let told = incidents(all, &circumstances);
        let pids = |incident: &Incident| incident.ended_with.iter().map(|process| process.pid).collect();
        told.iter().map(|incident| (incident.process.pid, pids(incident))).collect()
    }

    #[test]
    fn a_group_that_is_killed_as_a_whole_is_one_incident() {
        assert_eq!(company(true), [(3, vec![2, 1])]);
    }

    #[test]
    fn kills_of_single_processes_are_incidents_of_their_own() {
        assert_eq!(company(false), [(3, vec![]), (2, vec![]), (1, vec![])]);
    }
}
