//! Processes and groups that are new, and those that are gone.

use std::collections::{BTreeSet, HashSet};

use heapr_proc::GroupFolder;

use super::recorder::{Recorder, recorded};
use super::room::Room;
use super::starts::{Look, Starts};
use super::targets::Targets;
use super::watched_group::WatchedGroup;
use super::watched_process::WatchedProcess;

/// Watched processes and their groups.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) processes: Vec<WatchedProcess>,
    pub(super) groups: Vec<WatchedGroup>,
    starts: Starts,
}

impl Watched {
    /// Does what [`Self::scan`] does, if a process may be new or may be recorded only now.
    pub(super) fn scan_if_due(&mut self, targets: &Targets, recorder: Option<&Recorder>) -> bool {
        // A process may become flagged by an exec, and room comes without any notice.
        let is_due = targets.has_flagged || self.processes.iter().any(|process| process.lacks_room);
        match self.starts.look(self.groups.len()) {
            Look::None if !is_due => false,
            Look::Among(mut started) if !is_due && targets.are_groups_alone() => {
                started.retain(|&pid| self.processes.iter().all(|process| process.pid() != pid));
                self.add(targets.members_among(&started), targets, recorder)
            }
            _ => self.scan(targets, recorder),
        }
    }

    /// Adds the processes that the targets mean now, and has them recorded. Returns true if any was
    /// new.
    pub(super) fn scan(&mut self, targets: &Targets, recorder: Option<&Recorder>) -> bool {
        let by_session = match recorder {
            Some(recorder) if targets.has_flagged => {
                recorder.status().map(|status| recorded(&status)).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        self.add(targets.members(&by_session), targets, recorder)
    }

    /// Adds the members that are new.
    fn add(&mut self, mut members: BTreeSet<u32>, targets: &Targets, recorder: Option<&Recorder>) -> bool {
        // The recorder may be in a watched group, as the watcher may.
        recorder.map(|recorder| members.remove(&recorder.pid));
        let known: BTreeSet<u32> = self.processes.iter().map(WatchedProcess::pid).collect();
        let new: Vec<u32> = members.difference(&known).copied().collect();
        let (mut added, group_count) = (Vec::new(), self.groups.len());
        for pid in new {
            let Some(mut process) = WatchedProcess::of(pid) else { continue };
            process.is_named = targets.has_named(pid);
            self.add_group(&process);
            added.push(pid);
            self.processes.push(process);
        }
        let is_new = !added.is_empty();
        let mut room = Room::default();
        let waiting = self.processes.iter().filter(|process| process.lacks_room);
        added.extend(waiting.map(WatchedProcess::pid).filter(|&pid| room.plan(pid).is_ok()));
        if !added.is_empty() {
            self.have_recorded(&added, recorder);
        }
        self.groups.iter_mut().skip(group_count).for_each(WatchedGroup::begin_course);
        is_new
    }

    fn add_group(&mut self, process: &WatchedProcess) {
        let Some(folder) = process.group.as_ref().filter(|folder| !folder.is_root()) else { return };
        if self.groups.iter().all(|group| group.folder != *folder) {
            self.groups.push(WatchedGroup::of(folder.clone()));
        }
    }

    /// Has processes recorded that are not yet. A failure is a fact of the process, not of the
    /// watch.
    pub(super) fn have_recorded(&mut self, pids: &[u32], recorder: Option<&Recorder>) {
        let (failed, refused) = match recorder {
            None => {
                (pids.iter().map(|&pid| (pid, "no recorder runs".to_owned())).collect::<Vec<_>>(), Vec::new())
            }
            Some(recorder) => not_recorded(pids, recorder),
        };
        for process in self.processes.iter_mut().filter(|process| pids.contains(&process.pid())) {
            let is_it = |(pid, _): &&(u32, String)| *pid == process.pid();
            let failure = refused.iter().find(is_it).or_else(|| failed.iter().find(is_it));
            process.lacks_room = refused.iter().any(|(pid, _)| *pid == process.pid());
            process.not_recorded = failure.map(|(_, why)| why.clone());
            if let Some((pid, why)) = failure {
                warn!("process {pid} is watched, but not recorded: {why}");
            }
        }
    }

    /// Places of processes without a descriptor that tells their end: no more could be opened.
    pub(super) fn without_life(&self) -> Vec<usize> {
        let places = self.processes.iter().enumerate();
        places.filter(|(_, process)| process.life().is_none()).map(|(place, _)| place).collect()
    }

    /// Place of a process's group.
    pub(super) fn group_of(&self, process: &WatchedProcess) -> Option<usize> {
        let folder = process.group.as_ref()?;
        self.groups.iter().position(|group| group.folder == *folder)
    }

    /// Removes groups of which no process is watched. A group that is made anew under the same name
    /// needs notices of its own. One that is meant itself stays while a process lives in it: the
    /// next scan finds that process, and it may be killed before.
    pub(super) fn drop_groups(&mut self, targets: &Targets) {
        let with_process: HashSet<&GroupFolder> =
            self.processes.iter().filter_map(|process| process.group.as_ref()).collect();
        let has_process = |group: &WatchedGroup| {
            with_process.contains(&group.folder)
                || targets.covers(&group.path()) && !group.folder.pids().is_empty()
        };
        self.groups.retain(has_process);
    }
}

/// Largest number of processes that are attached to by one request: an answer has a minute.
const ADDED_AT_ONCE: usize = 8;

/// Processes with a reason.
type Reasons = Vec<(u32, String)>;

/// Has processes recorded. Returns those that are not, with the reason, and those that are not
/// asked for as their groups have no room.
fn not_recorded(pids: &[u32], recorder: &Recorder) -> (Reasons, Reasons) {
    let known = || recorder.status().map(|status| recorded(&status));
    let already = match known() {
        Ok(already) => already,
        Err(error) => return (pids.iter().map(|&pid| (pid, format!("{error:#}"))).collect(), Vec::new()),
    };
    let new: Vec<u32> = pids.iter().copied().filter(|pid| !already.contains(pid)).collect();
    let (mut failed, mut refused, mut fits, mut room) = (Vec::new(), Vec::new(), Vec::new(), Room::default());
    for pid in new {
        match room.plan(pid) {
            Ok(()) => fits.push(pid),
            Err(why) => refused.push((pid, why)),
        }
    }
    for part in fits.chunks(ADDED_AT_ONCE) {
        match recorder.add(part) {
            Ok(refused) => failed.extend(refused),
            Err(error) => failed.extend(part.iter().map(|&pid| (pid, format!("{error:#}")))),
        }
    }
    if !failed.is_empty() {
        // A late answer is no refusal.
        let after = known().unwrap_or_default();
        failed.retain(|(pid, _)| !after.contains(pid));
    }
    (failed, refused)
}
