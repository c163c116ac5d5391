//! Targets of a watch: the processes and groups that they mean at the moment.

use std::collections::BTreeSet;
use std::path::Path;

use heapr_proc::{Fields, GroupFolder};
use heapr_session::{FlagTarget, ProcessFacts, descendants_of_all};

use super::arguments::WatchArguments;
use crate::processes;

/// Names of groups that runtimes put containers below.
const CONTAINER_TOPS: [&str; 6] =
    ["kubepods", "kubepods.slice", "docker", "machine.slice", "libpod_parent", "system.slice"];
/// Largest depth of a container's group below such a group.
const DEPTH_MAX: u32 = 6;

/// Targets of a watch.
#[derive(Debug, Clone, Default)]
pub(super) struct Targets {
    /// Processes, watched with their descendants, and their starts in clock ticks since boot.
    pids: Vec<(u32, u64)>,
    /// Groups, watched with those below.
    groups: Vec<GroupFolder>,
    has_containers: bool,
    pub(super) has_flagged: bool,
}

impl Targets {
    /// Resolves the arguments.
    ///
    /// # Errors
    /// A target does not exist.
    pub(super) fn of(arguments: &WatchArguments) -> anyhow::Result<Self> {
        let mut pids = Vec::new();
        for pid in processes::named(&arguments.pids, false)? {
            let start_ticks = heapr_proc::start_ticks(pid).filter(|_| heapr_proc::is_alive(pid));
            let start_ticks =
                start_ticks.ok_or_else(|| anyhow::anyhow!("no process has the number {pid}"))?;
            pids.push((pid, start_ticks));
        }
        let mut groups = Vec::new();
        for path in &arguments.groups {
            let group = GroupFolder::named(path).filter(|group| !group.is_root());
            groups.push(group.ok_or_else(|| {
                anyhow::anyhow!("no control group {path} counts memory here: its path from the root of the hierarchy is wanted")
            })?);
        }
        for unit in &arguments.units {
            groups.push(group_of_unit(unit)?);
        }
        Ok(Self { pids, groups, has_containers: arguments.containers, has_flagged: arguments.flagged })
    }

    /// Whether the user has named this process.
    pub(super) fn has_named(&self, pid: u32) -> bool {
        self.pids
            .iter()
            .any(|&(named, start_ticks)| named == pid && heapr_proc::start_ticks(pid) == Some(start_ticks))
    }

    /// Whether the processes of a group are meant.
    pub(super) fn covers(&self, path: &str) -> bool {
        let is_below = |group: &GroupFolder| {
            path.strip_prefix(&group.path()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.groups.iter().any(is_below) || self.has_containers && container_id(path).is_some()
    }

    /// Whether the targets share a control group with this process.
    pub(super) fn has_own_group(&self) -> bool {
        let own = GroupFolder::of_process(std::process::id()).filter(|group| !group.is_root());
        own.is_some_and(|own| {
            let is_same = |(pid, _): &(u32, u64)| GroupFolder::of_process(*pid).as_ref() == Some(&own);
            self.covers(&own.path()) || self.pids.iter().any(is_same)
        })
    }

    /// Processes that the targets mean now. `recorded`: live processes of the session, which are
    /// the flagged ones.
    pub(super) fn members(&self, recorded: &[u32]) -> BTreeSet<u32> {
        // The number may be another process's now.
        let is_it = |&&(pid, start_ticks): &&(u32, u64)| heapr_proc::start_ticks(pid) == Some(start_ticks);
        let named: Vec<u32> = self.pids.iter().filter(is_it).map(|&(pid, _)| pid).collect();
        let mut found: BTreeSet<u32> = named.iter().copied().collect();
        if !named.is_empty() {
            found.extend(descendants_of_all(&named));
        }
        for group in &self.groups {
            found.extend(group.pids());
        }
        if self.has_containers {
            found.extend(containers().iter().flat_map(GroupFolder::pids));
        }
        if self.has_flagged {
            found.extend(recorded);
        }
        // The watcher itself may be in a watched group.
        found.remove(&std::process::id());
        found
    }

    /// True if a process is meant by its groups alone.
    pub(super) fn are_groups_alone(&self) -> bool {
        self.pids.is_empty() && !self.has_containers && !self.has_flagged
    }

    /// Processes of named groups among these numbers, which may be those of threads.
    pub(super) fn members_among(&self, pids: &[u32]) -> BTreeSet<u32> {
        let is_process =
            |pid: u32| Fields::of_process(pid).is_ok_and(|fields| fields.number("Tgid") == Some(pid));
        let is_member = |pid: &u32| {
            let group = GroupFolder::of_process(*pid);
            group.is_some_and(|group| self.covers(&group.path())) && is_process(*pid)
        };
        pids.iter().copied().filter(|&pid| pid != std::process::id()).filter(is_member).collect()
    }
}

fn group_of_unit(unit: &str) -> anyhow::Result<GroupFolder> {
    let target = FlagTarget::Unit(unit.to_owned());
    target.check()?;
    let running = ProcessFacts::of_all().into_iter().filter(|facts| target.fits(facts));
    let mut groups = running.filter_map(|facts| GroupFolder::of_process(facts.pid));
    let is_of_unit = |group: &GroupFolder| {
        let path = group.path();
        let last = Path::new(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        last == unit || last.strip_suffix(".service") == Some(unit)
    };
    // A process may be in a group below the unit's.
    let of_unit = groups.find_map(|group| group.with_ancestors().into_iter().find(is_of_unit));
    let named = || {
        let name = if unit.contains('.') { unit.to_owned() } else { format!("{unit}.service") };
        GroupFolder::named(&format!("/system.slice/{name}"))
    };
    of_unit.or_else(named).ok_or_else(|| {
        anyhow::anyhow!(
            "no process of unit {unit} runs, and it has no control group that counts memory: start it first"
        )
    })
}

/// Groups of containers: those below the runtimes' groups whose name ends in a container's id.
fn containers() -> Vec<GroupFolder> {
    let tops = GroupFolder::roots().into_iter().flat_map(|root| root.below());
    let is_top = |group: &GroupFolder| CONTAINER_TOPS.contains(&group.path().trim_start_matches('/'));
    let mut found = Vec::new();
    for top in tops.filter(is_top) {
        add_containers(&top, 0, &mut found);
    }
    found
}

fn add_containers(group: &GroupFolder, depth: u32, found: &mut Vec<GroupFolder>) {
    for below in group.below() {
        if container_id(&below.path()).is_some() {
            found.push(below);
        } else if depth < DEPTH_MAX {
            add_containers(&below, depth + 1, found);
        }
    }
}

/// Id of a container, by the last part of a group's path that has one.
pub(super) fn container_id(path: &str) -> Option<String> {
    const ID_CHARACTERS: usize = 64;
    path.rsplit('/').find_map(|part| {
        let part = part.strip_suffix(".scope").unwrap_or(part);
        let id = part.rsplit(['-', ':']).next()?;
        let is_id = id.len() == ID_CHARACTERS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| id.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::container_id;

    #[test]
    fn a_container_is_known_by_its_id() {
        let id = "3f2a9c41b7d0e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e";
        for path in [
            format!("/docker/{id}"),
            format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
            format!("/kubepods/besteffort/pod12ab/{id}/inner"),
        ] {
            assert_eq!(container_id(&path).as_deref(), Some(id), "{path}");
        }
        assert_eq!(container_id("/system.slice/nginx.service"), None);
    }
}
