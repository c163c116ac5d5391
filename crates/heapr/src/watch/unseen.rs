//! Kills of processes that started and died between two scans: the kernel's log alone tells them.

use heapr_incident::{Ending, GroupProcess, KernelKill, ProcessNamed, unix_ns};

use super::dead::{Dead, keep_largest};
use super::deaths::{Circumstances, Told, incidents};
use super::watched_process::WatchedProcess;
use super::watcher::Watcher;

/// Time in which kills are of one moment, in microseconds: a process that is killed later may have
/// started since, or had another size.
const TOGETHER_US: u64 = 1_000_000;

impl Watcher {
    /// Makes the incidents of killed processes of the watched groups that no scan has seen.
    pub(super) fn tell_unseen(&mut self) {
        let seen: Vec<u32> = self
            .watched
            .processes
            .iter()
            .chain(self.pending.iter().map(|pending| &pending.process))
            .map(WatchedProcess::pid)
            .collect();
        let targets = &self.targets;
        let is_unseen = |kill: &KernelKill| {
            !seen.contains(&kill.pid) && kill.group.as_deref().is_some_and(|path| targets.covers(path))
        };
        let unseen = self.kills.take_all(is_unseen);
        self.kills.keep_of(&seen);
        for (number, kill) in unseen.iter().enumerate() {
            let is_its = |group: &super::watched_group::WatchedGroup| Some(group.path()) == kill.group;
            let place = self.watched.groups.iter().position(is_its);
            let mut facts = place.map(|place| self.facts_of(place, None));
            // Those of the group that were killed right after it lived at that moment.
            let is_together = |later: &&KernelKill| {
                later.group == kill.group && later.time_us.abs_diff(kill.time_us) < TOGETHER_US
            };
            if let Some(facts) = &mut facts {
                let later = unseen[number + 1..].iter().filter(is_together);
                facts.facts.processes.extend(later.filter_map(member));
                keep_largest(&mut facts.facts.processes);
            }
            self.flush();
            let circumstances = Circumstances {
                group: facts.as_ref(),
                recorded: self.recorded(),
                log_not_read: self.kills.unread(),
            };
            let mut found =
                incidents(vec![Told { dead: dead(kill), kill: Some(kill.clone()) }], &circumstances);
            for incident in found.iter_mut().filter(|incident| incident.process.rss_bytes.is_none()) {
                incident
                    .unknown
                    .push("it started and died between two scans: its size is unknown".to_owned());
            }
            self.add_deaths(found, place, &[]);
        }
    }
}

/// Process of a group at the moment before it was killed; `None`: its size is unknown.
fn member(kill: &KernelKill) -> Option<GroupProcess> {
    let name = kill.name.clone();
    Some(GroupProcess { pid: kill.pid, name, rss_bytes: kill.rss_bytes?, is_recorded: false })
}

fn dead(kill: &KernelKill) -> Dead {
    let named = ProcessNamed {
        pid: kill.pid,
        name: kill.name.clone(),
        group: kill.group.clone(),
        rss_bytes: kill.rss_bytes,
        ..ProcessNamed::default()
    };
    let ending = Ending::Signalled { signal: 9, has_core: false };
    Dead { named, ending, time_unix_ns: unix_ns(), ..Dead::default() }
}
