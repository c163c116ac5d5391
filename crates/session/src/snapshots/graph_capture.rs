//! Taking the graph of a process in a thread of its own, while the recorder goes on.
//!
//! ```text
//! recorder                                thread
//! start -------------------------------->  finds the heap, stops the process
//! takes what was written until then  <---  it stands still
//! cuts; the blocks of the cut ---------->  looks through its memory
//! writes the graph, ends the snapshot <--  the graph; the process runs on
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use heapr_trace::HeapGraph;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::snapshots::heap_look::{NoGraph, Prepared};

/// How a graph is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphRequest {
    /// Longest that the process may stand still.
    pub max_pause: Duration,
    /// The process waits at its end to be looked at.
    #[serde(default)]
    pub at_exit: bool,
}

impl Default for GraphRequest {
    fn default() -> Self {
        Self { max_pause: Duration::from_secs(30), at_exit: false }
    }
}

/// What the thread tells.
#[derive(Debug)]
pub(crate) enum Told {
    /// The process stands still.
    Still,
    /// It runs again.
    Done(Result<Box<HeapGraph>, Error>),
}

/// A graph on its way.
#[derive(Debug)]
pub(crate) struct GraphCapture {
    pub(crate) pid: u32,
    blocks: Sender<Vec<(u64, u64)>>,
    told: Receiver<Told>,
    /// Nobody waits for it any more.
    is_given_up: Arc<AtomicBool>,
}

impl GraphCapture {
    /// Starts the thread.
    pub(crate) fn start(pid: u32, request: GraphRequest) -> Result<Self, Error> {
        let (tell, told) = mpsc::channel();
        let (blocks, cut) = mpsc::channel();
        let is_given_up = Arc::new(AtomicBool::new(false));
        let given_up = Arc::clone(&is_given_up);
        std::thread::Builder::new()
            .name("heapr-graph".to_owned())
            .spawn(move || {
                let outcome = capture(pid, &request, &tell, cut, &given_up);
                // The recorder may have ended.
                let _ = tell.send(Told::Done(outcome));
            })
            .map_err(|source| Error::Recorder { source })?;
        Ok(Self { pid, blocks, told, is_given_up })
    }

    /// What was told since the last call.
    pub(crate) fn hear(&self) -> Option<Told> {
        match self.told.try_recv() {
            Ok(told) => Some(told),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(Told::Done(Err(Error::NoGraph { pid: self.pid, reason: "its thread ended".to_owned() })))
            }
        }
    }

    /// Hands over the blocks of the cut: address and size.
    pub(crate) fn give(&self, blocks: Vec<(u64, u64)>) {
        // A thread that has ended says so itself.
        let _ = self.blocks.send(blocks);
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
    cut: Receiver<Vec<(u64, u64)>>,
    is_given_up: &AtomicBool,
) -> Result<Box<HeapGraph>, Error> {
    let mut prepared = Prepared::of(pid);
    let (mut cut, mut found) = (Some(cut), Err(NoGraph::Gone));
    let tell = tell.clone();
    let report = heapr_inject::hold(pid, request.at_exit, &mut |held| {
        let deadline = Instant::now() + request.max_pause;
        let Some(cut) = cut.take() else { return };
        let goes_on = || Instant::now() < deadline && !is_given_up.load(Relaxed);
        if tell.send(Told::Still).is_err() {
            return;
        }
        let Ok(blocks) = cut.recv_timeout(request.max_pause) else { return };
        found = prepared.look(pid, held, blocks, &goes_on);
    })?;
    let mut graph = found.map_err(|why| {
        let reason = match why {
            NoGraph::TooLong => format!(
                "it would have stood still for longer than {} ms: --max-pause allows more",
                request.max_pause.as_millis()
            ),
            NoGraph::Gone => "it has ended meanwhile".to_owned(),
            NoGraph::TooLarge => "it has more than 4 billion references".to_owned(),
        };
        Error::NoGraph { pid, reason }
    })?;
    graph.pause_ns = u64::try_from(report.pause.as_nanos()).unwrap_or(u64::MAX);
    Ok(Box::new(graph))
}
