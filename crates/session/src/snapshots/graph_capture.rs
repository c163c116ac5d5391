//! Captures the graph of a process in a separate thread, while the recorder continues.
//!
//! ```text
//! recorder                                thread
//! start -------------------------------->  finds the heap, stops the process
//! merges nothing later  <----------------  notes the moment
//!                                          resumes the process, if its memory is copied
//! merges the events until then             reads the copy, which ends
//! cuts: the blocks of the cut ---------->  searches what it has read
//! writes the graph, ends the snapshot <--  the graph; the process runs on
//! ```
//! A process that must not be stopped is read twice ([`super::running_look`]). The first time uses
//! the blocks of a moment for which no snapshot is taken.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use heapr_inject::{HeldProcess, HoldRequest, Look, ReadFrom};
use heapr_native::{BlockMap, Texts};
use heapr_trace::HeapGraph;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::snapshots::awake_receiver::receive_awake;
use crate::snapshots::heap_look::Prepared;
use crate::snapshots::no_graph::{NoGraph, reason_for_letting_go};
use crate::snapshots::running_look::{self, BETWEEN, Births};

/// Time for which a process stands still for its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum GraphPause {
    /// Until its memory is copied; if it cannot be copied, until all is read.
    #[default]
    Copy,
    /// Until all is read.
    Stop,
    /// No stop: the process is read while it runs, and uncertain references are marked as doubtful.
    None,
}

/// Contents of blocks that are written to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum GraphContents {
    /// No contents, because they may be secret.
    #[default]
    None,
    /// Up to 64 bytes of text at the start of a block, or behind a header.
    Strings,
}

impl GraphContents {
    /// Returns how a scan handles texts.
    pub(crate) fn texts(self) -> Texts {
        match self {
            Self::None => Texts::LeftOut,
            Self::Strings => Texts::Kept,
        }
    }
}

/// Options for capturing a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphRequest {
    /// Longest time for which the process may stand still, or a copy of it may live.
    pub max_pause: Duration,
    /// Time for which the process stands still.
    #[serde(default)]
    pub pause: GraphPause,
    /// True if the process waits at its exit to be captured.
    #[serde(default)]
    pub at_exit: bool,
    /// Contents of blocks that are written.
    #[serde(default)]
    pub contents: GraphContents,
}

impl Default for GraphRequest {
    fn default() -> Self {
        Self {
            max_pause: Duration::from_secs(30),
            pause: GraphPause::Copy,
            at_exit: false,
            contents: GraphContents::None,
        }
    }
}

/// Report of the capturing thread.
#[derive(Debug)]
pub(crate) enum Told {
    /// Request for the current blocks, for the first reading, which belongs to no snapshot.
    Early,
    /// Notice that the process has stood still, at the noted moment.
    Still,
    /// Result; the process runs again.
    Done(Result<Box<HeapGraph>, Error>),
}

/// Blocks of a cut.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// Address and size of each block.
    pub(crate) places: Vec<(u64, u64)>,
    /// Allocation times; only if the process is read while it runs.
    pub(crate) births: Births,
}
/// Clock of the recorder.
pub(crate) type NowTicks = Box<dyn Fn() -> u64 + Send>;
/// Value of a moment that is not noted yet.
const NOT_YET: u64 = u64::MAX;

/// Handle of a capture under way.
#[derive(Debug)]
pub(crate) struct GraphCapture {
    pub(crate) pid: u32,
    /// True if the process is read while it runs: allocation times are needed, and no process
    /// waits.
    pub(crate) is_running: bool,
    given: Sender<Blocks>,
    told: Receiver<Told>,
    /// Moment at which the process stood still: later events do not belong to the cut.
    cut_ticks: Arc<AtomicU64>,
    /// True if the capture is not needed any more.
    is_given_up: Arc<AtomicBool>,
}

