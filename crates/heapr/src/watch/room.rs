//! Room for the agent in the control groups of processes: the agent must never be the cause of a
//! kill.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use heapr_table::quantity::bytes;

/// Memory that the agent takes in a process, beside its threads: the largest of the programs that
/// were measured (`docs/incidents.md`).
const AGENT_BYTES: u64 = 2560 << 10;
/// Memory that it takes for each thread that allocates.
const THREAD_BYTES: u64 = 32 << 10;
/// Part of the resident bytes that it takes, at most: marks of pages.
const MARKS_PART: u64 = 1024;
/// Memory that a group must have left beside.
const LEFT_BYTES: u64 = 4 << 20;

/// Memory that the agent takes in a process, as far as that is known before.
fn need_bytes(pid: u32) -> u64 {
    let fields = heapr_proc::Fields::of_process(pid).unwrap_or_default();
    let threads = fields.number::<u64>("Threads").unwrap_or(1);
    let marks = fields.bytes("VmRSS").unwrap_or(0) / MARKS_PART;
    AGENT_BYTES.saturating_add(threads.saturating_mul(THREAD_BYTES)).saturating_add(marks)
}

/// Room that is planned for agents, by the folders of groups with a limit.
#[derive(Debug, Default)]
pub(super) struct Room(HashMap<PathBuf, u64>);

impl Room {
    /// Plans the room for an agent in a process.
    ///
    /// # Errors
    /// The reason, if one of the process's groups has not enough left.
    pub(super) fn plan(&mut self, pid: u32) -> Result<(), String> {
        let limits = heapr_proc::memory_limits(pid);
        let need_bytes = need_bytes(pid);
        let hard = || limits.iter().filter(|limit| limit.is_hard);
        for limit in hard() {
            let planned_bytes = self.0.get(&limit.folder).copied().unwrap_or(0);
            let left_bytes = limit.free_bytes.saturating_sub(planned_bytes);
            if left_bytes < need_bytes.saturating_add(LEFT_BYTES) {
                return Err(format!(
                    "{} has {} left of its limit of {}; heapr's agent may take {}, and {} must stay free beside: it \
                     must not be the cause of a kill",
                    limit.path,
                    bytes(left_bytes),
                    bytes(limit.limit_bytes),
                    bytes(need_bytes),
                    bytes(LEFT_BYTES)
                ));
            }
        }
        // Version 1 has two limits in a folder.
        let folders: BTreeSet<PathBuf> = hard().map(|limit| limit.folder.clone()).collect();
        for folder in folders {
            *self.0.entry(folder).or_default() += need_bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_that_are_planned_count_for_the_next_one() {
        let own = std::process::id();
        let limits = heapr_proc::memory_limits(own);
        let mut room = Room::default();
        for limit in limits.iter().filter(|limit| limit.is_hard) {
            room.0.insert(limit.folder.clone(), u64::MAX);
        }
        let has_limit = limits.iter().any(|limit| limit.is_hard);
        assert_eq!(room.plan(own).is_err(), has_limit);
        assert_eq!(Room::default().plan(u32::MAX), Ok(()));
    }

    #[test]
    fn each_thread_and_each_resident_page_has_its_part() {
        assert!(need_bytes(std::process::id()) > AGENT_BYTES + THREAD_BYTES);
        assert_eq!(need_bytes(u32::MAX), AGENT_BYTES + THREAD_BYTES);
    }
}
