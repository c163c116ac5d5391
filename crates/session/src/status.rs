//! How a session stands.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// Processes listed in a status, newest first; more are only counted.
pub(crate) const PROCESSES_LISTED_MAX: usize = 1000;

/// What a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionState {
    /// It records.
    Recording,
    /// Its file has reached its largest size: recording has ended, the targets run on untraced.
    Full,
}

/// How far a session is, in few words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Events taken.
    pub event_count: u64,
    /// Bytes that are live.
    pub live_bytes: u64,
    /// Half of the 95 % interval of an estimate; 0: it was counted.
    pub live_bytes_plus_minus: u64,
    /// The most that were.
    pub peak_bytes: u64,
    /// As of what is live.
    pub peak_bytes_plus_minus: u64,
}

/// How a session stands: its properties, its buffers, what it has seen, what it has lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Its name.
    pub name: String,
    /// What it does.
    pub state: SessionState,
    /// `trace`, `memory` or `snapshot`.
    pub mode: String,
    /// Process id of the recorder.
    pub recorder_pid: u32,
    /// The trace file.
    pub output: OsString,
    /// Wall clock at the start, ns since 1970.
    pub start_unix_ns: u64,
    /// Since the start.
    pub duration_ns: u64,
    /// Bytes per buffer.
    pub buffer_bytes: u64,
    /// Buffers that may be in use.
    pub buffer_count: u64,
    /// Buffers that are free.
    pub buffers_free: u64,
    /// Most buffers in use at once.
    pub buffers_claimed_max: u64,
    /// Buffers taken to their end.
    pub buffers_written: u64,
    /// Times that a thread waited for a buffer.
    pub wait_count: u64,
    /// Events taken.
    pub event_count: u64,
    /// Events that are missing, at least: those that found no buffer, and
    /// [`Self::records_invalid`].
    pub events_lost: u64,
    /// Stacks cut or unknown for want of memory in a target.
    pub stacks_lost: u64,
    /// Events whose time had to be corrected.
    pub events_late: u64,
    /// Records that made no sense.
    pub records_invalid: u64,
    /// Processes that could not be traced.
    pub processes_refused: u64,
    /// Events thrown away because newer ones needed their room (mode `memory`).
    pub events_dropped: u64,
    /// Bytes in the file so far, with those that wait in memory for it.
    pub file_bytes: u64,
    /// How allocations are sampled, as on the command line; `None`: all are recorded.
    #[serde(default)]
    pub sample: Option<String>,
    /// The mean distance of samples at this moment, in bytes; 0: all are recorded.
    #[serde(default)]
    pub sample_mean_bytes: u64,
    /// Live blocks.
    pub live_count: u64,
    /// Half of the 95 % interval of an estimate; 0: it was counted.
    #[serde(default)]
    pub live_count_plus_minus: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// As of the blocks.
    #[serde(default)]
    pub live_bytes_plus_minus: u64,
    /// Most bytes that were live at once.
    pub peak_bytes: u64,
    /// As of the blocks.
    #[serde(default)]
    pub peak_bytes_plus_minus: u64,
    /// When, since the start.
    pub peak_time_ns: u64,
    /// Markers set.
    pub marker_count: u64,
    /// Which events carry stacks.
    pub stacks: String,
    /// Why the file is incomplete from some point on, if it is.
    pub write_error: Option<String>,
    /// How programs that start are seen, where flagged ones are traced.
    #[serde(default)]
    pub flag_watch: Option<String>,
    /// What happened to flagged processes, newest last.
    pub remarks: Vec<String>,
    /// Processes seen in all.
    pub process_count: u64,
    /// Those that live.
    pub live_process_count: u64,
    /// The newest of them.
    pub processes: Vec<ProcessStatus>,
}

/// A process of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// Process id.
    pub pid: u32,
    /// Path of its program.
    pub executable: String,
    /// What it was started as: its program's file name, or that of a link to it.
    #[serde(default)]
    pub name: String,
    /// It lives.
    pub is_alive: bool,
    /// Why it is not traced any more although it lives, if so.
    pub disabled: Option<String>,
    /// Its live blocks.
    pub live_count: u64,
    /// Half of the 95 % interval of an estimate; 0: it was counted.
    #[serde(default)]
    pub live_count_plus_minus: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// As of the blocks.
    #[serde(default)]
    pub live_bytes_plus_minus: u64,
    /// What it has in memory, or swapped out, without a file: heaps, mappings, stacks, written
    /// data; without what heapr has there. 0: not known.
    #[serde(default)]
    pub own_bytes: u64,
    /// Mappings of the agent in it, beside its code and the shared buffers; `None`: not known.
    #[serde(default)]
    pub agent_mapping_count: Option<u64>,
    /// Their bytes, most of which are never touched.
    #[serde(default)]
    pub agent_mapped_bytes: Option<u64>,
    /// What of them is in memory, or swapped out.
    #[serde(default)]
    pub agent_resident_bytes: Option<u64>,
}