impl GraphCapture {
    /// Starts the thread.
    pub(crate) fn start(pid: u32, request: GraphRequest, now_ticks: NowTicks) -> Result<Self, Error> {
        let (tell, told) = mpsc::channel();
        let (given, taken) = mpsc::channel();
        let is_given_up = Arc::new(AtomicBool::new(false));
        let given_up = Arc::clone(&is_given_up);
        let cut_ticks = Arc::new(AtomicU64::new(NOT_YET));
        let moment = Moment { now_ticks, cut_ticks: Arc::clone(&cut_ticks) };
        let is_running = request.pause == GraphPause::None && !request.at_exit;
        std::thread::Builder::new()
            .name("heapr-graph".to_owned())
            .spawn(move || {
                let outcome = if is_running {
                    capture_running(pid, &request, &tell, &taken, &moment, &given_up)
                } else {
                    capture(pid, &request, &tell, taken, moment, &given_up)
                };
                // The recorder may have ended.
                let _ = tell.send(Told::Done(outcome));
            })
            .map_err(|source| Error::Recorder { source })?;
        Ok(Self { pid, is_running, given, told, cut_ticks, is_given_up })
    }

    /// Returns the next report, waiting up to `within`.
    pub(crate) fn hear(&self, within: Duration) -> Option<Told> {
        match self.told.recv_timeout(within) {
            Ok(told) => Some(told),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                Some(Told::Done(Err(Error::NoGraph { pid: self.pid, reason: "its thread ended".to_owned() })))
            }
        }
    }

    /// Returns the moment at which the process stood still, if it has.
    pub(crate) fn cut_ticks(&self) -> Option<u64> {
        Some(self.cut_ticks.load(Acquire)).filter(|&ticks| ticks != NOT_YET)
    }

    /// Passes on the blocks of a cut.
    pub(crate) fn give(&self, blocks: Blocks) {
        // A thread that has ended has reported so itself.
        let _ = self.given.send(blocks);
    }
}

impl Drop for GraphCapture {
    fn drop(&mut self) {
        self.is_given_up.store(true, Relaxed);
    }
}

fn capture(
    pid: u32,
    request: &GraphRequest,
    tell: &Sender<Told>,
    given: Receiver<Blocks>,
    moment: Moment,
    is_given_up: &AtomicBool,
) -> Result<Box<HeapGraph>, Error> {
    let mut looking = Looking {
        pid,
        max_pause: request.max_pause,
        since: Instant::now(),
        prepared: Prepared::of(pid, request.contents.texts()),
        tell: tell.clone(),
        given,
        moment,
        is_given_up,
        found: Err(NoGraph::TooLong),
    };
    // A process that waits at its exit needs no copy: it does nothing else meanwhile.
    let hold = HoldRequest {
        at_exit: request.at_exit,
        copies: request.pause == GraphPause::Copy && !request.at_exit,
        longest: Some(request.max_pause),
        without_agent: false,
    };
    let report = heapr_inject::hold(pid, hold, &mut looking)?;
    if let Some(late) = report.let_go {
        return Err(Error::NoGraph {
            pid,
            reason: reason_for_letting_go(late.is_overdue, request.max_pause),
        });
    }
    let found = if report.is_copy_lost { Err(NoGraph::Cut) } else { looking.found };
    let too_long = || match report.copy_life {
        Some(_) => format!("its copy would have lived for longer than {} ms", request.max_pause.as_millis()),
        None => reason_for_letting_go(true, request.max_pause),
    };
    let mut graph = found.map_err(|why| Error::NoGraph { pid, reason: why.reason(too_long) })?;
    graph.pause_ns = u64::try_from(report.pause.as_nanos()).unwrap_or(u64::MAX);
    if let Some(reason) = report.no_copy {
        graph.notes.push(format!("it stood still while it was read, as it could not be copied: {reason}"));
    }
    Ok(Box::new(graph))
}

