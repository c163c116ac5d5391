//! Snapshots of the live heaps of a session's processes: requests, and the one being taken.
//!
//! The recorder tracks the live blocks, so the processes are neither stopped nor touched. A
//! snapshot is a cut through the ledger between two events. Later events do not show, even while
//! the blocks are written.
//!
//! ```text
//! request ──> queue ──> cut (all events so far ──> slices between the recorder's ──> report
//! rule    ──┘           are applied)               rounds: parts of 65,536 blocks
//! ```

use std::time::Instant;

use crate::failure::Failure;
use crate::snapshots::graph_capture::GraphRequest;
use heapr_trace::{
    Block, BlockEstimate, HeapGraph, ProcessIndex, Snapshot, SnapshotColumns, SnapshotProcess,
    SnapshotTrigger, TraceWriter, Weight,
};

/// Processes that a snapshot covers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SnapshotScope {
    /// All live processes.
    #[default]
    Live,
    /// Live processes with these ids.
    Pids(Vec<u32>),
    /// Single image, live or just ended.
    Image(ProcessIndex),
}

impl SnapshotScope {
    /// Returns the scope for these ids; empty: all.
    #[must_use]
    pub fn of_pids(pids: &[u32]) -> Self {
        if pids.is_empty() { Self::Live } else { Self::Pids(pids.to_vec()) }
    }
}

/// Request for a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRequest {
    /// Name of the snapshot; may be empty.
    pub name: String,
    /// Reason for the snapshot.
    pub trigger: SnapshotTrigger,
    /// Processes that the snapshot covers.
    pub scope: SnapshotScope,
    /// Options of the object graph, for a snapshot of a single process.
    pub graph: Option<GraphRequest>,
}

impl Default for SnapshotRequest {
    /// Returns a request for all live processes, without a name.
    fn default() -> Self {
        Self {
            name: String::new(),
            trigger: SnapshotTrigger::Request,
            scope: SnapshotScope::Live,
            graph: None,
        }
    }
}

/// Identifies a request until its report comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SnapshotTicket(pub(crate) u64);

/// Report of a finished snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotReport {
    /// Ticket of the request; `None`: a rule triggered the snapshot.
    pub ticket: Option<SnapshotTicket>,
    /// Entry of the snapshot in the file, without its blocks.
    pub snapshot: Snapshot,
    /// Blocks of the snapshot, with the variances of estimates.
    pub blocks: BlockEstimate,
    /// Error of the file, if the snapshot could not be written.
    pub write_error: Option<String>,
    /// Reason for which a requested graph is missing. With number 0 there is no snapshot either.
    pub graph_failure: Option<Failure>,
    /// Time for which the process stood still for its graph.
    pub pause_ns: Option<u64>,
}

impl SnapshotReport {
    /// Returns a report without a snapshot, because its graph failed.
    pub(crate) fn failed(ticket: Option<SnapshotTicket>, failure: Failure) -> Self {
        let snapshot = Snapshot {
            number: 0,
            time_ns: 0,
            event_index: 0,
            name: String::new(),
            trigger: SnapshotTrigger::Request,
            block_count: 0,
            block_bytes: 0,
            part_count: 0,
            export_ns: 0,
            processes: Vec::new(),
            notes: Vec::new(),
        };
        Self {
            ticket,
            snapshot,
            blocks: BlockEstimate::default(),
            write_error: None,
            graph_failure: Some(failure),
            pause_ns: None,
        }
    }
}

/// State of the graph of a snapshot that is being taken.
#[derive(Debug, Default)]
enum GraphState {
    /// No graph was requested.
    #[default]
    None,
    /// Graph is being captured.
    Awaited,
    /// Graph is in the file; with the time for which the process stood still.
    Written(u64),
    /// Capture has failed.
    Failed(Failure),
}

/// Snapshot between its cut and its last part.
#[derive(Debug)]
pub(crate) struct ActiveSnapshot {
    ticket: Option<SnapshotTicket>,
    head: Snapshot,
    /// By process: index in the head's list plus one; 0: not in the snapshot.
    places: Vec<u32>,
    columns: SnapshotColumns,
    blocks: BlockEstimate,
    began: Instant,
    outcome: heapr_trace::Result<()>,
    graph: GraphState,
}

