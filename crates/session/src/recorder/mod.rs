//! The recorder: rounds of scan, merge, translate, free.
//!
//! ```text
//! T0 = now
//! scan       claimed buffers and how far each is published; new processes, threads, nodes
//! watermark  W = T0 - 50 µs, but not beyond a thread that is in the middle of an event
//! merge      the records up to W, by time, through translate into the sink
//! free       buffers that are used up; wake agents that wait
//! ```

pub(crate) mod facts;
pub(crate) mod go;
pub(crate) mod inside;
pub(crate) mod intake;
pub(crate) mod memory;
pub(crate) mod names;
pub(crate) mod output;
pub(crate) mod processes;
pub(crate) mod rounds;
pub(crate) mod snapshots;
pub(crate) mod state;
mod status;
mod translate;

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

use heapr_ring::Pool;
use heapr_trace::Thread;

use crate::recorder::inside::Looked;
use crate::recorder::intake::clock::Clock;
use crate::recorder::intake::merge::Stream;
use crate::recorder::intake::pool_growth::PoolGrowth;
use crate::recorder::output::sink::Sink;
use crate::recorder::processes::attach_hold::HeldProcesses;
use crate::recorder::snapshots::Snapshots;
use crate::recorder::state::process_state::ProcessState;
use crate::recorder::state::statistics::Statistics;

/// Reads the pool and feeds the sink.
#[derive(Debug)]
pub(crate) struct Recorder {
    pool: Pool,
    pub(crate) growth: PoolGrowth,
    clock: Clock,
    pub(crate) sink: Sink,
    processes: Vec<ProcessState>,
    /// (slot, generation) of a live process -> its index in `processes`.
    process_by_slot: HashMap<(u32, u32), usize>,
    /// (slot, generation) -> process id in our namespace, where it is known.
    outer_pids: HashMap<(u32, u32), u32>,
    held: HeldProcesses,
    streams: Vec<Stream>,
    stream_by_slot: HashMap<(u32, u32), usize>,
    threads: Vec<ThreadState>,
    heads: Vec<(u64, usize)>,
    places: Vec<usize>,
    statistics: Statistics,
    next_housekeeping_ns: u64,
    next_thread_look_ns: u64,
    is_final: bool,
    /// True while a thread in spare time runs the recorder; see [`rounds::spare_time`].
    is_lent: bool,
    snapshots: Snapshots,
    /// Embedded allocators found in processes and not written to the file yet.
    pub(crate) looked: Vec<Looked>,
    /// Time up to which all events have been read.
    watermark_ns: u64,
    /// True if the last round read everything up to the moment of a requested cut.
    is_at_cut: bool,
}

/// Entry of a thread in the file, as it was last written.
#[derive(Debug)]
struct ThreadState {
    entry: Thread,
    process: usize,
    /// Thread id in our namespace; the entry has the thread's own id for itself.
    outer_tid: u32,
}

impl Recorder {
    pub(crate) fn new(pool: Pool, growth: PoolGrowth, clock: Clock, sink: Sink) -> Self {
        Self {
            pool,
            growth,
            clock,
            sink,
            processes: Vec::new(),
            process_by_slot: HashMap::new(),
            outer_pids: HashMap::new(),
            held: HeldProcesses::default(),
            streams: Vec::new(),
            stream_by_slot: HashMap::new(),
            threads: Vec::new(),
            heads: Vec::new(),
            places: Vec::new(),
            statistics: Statistics::default(),
            next_housekeeping_ns: 0,
            next_thread_look_ns: 0,
            is_final: false,
            is_lent: false,
            snapshots: Snapshots::default(),
            looked: Vec::new(),
            watermark_ns: 0,
            is_at_cut: false,
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Number of live traced processes.
    pub(crate) fn live_process_count(&self) -> usize {
        self.processes.iter().filter(|process| !process.has_ended).count()
    }

    /// Number of process images seen so far.
    pub(crate) fn process_count(&self) -> usize {
        self.processes.iter().filter(|process| !process.is_superseded).count()
    }

    /// Whether a live process belongs to the session.
    pub(crate) fn knows(&self, pid: u32) -> bool {
        self.processes.iter().any(|process| process.pid == pid && !process.has_ended)
    }

    /// Whether a process is being recorded: known, alive, and with an agent that has not given up.
    pub(crate) fn records(&self, pid: u32) -> bool {
        self.processes.iter().any(|process| process.pid == pid && self.is_recorded(process))
    }

    /// Whether a process was seen, by the id under which its starter knows it.
    pub(crate) fn has_started(&self, child_pid: u32) -> bool {
        self.processes.iter().any(|process| process.child_pid == child_pid)
    }

    /// [`Self::records`] for one process.
    fn is_recorded(&self, process: &ProcessState) -> bool {
        let slot = self.pool.process_slot(process.slot);
        let is_disabled = slot.is_some_and(|slot| {
            slot.generation.load(Relaxed) == process.generation
                && slot.state.load(Relaxed) == heapr_wire::PROCESS_DISABLED
        });
        !process.has_ended && !process.is_done && !is_disabled
    }
}