/// Reads a process twice while it runs.
fn capture_running(
    pid: u32,
    request: &GraphRequest,
    tell: &Sender<Told>,
    given: &Receiver<Blocks>,
    moment: &Moment,
    is_given_up: &AtomicBool,
) -> Result<Box<HeapGraph>, Error> {
    let none = |reason: String| Error::NoGraph { pid, reason };
    let begin = Instant::now();
    let left = || request.max_pause.saturating_sub(begin.elapsed());
    let goes_on = || !left().is_zero() && !is_given_up.load(Relaxed);
    let mut prepared = Prepared::of(pid, request.contents.texts());
    let look = |prepared: &mut Prepared, told: Told| -> Result<(HeapGraph, BlockMap, Births), Error> {
        let held =
            HeldProcess { agent: heapr_inject::agent_memory(pid)?, is_quiet: true, ..HeldProcess::default() };
        // A recorder that has ended sends no blocks.
        let _ = tell.send(told);
        let too_long =
            || format!("reading it would have taken longer than {} ms", request.max_pause.as_millis());
        let Blocks { places, births } = given.recv_timeout(left()).map_err(|_| none(too_long()))?;
        prepared.take_down(pid);
        let found = prepared.look(&held, ReadFrom::Process, places, &goes_on);
        let (graph, map) = found.map_err(|why| match why {
            NoGraph::Cut => none(too_long()),
            other => none(other.reason(too_long)),
        })?;
        Ok((graph, map, births))
    };
    let (graph, map, births) = look(&mut prepared, Told::Early)?;
    let before = running_look::unreached(&graph, &map, &prepared.memory(), &births);
    drop((graph, map));
    std::thread::sleep(BETWEEN.min(left()));
    moment.cut_ticks.store((moment.now_ticks)(), Release);
    let (mut graph, map, births) = look(&mut prepared, Told::Still)?;
    running_look::confirm(&mut graph, &map, &prepared.memory(), &births, &before);
    Ok(Box::new(graph))
}

/// Moment of a cut, and the clock for it.
struct Moment {
    now_ticks: NowTicks,
    cut_ticks: Arc<AtomicU64>,
}

/// Searches a process that is held.
struct Looking<'a> {
    pid: u32,
    max_pause: Duration,
    since: Instant,
    prepared: Prepared,
    tell: Sender<Told>,
    given: Receiver<Blocks>,
    moment: Moment,
    is_given_up: &'a AtomicBool,
    found: Result<HeapGraph, NoGraph>,
}

impl Looking<'_> {
    fn left(&self) -> Duration {
        self.max_pause.saturating_sub(self.since.elapsed())
    }

    fn blocks(&self) -> Option<Vec<(u64, u64)>> {
        receive_awake(&self.given, || self.left()).map(|blocks| blocks.places)
    }
}

impl Look for Looking<'_> {
    fn stands_still(&mut self) {
        self.since = Instant::now();
        // Stored before the process is resumed: until the recorder sees it, the recorder merges
        // only earlier events.
        self.moment.cut_ticks.store((self.moment.now_ticks)(), Release);
        // A recorder that has ended sends no blocks.
        let _ = self.tell.send(Told::Still);
    }

    fn take_down(&mut self) -> bool {
        // Facts that only the process itself has are read at this moment.
        self.prepared.take_down(self.pid);
        !self.is_given_up.load(Relaxed)
    }

    fn keep(&mut self, copy: u32, goes_on: &dyn Fn() -> bool) -> bool {
        let deadline = self.since + self.max_pause;
        let is_given_up = self.is_given_up;
        let may_last = || Instant::now() < deadline && !is_given_up.load(Relaxed);
        self.prepared.keep(copy, &|| may_last() && goes_on())
    }

    fn look(&mut self, held: &HeldProcess, from: ReadFrom, goes_on: &dyn Fn() -> bool) {
        let deadline = self.since + self.max_pause;
        let is_given_up = self.is_given_up;
        if from == ReadFrom::Kept {
            // Neither process nor copy waits meanwhile. A recorder that has ended sends no blocks.
            let Ok(Blocks { places, .. }) = self.given.recv() else { return };
            let goes_on = || !is_given_up.load(Relaxed);
            self.found = self.prepared.look(held, from, places, &goes_on).map(|(graph, _)| graph);
            return;
        }
        if from == ReadFrom::Process {
            self.prepared.take_down(self.pid);
        }
        let Some(blocks) = self.blocks() else { return };
        let may_last = || Instant::now() < deadline && !is_given_up.load(Relaxed);
        let mut found = self.prepared.look(held, from, blocks, &|| may_last() && goes_on());
        if matches!(found, Err(NoGraph::TooLong)) && may_last() {
            found = Err(NoGraph::Cut);
        }
        self.found = found.map(|(graph, _)| graph);
    }
}