impl ActiveSnapshot {
    /// Creates a snapshot without blocks; `processes` with their resident sets.
    pub(crate) fn new(
        ticket: Option<SnapshotTicket>,
        number: u32,
        request: SnapshotRequest,
        processes: &[(ProcessIndex, Option<u64>)],
        notes: Vec<String>,
    ) -> Self {
        let mut places = Vec::new();
        for (place, (process, _)) in processes.iter().enumerate() {
            let number = process.0 as usize;
            if number >= places.len() {
                places.resize(number + 1, 0);
            }
            places[number] = place as u32 + 1;
        }
        let processes = processes.iter().map(|&(process, rss_bytes)| SnapshotProcess {
            process,
            rss_bytes,
            block_count: 0,
            block_bytes: 0,
        });
        let head = Snapshot {
            number,
            time_ns: 0,
            event_index: 0,
            name: request.name,
            trigger: request.trigger,
            block_count: 0,
            block_bytes: 0,
            part_count: 0,
            export_ns: 0,
            processes: processes.collect(),
            notes,
        };
        Self {
            ticket,
            head,
            places,
            columns: SnapshotColumns::new(),
            blocks: BlockEstimate::default(),
            began: Instant::now(),
            outcome: Ok(()),
            graph: GraphState::None,
        }
    }

    /// Sets the moment of the snapshot.
    pub(crate) fn cut_at(&mut self, time_ns: u64, event_index: u64) {
        self.head.time_ns = time_ns;
        self.head.event_index = event_index;
        self.began = Instant::now();
    }

    /// Adds a block of the cut, which stands for `weight`; blocks of other processes are ignored.
    #[inline]
    pub(crate) fn add<W: std::io::Write>(
        &mut self,
        block: &Block,
        weight: Weight,
        writer: &mut TraceWriter<W>,
    ) {
        let place = self.places.get(block.process.0 as usize).copied().unwrap_or(0) as usize;
        let Some(process) = place.checked_sub(1).and_then(|place| self.head.processes.get_mut(place)) else {
            return;
        };
        process.block_count = process.block_count.saturating_add(weight.count);
        process.block_bytes = process.block_bytes.saturating_add(weight.bytes);
        self.blocks += BlockEstimate::of_weight(weight);
        self.columns.push(block);
        if self.columns.is_full() {
            self.write_part(writer);
        }
    }

    /// Notes that the graph comes later.
    pub(crate) fn await_graph(&mut self) {
        self.graph = GraphState::Awaited;
    }

    /// Whether the snapshot must wait for its graph.
    pub(crate) fn awaits_graph(&self) -> bool {
        matches!(self.graph, GraphState::Awaited)
    }

    /// Writes the graph.
    pub(crate) fn give_graph<W: std::io::Write>(
        &mut self,
        graph: Result<HeapGraph, Failure>,
        writer: &mut TraceWriter<W>,
    ) {
        self.graph = match graph {
            Ok(graph) => {
                if self.outcome.is_ok() {
                    self.outcome = writer.heap_graph(&self.head, &graph);
                }
                self.head.notes.extend(graph.notes);
                GraphState::Written(graph.pause_ns)
            }
            Err(failure) => {
                self.head.notes.push(failure.message.clone());
                GraphState::Failed(failure)
            }
        };
    }

    fn write_part<W: std::io::Write>(&mut self, writer: &mut TraceWriter<W>) {
        if self.outcome.is_ok() {
            let (number, part) = (self.head.number, self.head.part_count);
            self.outcome = writer.snapshot_part(number, part, self.head.time_ns, &mut self.columns);
            self.head.part_count += 1;
        } else {
            self.columns = SnapshotColumns::new();
        }
    }

    /// Writes the last part and the entry of the table.
    pub(crate) fn finish<W: std::io::Write>(mut self, writer: &mut TraceWriter<W>) -> SnapshotReport {
        if self.columns.count() > 0 {
            self.write_part(writer);
        }
        let processes = &self.head.processes;
        self.head.block_count = processes.iter().map(|process| process.block_count).sum();
        self.head.block_bytes =
            processes.iter().fold(0, |sum, process| sum.saturating_add(process.block_bytes));
        self.head.export_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let outcome = self.outcome.and_then(|()| writer.snapshot(&self.head));
        let (pause_ns, graph_failure) = match self.graph {
            GraphState::Written(pause_ns) => (Some(pause_ns), None),
            GraphState::Failed(failure) => (None, Some(failure)),
            GraphState::None | GraphState::Awaited => (None, None),
        };
        SnapshotReport {
            ticket: self.ticket,
            snapshot: self.head,
            blocks: self.blocks,
            write_error: outcome.err().map(|error| error.to_string()),
            graph_failure,
            pause_ns,
        }
    }
}
