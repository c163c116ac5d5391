//! What is said over the socket: one JSON object a line, `{"heapr": 1, "request": …}` and
//! `{"heapr": 1, "answer": …}`.

use std::ffi::OsString;
use std::sync::mpsc;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{GraphContents, GraphRequest, SampleRate, SessionStatus, StackEvents};

/// Version of the protocol: both sides must have the same.
pub const PROTOCOL_VERSION: u32 = 1;

/// Bytes of a request's line, at most.
pub(crate) const REQUEST_BYTES_MAX: usize = 256 << 10;
/// Bytes of an answer's line, at most: a status with thousands of processes.
pub(crate) const ANSWER_BYTES_MAX: usize = 16 << 20;

/// What a session can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Request {
    /// How it stands.
    Status,
    /// Put a text into the trace, with the time.
    Mark(String),
    /// Change what is recorded.
    Update(Update),
    /// Take a snapshot of live heaps; answered when it is in the file.
    Snapshot {
        /// A name to find it by; may be empty.
        name: String,
        /// Of which processes; empty: all.
        pids: Vec<u32>,
        /// With the graph of the one process that it is of.
        #[serde(default)]
        graph: Option<GraphRequest>,
    },
    /// Take snapshots at an interval from now on, in place of an earlier one for the same
    /// processes.
    SnapshotEvery {
        /// The interval; `None`: no more.
        interval_ms: Option<u64>,
        /// Of which processes; empty: all.
        pids: Vec<u32>,
        /// With the graph of each, and so much of the contents of blocks.
        #[serde(default)]
        graph: Option<GraphContents>,
    },
    /// End the session and its file.
    Stop,
    /// End the session and remove its file.
    Cancel,
}

/// Changes of a running session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// Processes to attach to.
    pub add_pids: Vec<u32>,
    /// Processes to detach from.
    pub remove_pids: Vec<u32>,
    /// Attach to those too that the processes attached to have started already.
    #[serde(default)]
    pub with_children: bool,
    /// Which events carry stacks from now on.
    pub stacks: Option<StackEvents>,
    /// How allocations are sampled from now on.
    #[serde(default)]
    pub sample: Option<SampleRate>,
    /// Bring the file to a state that can be read now.
    pub flush: bool,
}

/// What came of an [`Update`], which goes on with the rest when one process fails.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateReport {
    /// Processes attached to, with what there is to say about each.
    pub attached: Vec<(u32, String)>,
    /// Processes detached from.
    pub detached: Vec<u32>,
    /// What failed, by process.
    pub failed: Vec<(u32, Failure)>,
    /// Why allocations are not sampled as was asked.
    #[serde(default)]
    pub not_sampled: Option<Failure>,
}

/// A snapshot that is in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotTaken {
    /// Its number in the file, from 1.
    pub number: u32,
    /// The trace file.
    pub output: OsString,
    /// Its moment, since the session's start.
    pub time_ns: u64,
    /// Processes in it.
    pub process_count: u64,
    /// Live blocks.
    pub block_count: u64,
    /// Bytes asked for in them.
    pub block_bytes: u64,
    /// Half of the 95 % interval of their number, where it is an estimate; else 0.
    #[serde(default)]
    pub block_count_plus_minus: u64,
    /// The same of the bytes.
    #[serde(default)]
    pub block_bytes_plus_minus: u64,
    /// How long taking it out took; the processes ran on meanwhile.
    pub export_ns: u64,
    /// What it does not show, and why.
    pub notes: Vec<String>,
    /// How long the process stood still for its graph, if it has one.
    #[serde(default)]
    pub pause_ns: Option<u64>,
}

/// What a session ended with; the rest is in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopReport {
    /// The trace file.
    pub output: OsString,
    /// Number of events.
    pub event_count: u64,
    /// Process images recorded.
    pub process_count: u64,
    /// From start to stop.
    pub wall_ns: u64,
    /// Events lost for want of a buffer.
    pub events_lost: u64,
    /// Raw wait status of the program that the session had started, if it has ended.
    pub wait_status: Option<i32>,
    /// Why the file is incomplete, if it is.
    pub write_error: Option<String>,
}

/// What a session answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// It is done.
    Done,
    /// How it stands.
    Status(Box<SessionStatus>),
    /// What came of an update.
    Updated(UpdateReport),
    /// A snapshot was taken.
    Snapshot(SnapshotTaken),
    /// The session has ended.
    Stopped(StopReport),
    /// It was not done.
    Failed(Failure),
}

/// A line with a request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RequestLine {
    pub(crate) heapr: u32,
    pub(crate) request: Request,
}

/// A line with an answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AnswerLine {
    pub(crate) heapr: u32,
    pub(crate) answer: Answer,
}

/// A request and where its answer goes.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) request: Request,
    pub(crate) answer: mpsc::Sender<Answer>,
}

impl Order {
    /// A request that ends the session.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self.request, Request::Stop | Request::Cancel)
    }
}
