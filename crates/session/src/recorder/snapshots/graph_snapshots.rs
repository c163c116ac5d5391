//! Snapshots with the object graph of a process: the cut is made at the moment at which the process
//! stood still.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use heapr_trace::{Block, HeapId, Notice, ProcessIndex, SnapshotTrigger};
use heapr_wire::{FLAG_SEE_EXITS, MARK_EXIT_SEEN, MARK_EXIT_WAITS};

use crate::Error;
use crate::failure::Failure;
use crate::recorder::Recorder;
use crate::recorder::state::process_state::ProcessState;
use crate::snapshots::graph_capture::{Blocks, GraphCapture, GraphRequest, Told};
use crate::snapshots::native_snapshot::{SnapshotReport, SnapshotRequest, SnapshotScope, SnapshotTicket};
use crate::snapshots::running_look::Births;

/// Graph capture under way, and the request that it serves.
#[derive(Debug)]
pub(crate) struct Capturing {
    capture: GraphCapture,
    process: ProcessIndex,
    /// Slot and generation of the process, if it waits at its exit.
    at_exit: Option<(u32, u32)>,
    /// Request, until the cut is made.
    asked: Option<(Option<SnapshotTicket>, SnapshotRequest)>,
}

/// Longest wait for events from before the standstill: another process may be in the middle of an
/// event.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);
const DRAIN_PAUSE: Duration = Duration::from_micros(60);
/// Pause between two rounds while a process is about to stand still.
const HEAR_LIMIT: Duration = Duration::from_millis(1);

impl Recorder {
    /// Whether a process is about to stand still, which must be as short as possible.
    pub(crate) fn awaits_standstill(&self) -> bool {
        let capturing = self.snapshots.capturing.as_ref();
        capturing.is_some_and(|capturing| capturing.asked.is_some() && !capturing.capture.is_running)
    }

    /// Begins a snapshot with a graph.
    pub(crate) fn begin_capture(
        &mut self,
        ticket: Option<SnapshotTicket>,
        request: SnapshotRequest,
        graph: GraphRequest,
    ) {
        let at_exit = self.exiting(&request).filter(|_| graph.at_exit);
        match self.start_capture(&request, graph) {
            Ok((capture, process)) => {
                let asked = Some((ticket, request));
                self.snapshots.capturing = Some(Capturing { capture, process, at_exit, asked });
            }
            Err(error) => {
                self.let_end(at_exit);
                self.report_failure(ticket, &error);
            }
        }
    }

    fn start_capture(
        &self,
        request: &SnapshotRequest,
        graph: GraphRequest,
    ) -> Result<(GraphCapture, ProcessIndex), Error> {
        let lives = |process: &&ProcessState| !process.has_ended && !process.is_done;
        let mut of_it = self.processes.iter().filter(|process| process.is_of(&request.scope)).filter(lives);
        let first = of_it.next().ok_or(match request.scope {
            SnapshotScope::Pids(ref pids) => Error::NotRecorded { pid: pids.first().copied().unwrap_or(0) },
            _ => Error::OneProcess { count: 0 },
        })?;
        match of_it.count() {
            0 => {
                let ticks = self.clock.ticks();
                Ok((GraphCapture::start(first.pid, graph, Box::new(move || ticks.now()))?, first.index))
            }
            more => Err(Error::OneProcess { count: more + 1 }),
        }
    }

    /// Handles what the capturing thread reports.
    pub(crate) fn advance_capture(&mut self) {
        let Some(capturing) = &self.snapshots.capturing else { return };
        // The process may stand still at any moment, and may have to until the cut is made.
        let within = if self.awaits_standstill() { HEAR_LIMIT } else { Duration::ZERO };
        let Some(told) = capturing.capture.hear(within) else { return };
        match told {
            Told::Early => {
                self.round();
                self.give_blocks();
            }
            Told::Still => self.cut_as_it_stood(),
            Told::Done(outcome) => {
                let Some(capturing) = self.snapshots.capturing.take() else { return };
                self.let_end(capturing.at_exit);
                match (capturing.asked, outcome) {
                    (Some((ticket, _)), Err(error)) => {
                        self.note_failure(capturing.process, &error);
                        self.report_failure(ticket, &error);
                    }
                    // The capture reports success only after it was given the blocks.
                    (Some((ticket, _)), Ok(_)) => {
                        let reason = "it did not wait for the recorder".to_owned();
                        self.report_failure(ticket, &Error::NoGraph { pid: capturing.capture.pid, reason });
                    }
                    (None, Ok(mut graph)) => {
                        graph.process = capturing.process;
                        self.sink.give_graph(Ok(*graph));
                    }
                    (None, Err(error)) => {
                        self.note_failure(capturing.process, &error);
                        self.sink.give_graph(Err(Failure::from(&error)));
                    }
                }
            }
        }
    }

    /// Returns the moment at which a cut is requested.
    pub(crate) fn cut_ticks(&self) -> Option<u64> {
        let capturing = self.snapshots.capturing.as_ref().filter(|capturing| capturing.asked.is_some())?;
        capturing.capture.cut_ticks()
    }

