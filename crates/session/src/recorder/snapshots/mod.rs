//! Snapshots of the live heaps: the queue, the cut, and slices between rounds.

pub(crate) mod graph_snapshots;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use heapr_trace::{ProcessIndex, SnapshotTrigger};

use crate::Error;
use crate::recorder::Recorder;
use crate::recorder::snapshots::graph_snapshots::Capturing;
use crate::recorder::state::process_state::{BlocksBefore, ProcessState};
use crate::snapshots::graph_capture::GraphContents;
use crate::snapshots::native_snapshot::{
    ActiveSnapshot, SnapshotReport, SnapshotRequest, SnapshotScope, SnapshotTicket,
};
use crate::snapshots::native_snapshot_rules::{Looked, RuleState, SnapshotRule};

/// Note in a snapshot of a sampling session.
const ESTIMATED: &str = "what is no sample: blocks and bytes are estimates";

/// Largest number of waiting requests; thousands of ending processes may each bring one.
const WAITING_MAX: usize = 4096;
/// Largest number of reports stored until they are fetched.
const REPORTS_MAX: usize = 1024;
/// Duration of a slice of a snapshot, and limit of the round between two slices. A program that
/// floods all buffers waits so long for the next, and the snapshot has half of the recorder's time.
/// With slices of 10 ms between whole rounds, a snapshot of 10 million blocks beside 25 million
/// events a second took 1.6 to 3 s. The program waited up to 12 ms.
pub(crate) const SLICE: Duration = Duration::from_millis(2);
/// Number of groups of blocks exported between two readings of the clock: about a quarter of a
/// millisecond.
const GROUPS_PER_LOOK: usize = 128;
/// Signal of out-of-memory kills.
const SIGKILL: u64 = 9;

/// Snapshots that wait, the one being taken, and reports of finished ones.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    rules: Vec<RuleState>,
    waiting: VecDeque<(Option<SnapshotTicket>, SnapshotRequest)>,
    reports: VecDeque<SnapshotReport>,
    /// Graph that is being captured.
    pub(crate) capturing: Option<Capturing>,
    last_number: u32,
    last_ticket: u64,
    /// Number of rules' requests that found the queue full.
    left_out_count: u64,
    /// Ended processes whose blocks are still in the ledger.
    ended: Vec<ProcessIndex>,
    /// Number of out-of-memory kills that the kernel had counted at the last check.
    oom_kills: u64,
    /// Contents of blocks that graphs of exiting processes include.
    pub(crate) exit_contents: GraphContents,
}

impl Recorder {
    /// Requests a snapshot.
    pub(crate) fn request_snapshot(&mut self, request: SnapshotRequest) -> Result<SnapshotTicket, Error> {
        if let SnapshotScope::Pids(pids) = &request.scope
            && let Some(&pid) = pids.iter().find(|&&pid| !self.records(pid))
        {
            return Err(Error::NotRecorded { pid });
        }
        if self.snapshots.waiting.len() >= WAITING_MAX {
            return Err(Error::TooManySnapshots { waiting: WAITING_MAX });
        }
        self.snapshots.last_ticket += 1;
        let ticket = SnapshotTicket(self.snapshots.last_ticket);
        self.snapshots.waiting.push_back((Some(ticket), request));
        Ok(ticket)
    }

    pub(crate) fn set_exit_contents(&mut self, contents: GraphContents) {
        self.snapshots.exit_contents = contents;
    }

    /// Adds a rule.
    pub(crate) fn add_snapshot_rule(&mut self, rule: SnapshotRule) {
        if self.snapshots.rules.is_empty() {
            self.snapshots.oom_kills = heapr_proc::machine::oom_kills();
        }
        let now_ns = self.clock.now_ns();
        self.snapshots.rules.push(RuleState::new(rule, now_ns));
    }

    /// Whether rules trigger snapshots.
    pub(crate) fn has_snapshot_rules(&self) -> bool {
        !self.snapshots.rules.is_empty()
    }

    /// Retains the rules for which `is_kept` returns true.
    pub(crate) fn retain_snapshot_rules(&mut self, mut is_kept: impl FnMut(&SnapshotRule) -> bool) {
        self.snapshots.rules.retain(|state| is_kept(state.rule()));
    }

    /// Takes the oldest report that was not fetched yet.
    pub(crate) fn take_snapshot_report(&mut self) -> Option<SnapshotReport> {
        self.snapshots.reports.pop_front()
    }

    /// Takes the report of this request, if it is finished.
    pub(crate) fn take_report_of(&mut self, ticket: SnapshotTicket) -> Option<SnapshotReport> {
        let reports = &mut self.snapshots.reports;
        let place = reports.iter().position(|report| report.ticket == Some(ticket))?;
        reports.remove(place)
    }

