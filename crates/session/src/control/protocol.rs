//! Protocol of the socket: one JSON object per line, `{"heapr": 1, "request": …}` and `{"heapr": 1,
//! "answer": …}`.

use std::ffi::OsString;
use std::sync::mpsc;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{GraphContents, GraphRequest, SampleRate, SessionStatus, StackEvents};

/// Version of the protocol: both sides must have the same.
pub const PROTOCOL_VERSION: u32 = 1;

/// Largest size in bytes of a request's line.
pub(crate) const REQUEST_BYTES_MAX: usize = 256 << 10;
/// Largest size in bytes of an answer's line: a status with thousands of processes.
pub(crate) const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Request to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Request {
    /// Returns the session's status.
    Status,
    /// Writes a marker with a text into the trace.
    Mark(String),
    /// Changes what is recorded.
    Update(Update),
    /// Takes a snapshot of live heaps; answered when it is in the file.
    Snapshot {
        /// Name of the snapshot; may be empty.
        name: String,
        /// Processes in the snapshot; empty: all.
        pids: Vec<u32>,
        /// Options of the object graph, for a snapshot of a single process.
        #[serde(default)]
        graph: Option<GraphRequest>,
    },
    /// Takes snapshots at an interval, in place of an earlier interval for the same processes.
    SnapshotEvery {
        /// Interval in ms; `None` ends the snapshots.
        interval_ms: Option<u64>,
        /// Processes in the snapshots; empty: all.
        pids: Vec<u32>,
        /// Contents of blocks in the object graphs; `None`: snapshots without graphs.
        #[serde(default)]
        graph: Option<GraphContents>,
    },
    /// Ends the session and completes its file.
    Stop,
    /// Ends the session and removes its file.
    Cancel,
}

/// Changes of a running session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// Processes to attach to.
    pub add_pids: Vec<u32>,
    /// Processes to detach from.
    pub remove_pids: Vec<u32>,
    /// Whether children of the added processes are attached to as well.
    #[serde(default)]
    pub with_children: bool,
    /// Events that carry stacks.
    pub stacks: Option<StackEvents>,
    /// Rate at which allocations are sampled.
    #[serde(default)]
    pub sample: Option<SampleRate>,
    /// Time in ms after which the rate before applies again; `None`: the rate stays.
    #[serde(default)]
    pub sample_for_ms: Option<u64>,
    /// Whether the file is made readable at once.
    pub flush: bool,
}

/// Result of an [`Update`], which continues with the rest if one process fails.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateReport {
    /// Processes attached to, with a remark on each.
    pub attached: Vec<(u32, String)>,
    /// Processes detached from.
    pub detached: Vec<u32>,
    /// Failures, by process.
    pub failed: Vec<(u32, Failure)>,
    /// Reason for which the sampling could not be changed.
    #[serde(default)]
    pub not_sampled: Option<Failure>,
}

/// Snapshot that is in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotTaken {
    /// Number in the file, from 1.
    pub number: u32,
    /// Path of the trace file.
    pub output: OsString,
    /// Time of the snapshot since the session's start, ns.
    pub time_ns: u64,
    /// Number of processes in the snapshot.
    pub process_count: u64,
    /// Number of live blocks.
    pub block_count: u64,
    /// Requested bytes of the live blocks.
    pub block_bytes: u64,
    /// Half of the 95 % interval of the number of blocks, if it is an estimate; else 0.
    #[serde(default)]
    pub block_count_plus_minus: u64,
    /// Half of the 95 % interval of the bytes, if they are an estimate; else 0.
    #[serde(default)]
    pub block_bytes_plus_minus: u64,
    /// Duration of the export, during which the processes ran.
    pub export_ns: u64,
    /// Notes on what the snapshot does not show, and why.
    pub notes: Vec<String>,
    /// Time for which the process stood still for its graph, if it has one.
    #[serde(default)]
    pub pause_ns: Option<u64>,
}

/// Result of a stopped session; details are in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopReport {
    /// Path of the trace file.
    pub output: OsString,
    /// Number of events.
    pub event_count: u64,
    /// Number of process images recorded.
    pub process_count: u64,
    /// Time from start to stop, ns.
    pub wall_ns: u64,
    /// Number of events lost because no buffer was free.
    pub events_lost: u64,
    /// Raw wait status of the program that the session had started, if it has ended.
    pub wait_status: Option<i32>,
    /// Error for which the file is incomplete, if any.
    pub write_error: Option<String>,
}

/// Answer of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// Request was carried out.
    Done,
    /// Status of the session.
    Status(Box<SessionStatus>),
    /// Result of an update.
    Updated(UpdateReport),
    /// Snapshot that was taken.
    Snapshot(SnapshotTaken),
    /// Result of the session, which has ended.
    Stopped(StopReport),
    /// Reason for which the request failed.
    Failed(Failure),
}

/// Line with a request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RequestLine {
    pub(crate) heapr: u32,
    pub(crate) request: Request,
}

/// Line with an answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AnswerLine {
    pub(crate) heapr: u32,
    pub(crate) answer: Answer,
}

/// Request and the channel for its answer.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) request: Request,
    pub(crate) answer: mpsc::Sender<Answer>,
}

impl Order {
    /// Whether the request ends the session.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self.request, Request::Stop | Request::Cancel)
    }
}
