//! Readings of the watched processes.

use std::time::Instant;

use super::watched_process::WatchedProcess;
use super::watcher::{IDLE, NEAR_OWN, Watcher};

impl Watcher {
    /// Reads the groups that are due, each at the pace that its share of the limit asks for.
    pub(super) fn read_due(&mut self, now: Instant) {
        let mut has_read = false;
        for place in 0..self.watched.groups.len() {
            let group = &mut self.watched.groups[place];
            if group.next > now || !group.read(self.ticks) {
                continue;
            }
            // A group at rest is read whole, too, from time to time.
            self.is_journal_old |= group.is_moving;
            self.read_processes(place, true);
            self.judge(place);
            has_read = true;
        }
        if now >= self.next_own {
            self.read_own();
            self.next_own = self.ticks.after(now, IDLE);
            has_read = true;
        }
        if has_read {
            self.judge_own_limits();
        }
        // A reading may have found a heap near its limit.
        if self.watched.processes.iter().any(WatchedProcess::is_near_own_limit) {
            self.next_own = self.next_own.min(self.ticks.after(now, NEAR_OWN));
        }
        let groups = self.watched.groups.iter().map(|group| group.next);
        self.next_reading = groups.min().map_or(self.next_own, |next| next.min(self.next_own));
    }

    /// Reads the processes of a group.
    pub(super) fn read_processes(&mut self, place: usize, is_account_wanted: bool) {
        let Some(group) = self.watched.groups.get(place) else { return };
        let folder = group.folder.clone();
        for process in
            self.watched.processes.iter_mut().filter(|process| process.group.as_ref() == Some(&folder))
        {
            process.read(is_account_wanted);
        }
        if self.is_graph {
            self.look_at_objects(place);
        }
    }

    /// Looks at the objects of one process at most: the room is for one copy.
    fn look_at_objects(&mut self, place: usize) {
        if self.watched.processes.iter_mut().any(|process| process.objects.is_taking()) {
            return;
        }
        let group = &self.watched.groups[place];
        // Soft limits count, too: above them the kernel slows the processes down.
        let left_bytes =
            group.limits.iter().map(|limit| limit.limit_bytes.saturating_sub(limit.used_bytes)).min();
        let folder = self.report.store.folder().path();
        let members = self.watched.processes.iter_mut();
        for process in members.filter(|process| process.group.as_ref() == Some(&group.folder)) {
            process.look_at_objects(folder, left_bytes);
            if process.objects.is_taking() {
                break;
            }
        }
    }

    /// Looks at the heaps that grow fast towards limits of their own.
    pub(super) fn look_at_heaps(&mut self, now: Instant) {
        let mut has_read = false;
        for process in self.watched.processes.iter_mut().filter(|process| process.is_heap_due(now)) {
            process.read(true);
            has_read = true;
        }
        if has_read {
            self.judge_own_limits();
        }
    }

    /// Reads the processes that are in no group with a limit, and those near limits of their own.
    fn read_own(&mut self) {
        for process in &mut self.watched.processes {
            let is_groupless = process.group.as_ref().is_none_or(heapr_proc::GroupFolder::is_root);
            if is_groupless || process.is_near_own_limit() {
                process.read(true);
            }
        }
    }
}