    /// Whether a snapshot is being taken or waits.
    pub(crate) fn has_snapshots_to_take(&self) -> bool {
        if self.awaits_standstill() {
            return true;
        }
        // A capture under way needs no work of the recorder.
        match &self.snapshots.capturing {
            Some(_) => self.sink.has_blocks_to_write(),
            None => self.sink.has_snapshot() || !self.snapshots.waiting.is_empty(),
        }
    }

    /// Number of rules' requests that were left out because too many waited.
    pub(crate) fn snapshots_left_out(&self) -> u64 {
        self.snapshots.left_out_count
    }

    /// Works on the current snapshot for one slice, or cuts the next one. Called after a round, so
    /// that all events up to then are applied.
    pub(crate) fn advance_snapshots(&mut self) {
        let now_ns = self.clock.now_ns();
        let mut due = Vec::new();
        // At the end no rule triggers another snapshot.
        for state in self.snapshots.rules.iter_mut().filter(|_| !self.is_final) {
            due.extend(state.at_time(now_ns));
        }
        // Ended or unrecorded processes have no new data: an empty snapshot would stand for them as
        // the last.
        due.retain(|request| {
            let is_due = |process: &ProcessState| process.is_of(&request.scope) && self.is_recorded(process);
            self.processes.iter().any(is_due)
        });
        due.into_iter().for_each(|request| self.queue_by_rule(request));
        self.look_for_exits();
        self.advance_capture();
        if !self.sink.has_snapshot() {
            if self.snapshots.capturing.is_some() {
                return;
            }
            let Some((ticket, request)) = self.snapshots.waiting.pop_front() else {
                self.forget_ended();
                return;
            };
            if let Some(graph) = request.graph.clone() {
                self.begin_capture(ticket, request, graph);
                return;
            }
            self.cut(ticket, request);
        }
        let began = Instant::now();
        loop {
            if let Some(report) = self.sink.snapshot_slice(GROUPS_PER_LOOK) {
                self.keep_report(report);
                return;
            }
            if began.elapsed() >= SLICE || !self.sink.has_blocks_to_write() {
                return;
            }
        }
    }

    /// Stores a report until it is fetched.
    pub(crate) fn keep_report(&mut self, report: SnapshotReport) {
        let reports = &mut self.snapshots.reports;
        if reports.len() >= REPORTS_MAX {
            reports.pop_front();
        }
        reports.push_back(report);
    }

    /// Completes all requested snapshots.
    pub(crate) fn finish_snapshots(&mut self) {
        while self.has_snapshots_to_take() || self.snapshots.capturing.is_some() {
            self.advance_snapshots();
            if self.snapshots.capturing.is_some() {
                // The capturing thread has more to do than this one.
                std::thread::sleep(SLICE);
            }
        }
    }

    /// Returns the number of snapshots taken, with the one being taken.
    pub(crate) fn snapshot_count(&self) -> u64 {
        u64::from(self.snapshots.last_number)
    }

    /// Requests the final snapshot of a session that keeps only the live heap.
    pub(crate) fn request_last_snapshot(&mut self) {
        let lives = self.processes.iter().any(|process| !process.has_ended && !process.is_done);
        if lives && !self.sink.keeps_events() {
            let request = SnapshotRequest { name: "stop".to_owned(), ..SnapshotRequest::default() };
            self.snapshots.waiting.push_back((None, request));
        }
    }

    /// Drops the blocks of ended processes that no further snapshot needs: the recorder's memory is
    /// bounded by the live blocks.
    fn forget_ended(&mut self) {
        if self.snapshots.ended.is_empty() {
            return;
        }
        self.sink.take_pending();
        self.sink.end_processes_before(self.watermark_ns);
        for process in std::mem::take(&mut self.snapshots.ended) {
            if self.sink.ends.has(process) {
                self.snapshots.ended.push(process);
            } else if !self.sink.keeps_events() {
                self.sink.ledger.drop_process(process);
            } else if self.sink.ledger.has_ended(process) {
                self.sink.ledger.forget_left(process);
            }
        }
    }

    pub(crate) fn queue_by_rule(&mut self, request: SnapshotRequest) {
        // A graph covers a single process.
        if request.graph.is_some() && !matches!(request.scope, SnapshotScope::Image(_)) {
            for request in self.one_by_one(request) {
                self.queue_by_rule(request);
            }
            return;
        }
        // A waiting request for the same reason will show the same.
        let is_waiting = self.snapshots.waiting.iter().any(|(_, waiting)| *waiting == request);
        if is_waiting {
            return;
        }
        if self.snapshots.waiting.len() >= WAITING_MAX {
            self.snapshots.left_out_count += 1;
            return;
        }
        self.snapshots.waiting.push_back((None, request));
    }

