//! Status of a session.

use std::ffi::OsString;

use heapr_trace::BlockEstimate;
use serde::{Deserialize, Serialize};

/// Largest number of processes listed in a status, newest first; more are only counted.
pub(crate) const PROCESSES_LISTED_MAX: usize = 1000;

/// Activity of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionState {
    /// Session records.
    Recording,
    /// File has reached its largest size: recording has ended, the targets run on untraced.
    Full,
}

/// Progress of a session, in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Number of events read.
    pub event_count: u64,
    /// Live blocks.
    pub live: BlockEstimate,
    /// Blocks that were live at the peak.
    pub peak: BlockEstimate,
}

/// Status of a session: properties, buffers, what was seen and what was lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Name of the session.
    pub name: String,
    /// Activity of the session.
    pub state: SessionState,
    /// `trace`, `memory` or `snapshot`.
    pub mode: String,
    /// Process id of the recorder.
    pub recorder_pid: u32,
    /// Path of the trace file.
    pub output: OsString,
    /// Wall clock at the start, ns since 1970.
    pub start_unix_ns: u64,
    /// Time since the start, ns.
    pub duration_ns: u64,
    /// Bytes per buffer.
    pub buffer_bytes: u64,
    /// Largest number of buffers in use.
    pub buffer_count: u64,
    /// Number of free buffers.
    pub buffers_free: u64,
    /// Largest number of buffers in use at once so far.
    pub buffers_claimed_max: u64,
    /// Buffers read to their end.
    pub buffers_written: u64,
    /// Number of times that a thread waited for a buffer.
    pub wait_count: u64,
    /// Number of events read.
    pub event_count: u64,
    /// Least number of missing events: those that found no buffer, and [`Self::records_invalid`].
    pub events_lost: u64,
    /// Stacks cut or unknown for want of memory in a target.
    pub stacks_lost: u64,
    /// Events whose time had to be corrected.
    pub events_late: u64,
    /// Records that were invalid.
    pub records_invalid: u64,
    /// Processes that could not be traced.
    pub processes_refused: u64,
    /// Events dropped to make room for newer ones (mode `memory`).
    pub events_dropped: u64,
    /// Bytes in the file so far, with those that are still in memory.
    pub file_bytes: u64,
    /// Sampling rate, as on the command line; `None`: all are recorded.
    #[serde(default)]
    pub sample: Option<String>,
    /// Current mean period of samples in bytes; 0: all are recorded.
    #[serde(default)]
    pub sample_mean_bytes: u64,
    /// Number of live blocks.
    pub live_count: u64,
    /// Half of the 95 % interval of an estimate; 0: it was counted.
    #[serde(default)]
    pub live_count_plus_minus: u64,
    /// Bytes of the live blocks.
    pub live_bytes: u64,
    /// Half of the 95 % interval of the live bytes; 0: they were counted.
    #[serde(default)]
    pub live_bytes_plus_minus: u64,
    /// Peak of the live bytes.
    pub peak_bytes: u64,
    /// Half of the 95 % interval of the peak; 0: it was counted.
    #[serde(default)]
    pub peak_bytes_plus_minus: u64,
    /// Time of the peak since the start, ns.
    pub peak_time_ns: u64,
    /// Number of markers set.
    pub marker_count: u64,
    /// Number of snapshots taken, with the one being taken.
    #[serde(default)]
    pub snapshot_count: u64,
    /// Events that carry stacks.
    pub stacks: String,
    /// Error since which the file is incomplete, if any.
    pub write_error: Option<String>,
    /// Method by which starting programs are seen, where flagged ones are traced.
    #[serde(default)]
    pub flag_watch: Option<String>,
    /// Remarks on flagged processes, newest last.
    pub remarks: Vec<String>,
    /// Number of processes seen in all.
    pub process_count: u64,
    /// Number of live processes.
    pub live_process_count: u64,
    /// Newest processes.
    pub processes: Vec<ProcessStatus>,
}

/// Process of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// Process id.
    pub pid: u32,
    /// Path of the program.
    pub executable: String,
    /// Name under which the program was started: its file name, or that of a link to it.
    #[serde(default)]
    pub name: String,
    /// True if the process lives.
    pub is_alive: bool,
    /// Reason for which a live process is not traced any more, if so.
    pub disabled: Option<String>,
    /// Number of live blocks.
    pub live_count: u64,
    /// Half of the 95 % interval of an estimate; 0: it was counted.
    #[serde(default)]
    pub live_count_plus_minus: u64,
    /// Bytes of the live blocks.
    pub live_bytes: u64,
    /// Half of the 95 % interval of the live bytes; 0: they were counted.
    #[serde(default)]
    pub live_bytes_plus_minus: u64,
    /// Bytes in memory or swap without a file: heaps, mappings, stacks, written data; without
    /// heapr's own. 0: not known.
    #[serde(default)]
    pub own_bytes: u64,
    /// Number of the agent's mappings, beside its code and the shared buffers; `None`: not known.
    #[serde(default)]
    pub agent_mapping_count: Option<u64>,
    /// Bytes of the agent's mappings, most of which are never touched.
    #[serde(default)]
    pub agent_mapped_bytes: Option<u64>,
    /// Bytes of the agent's mappings in memory or swap.
    #[serde(default)]
    pub agent_resident_bytes: Option<u64>,
}
