//! Completes the table of processes, so that every process number in a trace is an index into it.
//!
//! The table of processes may be damaged or not yet written, while the numbers that refer to it are
//! sound. Unknown processes stand in for the missing ones. A number that no loss explains is not
//! believed.

use super::Trace;
use crate::*;

/// Largest accepted distance of an index beyond the number of entries. Indices are dense: a larger
/// distance is more than a lost chunk explains.
pub(super) const INDEX_GAP_MAX: usize = 1 << 16;
/// Stands for a lost mapping; an empty range.
pub(super) const NO_MAPPING: Mapping = Mapping {
    process: ProcessIndex(0),
    module: ModuleIndex(0),
    start_avma: 0,
    end_avma: 0,
    bias_avma: 0,
    loaded_ns: 0,
    unloaded_ns: 0,
};
/// Stands for a process of which nothing is known.
pub(super) const UNKNOWN: Process = Process {
    pid: 0,
    parent_pid: 0,
    origin: ProcessOrigin::Exec,
    start_ns: 0,
    end_ns: None,
    executable: String::new(),
    command_line: Vec::new(),
    exit_status: None,
};

impl Trace {
    /// Makes every process number in the trace an index of [`Trace::processes`]. The table gets at
    /// least one entry, unless no process was recorded. Called after the tables are read.
    pub(super) fn complete_processes(&mut self) {
        // One more, because a number beyond 16 bits is stored differently.
        let limit = (self.processes.len() * 2 + INDEX_GAP_MAX + 1) as u32;
        let most = self.named_processes().filter(|process| process.0 < limit).max();
        let mut count = most.map_or(0, |process| process.0 as usize + 1);
        // Only then can the stacks name more processes; reading them takes time.
        if !self.damage.is_empty() || !self.is_complete || self.processes.is_empty() {
            let of_stacks = self.loaded_stacks(limit as usize).0.process_count();
            count = count.max(of_stacks);
        }
        // (The empty stack names the first process, even if there is no process.)
        let is_of_none = count <= 1 && self.is_of_no_process();
        count = if is_of_none { 0 } else { count.max(1) };
        if count > self.processes.len() {
            self.processes.resize(count, UNKNOWN);
        }
        self.leave_out_unknown();
    }

    /// Whether the recording has no process at all: nothing is lost, and nothing was written.
    fn is_of_no_process(&self) -> bool {
        let is_whole = self.damage.is_empty() && self.is_complete;
        is_whole
            && self.processes.is_empty()
            && self.named_processes().next().is_none()
            && self.snapshots.is_empty()
            && self.event_chunks().next().is_none()
            && self
                .summary_totals()
                .is_ok_and(|summary| summary.is_none_or(|summary| summary.by_heap.is_empty()))
    }

    /// The processes that entries of the tables name.
    fn named_processes(&self) -> impl Iterator<Item = ProcessIndex> + '_ {
        let parents = self.processes.iter().filter_map(|process| match process.origin {
            ProcessOrigin::Fork { parent } => Some(parent),
            ProcessOrigin::Exec => None,
        });
        let snapshots = self.snapshots.iter().flat_map(|snapshot| &snapshot.processes);
        (self.threads.iter().map(|entry| entry.process))
            .chain(self.mappings.iter().map(|entry| entry.process))
            .chain(self.rss_samples.iter().map(|entry| entry.process))
            .chain(self.resident_samples.iter().map(|entry| entry.process))
            .chain(self.memory_accounts.iter().map(|entry| entry.process))
            .chain(self.memory_readings.iter().map(|entry| entry.process))
            .chain(self.losses.iter().filter_map(|entry| entry.process))
            .chain(self.heap_names.iter().map(|entry| entry.process))
            .chain(self.notices.iter().map(|entry| entry.process))
            .chain(self.functions.iter().map(|entry| entry.process))
            .chain(snapshots.map(|entry| entry.process))
            .chain(parents)
    }

    /// Removes the entries of processes that are not believed.
    fn leave_out_unknown(&mut self) {
        let count = self.processes.len();
        let is_known = |process: ProcessIndex| (process.0 as usize) < count;
        for process in &mut self.processes {
            if matches!(process.origin, ProcessOrigin::Fork { parent } if !is_known(parent)) {
                process.origin = ProcessOrigin::Exec;
            }
        }
        // (Threads and mappings are found by their numbers, so that they stay in place.)
        for thread in self.threads.iter_mut().filter(|thread| !is_known(thread.process)) {
            thread.process = ProcessIndex(0);
        }
        let is_lost = |mapping: &&mut Mapping| !is_known(mapping.process);
        for mapping in self.mappings.iter_mut().filter(is_lost) {
            *mapping = NO_MAPPING;
        }
        self.rss_samples.retain(|entry| is_known(entry.process));
        self.resident_samples.retain(|entry| is_known(entry.process));
        self.memory_accounts.retain(|entry| is_known(entry.process));
        self.memory_readings.retain(|entry| is_known(entry.process));
        self.memory_readings.sort_by_key(|entry| entry.time_ns);
        self.losses.iter_mut().for_each(|entry| entry.process = entry.process.filter(|of| is_known(*of)));
        self.heap_names.retain(|entry| is_known(entry.process));
        self.notices.retain(|entry| is_known(entry.process));
        self.functions.retain(|entry| is_known(entry.process));
        for snapshot in &mut self.snapshots {
            snapshot.processes.retain(|entry| is_known(entry.process));
        }
    }
}