    pub(crate) fn cut(&mut self, ticket: Option<SnapshotTicket>, request: SnapshotRequest) {
        let of_it = self.processes.iter().filter(|process| process.is_of(&request.scope));
        let facts: Vec<(ProcessIndex, Option<u64>)> = of_it
            .map(|process| {
                let rss_bytes =
                    if process.has_ended { None } else { heapr_proc::resident_bytes(process.pid) };
                (process.index, rss_bytes)
            })
            .collect();
        self.snapshots.last_number += 1;
        let notes = self.blind_spots(&facts);
        let active = ActiveSnapshot::new(ticket, self.snapshots.last_number, request, &facts, notes);
        self.sink.begin_snapshot(active, self.watermark_ns);
    }

    /// Notes about what a snapshot cannot show.
    fn blind_spots(&self, of: &[(ProcessIndex, Option<u64>)]) -> Vec<String> {
        let loss = self.statistics().loss;
        let mut notes = Vec::new();
        if self.sink.steering.is_some() {
            notes.push(ESTIMATED.to_owned());
        }
        let mut note = |count: u64, [one, many]: [&str; 2], rest: &str| {
            if count > 0 {
                notes.push(format!("{count} {}{rest}", if count == 1 { one } else { many }));
            }
        };
        let missing = " lost before it: blocks are missing, or listed that are free";
        note(loss.events_lost, ["event was", "events were"], missing);
        let left_out = ["record before it made no sense and was", "records before it made no sense and were"];
        note(loss.records_invalid, left_out, " lost: blocks are missing, or listed that are free");
        note(loss.processes_refused, ["process", "processes"], " could not be recorded");
        let is_of_it = |process: &&ProcessState| of.iter().any(|(index, _)| *index == process.index);
        for process in self.processes.iter().filter(is_of_it).filter(|process| process.was_attached) {
            let start_ns = process.entry.as_ref().map_or(0, |entry| entry.start_ns);
            let (pid, after_s) = (process.pid, start_ns as f64 / 1e9);
            let when = format!("when it was attached to, {after_s:.1} s after the session's start");
            notes.push(match &process.before {
                BlocksBefore { unread: Some(reason), .. } => format!(
                    "what process {pid} held {when}, is not known ({reason}): those of its blocks are missing"
                ),
                BlocksBefore { count: 0, .. } => format!("process {pid} held nothing {when}"),
                BlocksBefore { count, bytes, .. } => format!(
                    "process {pid} held {count} blocks of {bytes} bytes in its heap of malloc {when}: those of them that \
                     still live have no stack and no age"
                ),
            });
        }
        notes
    }

    /// Checks with the housekeeping whether sizes of rules were exceeded.
    pub(crate) fn look_at_sizes(&mut self) {
        let is_asked = |state: &RuleState| state.looks_at_sizes();
        if !self.snapshots.rules.iter().any(is_asked) {
            return;
        }
        let living = self.processes.iter().filter(|process| !process.has_ended && !process.is_done);
        let looked: Vec<Looked> = living
            .map(|process| Looked {
                process: process.index,
                pid: process.pid,
                rss_bytes: heapr_proc::resident_bytes(process.pid).unwrap_or(0),
                live_bytes: self.sink.summary.live_bytes_of(process.index),
            })
            .collect();
        let mut due = Vec::new();
        for state in &mut self.snapshots.rules {
            due.extend(state.at_sizes(&looked));
        }
        due.into_iter().for_each(|request| self.queue_by_rule(request));
    }

    /// Keeps the blocks of a process that was let go and is recorded again.
    pub(crate) fn forget_end_of(&mut self, process: ProcessIndex) {
        self.snapshots.ended.retain(|&ended| ended != process);
    }

    /// Queues the snapshot at the end of a process, when everything that it published is merged.
    pub(crate) fn snapshot_at_end_of(&mut self, place: usize) {
        let process = &self.processes[place];
        let (pid, image) = (process.pid, process.index);
        self.snapshots.ended.push(image);
        if !process.has_ended || !self.snapshots.rules.iter().any(|state| state.at_exit_of(pid)) {
            return;
        }
        // After an exec the old heap is gone, but the process has not ended.
        if heapr_proc::is_alive(pid) {
            return;
        }
        let status = process.entry.as_ref().and_then(|entry| entry.exit_status).unwrap_or(0);
        let signal = u64::from(status.cast_unsigned() & 0x7f);
        let oom_kills = heapr_proc::machine::oom_kills();
        let trigger = match signal {
            0 => SnapshotTrigger::Exit,
            SIGKILL if oom_kills > self.snapshots.oom_kills => SnapshotTrigger::OutOfMemory,
            signal => SnapshotTrigger::Killed { signal },
        };
        self.snapshots.oom_kills = oom_kills;
        let scope = SnapshotScope::Image(image);
        self.queue_by_rule(SnapshotRequest { name: String::new(), trigger, scope, graph: None });
    }
}