    /// Cuts at the moment at which the process stood still: the blocks live at that moment are the
    /// snapshot.
    ///
    /// Everything that the process does afterwards is later, and no later event is merged before
    /// the cut is made. So the process need not wait for the recorder.
    fn cut_as_it_stood(&mut self) {
        let deadline = Instant::now() + DRAIN_LIMIT;
        self.round();
        while !self.is_at_cut && Instant::now() < deadline {
            std::thread::sleep(DRAIN_PAUSE);
            self.round();
        }
        let Some(capturing) = &mut self.snapshots.capturing else { return };
        let Some((ticket, request)) = capturing.asked.take() else { return };
        self.cut(ticket, request);
        self.sink.await_graph();
        self.give_blocks();
    }

    /// Hands the live blocks over to the capturing thread.
    fn give_blocks(&self) {
        let Some(Capturing { capture, process, .. }) = &self.snapshots.capturing else { return };
        let is_its = |block: &Block| block.process == *process && block.heap == HeapId::MALLOC;
        let blocks = || self.sink.ledger.live_blocks().filter(is_its);
        let places = blocks().map(|block| (block.address_avma, block.size_bytes)).collect();
        let mut births = Births::default();
        if capture.is_running {
            births = Births::of(blocks().map(|block| (block.address_avma, block.alloc_ns)).collect());
        }
        capture.give(Blocks { places, births });
    }

    /// Splits a request for graphs of several processes into one per process.
    pub(crate) fn one_by_one(&self, request: SnapshotRequest) -> Vec<SnapshotRequest> {
        let lives = |process: &&ProcessState| !process.has_ended && !process.is_done;
        let of_it = self.processes.iter().filter(lives).filter(|process| process.is_of(&request.scope));
        let one = |process: &ProcessState| SnapshotRequest {
            scope: SnapshotScope::Image(process.index),
            ..request.clone()
        };
        of_it.map(one).collect()
    }

    /// Requests a snapshot of each process that waits for it at its exit.
    pub(crate) fn look_for_exits(&mut self) {
        if self.pool.control().flags.load(Relaxed) & FLAG_SEE_EXITS == 0 {
            return;
        }
        for place in 0..self.processes.len() {
            let process = &self.processes[place];
            if process.has_ended || process.is_done || process.is_exit_seen {
                continue;
            }
            let Some(slot) = self.pool.process_slot(process.slot) else { continue };
            // Acquire: sees what the process wrote before.
            let is_waiting = slot.generation.load(Relaxed) == process.generation
                && slot.exit_marks.load(Acquire) & MARK_EXIT_WAITS != 0;
            if is_waiting {
                self.processes[place].is_exit_seen = true;
                let scope = SnapshotScope::Image(self.processes[place].index);
                let contents = self.snapshots.exit_contents;
                let graph = Some(GraphRequest { at_exit: true, contents, ..GraphRequest::default() });
                let trigger = SnapshotTrigger::Exit;
                self.queue_by_rule(SnapshotRequest { name: String::new(), trigger, scope, graph });
            }
        }
    }

    /// Returns slot and generation of the request's process.
    fn exiting(&self, request: &SnapshotRequest) -> Option<(u32, u32)> {
        let process = self.processes.iter().find(|process| process.is_of(&request.scope))?;
        Some((process.slot, process.generation))
    }

    /// Lets a process that waits at its exit go on.
    fn let_end(&self, at_exit: Option<(u32, u32)>) {
        let Some((slot, generation)) = at_exit else { return };
        let slot = self.pool.process_slot(slot);
        if let Some(slot) = slot.filter(|slot| slot.generation.load(Relaxed) == generation) {
            slot.exit_marks.fetch_or(MARK_EXIT_SEEN, Release);
        }
    }

    /// Writes a notice about a process that ended without the capture planned for its exit, so that
    /// readers learn why there is no graph.
    pub(crate) fn note_missing_graph(&mut self, place: usize) {
        let process = &self.processes[place];
        let asked = self.pool.control().flags.load(Relaxed) & FLAG_SEE_EXITS != 0;
        let is_over =
            process.has_ended && !process.is_let_go && !process.is_replaced && !process.is_superseded;
        if !asked || !is_over || process.is_exit_seen {
            return;
        }
        let status = process.entry.as_ref().and_then(|entry| entry.exit_status);
        let how = match status.map(|status| status & 0x7f) {
            Some(0) => "it did not end by exit, but by _exit, quick_exit or the like".to_owned(),
            Some(signal) => format!("it was ended by signal {signal}"),
            None => "it was ended by a signal, by _exit, quick_exit or the like".to_owned(),
        };
        let process = process.index;
        let text = format!("{}: {how}; what it has leaked is not known", Notice::NO_GRAPH_AT_END);
        let outcome = self.sink.writer.notice(&Notice { process, time_ns: self.clock.now_ns(), text });
        self.sink.keep(outcome);
    }

    /// Writes a notice that tells readers why there is no graph.
    fn note_failure(&mut self, process: ProcessIndex, error: &Error) {
        let time_ns = self.clock.now_ns();
        let text = format!("a snapshot with references could not be taken: {error}");
        let outcome = self.sink.writer.notice(&Notice { process, time_ns, text });
        self.sink.keep(outcome);
    }

    fn report_failure(&mut self, ticket: Option<SnapshotTicket>, error: &Error) {
        let report = SnapshotReport::failed(ticket, Failure::from(error));
        self.keep_report(report);
    }
}
