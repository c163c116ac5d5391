//! Progress of the recording, and the status of its processes.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

use heapr_trace::{Amounts, ProcessIndex};
use heapr_wire::DisableReason;

use crate::recorder::Recorder;
use crate::recorder::facts::own_ranges::AgentMemory;
use crate::recorder::state::process_state::ProcessState;
use crate::{ProcessStatus, Progress};

impl Recorder {
    /// Progress of the recording.
    pub(crate) fn progress(&self) -> Progress {
        let summary = &self.sink.summary;
        let (live, peak) = (summary.live(), summary.totals().amounts().at_peak());
        Progress { event_count: self.sink.event_count, live, peak }
    }

    /// Status of the newest process images, live ones first.
    pub(crate) fn process_statuses(&self, most: usize) -> Vec<ProcessStatus> {
        let mut live: HashMap<ProcessIndex, Amounts> = HashMap::new();
        for (process, _, totals) in self.sink.summary.by_heap() {
            *live.entry(process).or_default() += &totals.amounts();
        }
        let alive = self.processes.iter().rev().filter(|process| !process.has_ended);
        let ended = self.processes.iter().rev().filter(|process| process.has_ended && !process.is_superseded);
        let status = |process: &ProcessState| {
            let slot = self.pool.process_slot(process.slot);
            let slot =
                slot.filter(|slot| !process.has_ended && slot.generation.load(Relaxed) == process.generation);
            let reason = slot.map_or(0, |slot| slot.disable_reason.load(Relaxed));
            let live = live.get(&process.index).copied().unwrap_or_default().outstanding();
            let list_avma = slot.map_or(0, |slot| slot.own_mappings_avma.load(Relaxed));
            let agent = (list_avma != 0).then(|| AgentMemory::of(process.pid, list_avma)).flatten();
            ProcessStatus {
                pid: process.pid,
                executable: process.executable.clone(),
                name: process.entry.as_ref().map_or("", heapr_trace::Process::name).to_owned(),
                // Housekeeping may not have seen the end of the process yet.
                is_alive: !process.has_ended && heapr_proc::is_alive(process.pid),
                disabled: DisableReason::from_number_untrusted(reason)
                    .filter(|&reason| reason != DisableReason::None)
                    .map(|reason| disable_text(reason).to_owned()),
                live_count: live.count.value,
                live_count_plus_minus: live.count_plus_minus(),
                live_bytes: live.bytes.value,
                live_bytes_plus_minus: live.bytes_plus_minus(),
                own_bytes: if process.has_ended { 0 } else { own_bytes(process.pid, agent.as_ref()) },
                agent_mapping_count: agent.map(|agent| agent.mapping_count),
                agent_mapped_bytes: agent.map(|agent| agent.mapped_bytes),
                agent_resident_bytes: agent.and_then(|agent| agent.resident_bytes),
            }
        };
        alive.chain(ended).take(most).map(status).collect()
    }
}

/// Bytes that a process has in memory or swap without a file, less those of its agent.
fn own_bytes(pid: u32, agent: Option<&AgentMemory>) -> u64 {
    let counters = heapr_proc::ResidentCounters::of_process(pid);
    let all = counters.map_or(0, |counters| counters.anonymous_bytes.saturating_add(counters.swapped_bytes));
    all.saturating_sub(agent.and_then(|agent| agent.resident_bytes).unwrap_or(0))
}

pub(crate) fn disable_text(reason: DisableReason) -> &'static str {
    match reason {
        DisableReason::None => "",
        DisableReason::SessionClosed => "the session was closed",
        DisableReason::RecorderDied => "the recorder was thought dead",
        DisableReason::BadPool => "its shared buffers belong to another build of heapr",
        DisableReason::PoolOverwritten => {
            "something in one of the session's processes writes over heapr's shared buffers"
        }
        DisableReason::NoProcessSlot => "too many processes were traced",
        DisableReason::NoMemory => "it had no memory for the agent",
        DisableReason::NotFollowed => "children are not followed",
        DisableReason::NoAllocator => "its allocator's functions were not found",
        DisableReason::LetGo => "it was let go",
        DisableReason::Sanitizer => "it is built with a sanitizer, which must come before the agent",
        DisableReason::NotVisible => {
            "where it runs, the agent's file or the recorder is not seen (another root directory, mounts or user)"
        }
        DisableReason::Static => "it is statically linked, so nothing can be loaded into it",
        DisableReason::OtherProcessor => "it is for another processor than heapr's",
        DisableReason::Forbidden => "it has forbidden itself what recording needs (seccomp, or PR_SET_TSC)",
    }
}
