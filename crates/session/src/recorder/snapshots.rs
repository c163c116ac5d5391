//! Snapshots of the live heaps: the queue, the cut, and slices between rounds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use heapr_trace::{ProcessIndex, SnapshotTrigger};

use super::Recorder;
use super::graph_snapshots::Capturing;
use crate::Error;
use crate::recorder::process_state::{BlocksBefore, ProcessState};
use crate::snapshots::graph_capture::GraphContents;
use crate::snapshots::native_snapshot::{
    ActiveSnapshot, SnapshotReport, SnapshotRequest, SnapshotScope, SnapshotTicket,
};
use crate::snapshots::native_snapshot_rules::{Looked, RuleState, SnapshotRule};

/// Said of a snapshot of a session that samples.
const ESTIMATED: &str = "what is no sample: blocks and bytes are estimates";

/// Requests that wait; processes that end by the thousand each bring one.
const WAITING_MAX: usize = 4096;
/// Reports kept for who asks for them.
const REPORTS_MAX: usize = 1024;
/// A slice of a snapshot takes this long, and the round between two of them no longer: a program
/// that floods all buffers waits so long for the next, and the snapshot has half of the recorder's
/// time. (With slices of 10 ms between whole rounds, a snapshot of 10 million blocks beside 25
/// million events a second took 1.6 to 3 s, and the program waited up to 12 ms.)
pub(super) const SLICE: Duration = Duration::from_millis(2);
/// Groups of blocks exported between two looks at the clock: about a quarter of a millisecond.
const GROUPS_PER_LOOK: usize = 128;
/// Signal of out-of-memory kills.
const SIGKILL: u64 = 9;

/// What waits, what is being taken, what was taken.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    rules: Vec<RuleState>,
    waiting: VecDeque<(Option<SnapshotTicket>, SnapshotRequest)>,
    reports: VecDeque<SnapshotReport>,
    /// A graph on its way.
    pub(super) capturing: Option<Capturing>,
    last_number: u32,
    last_ticket: u64,
    /// Requests of rules that found the queue full.
    left_out_count: u64,
    /// Processes that have ended and whose blocks are still in the ledger.
    ended: Vec<ProcessIndex>,
    /// Out-of-memory kills that the kernel had counted at the last look.
    oom_kills: u64,
    /// What of the contents of blocks the graphs of processes at their end have.
    pub(super) exit_contents: GraphContents,
}

impl Recorder {
    /// Asks for a snapshot.
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

    /// Whether snapshots are taken without being asked for.
    pub(crate) fn has_snapshot_rules(&self) -> bool {
        !self.snapshots.rules.is_empty()
    }

    /// Keeps the rules for which `is_kept`.
    pub(crate) fn retain_snapshot_rules(&mut self, mut is_kept: impl FnMut(&SnapshotRule) -> bool) {
        self.snapshots.rules.retain(|state| is_kept(state.rule()));
    }

    /// The oldest report that nobody has taken yet.
    pub(crate) fn take_snapshot_report(&mut self) -> Option<SnapshotReport> {
        self.snapshots.reports.pop_front()
    }

    /// The report of this request, if it is there.
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
        // While a graph is on its way there is nothing to do.
        match &self.snapshots.capturing {
            Some(_) => self.sink.has_blocks_to_write(),
            None => self.sink.has_snapshot() || !self.snapshots.waiting.is_empty(),
        }
    }

    /// Requests of rules that were left out because too many waited.
    pub(crate) fn snapshots_left_out(&self) -> u64 {
        self.snapshots.left_out_count
    }

    /// A slice of the snapshot that is being taken, or the cut of the next. After a round: what has
    /// happened by then is applied.
    pub(crate) fn advance_snapshots(&mut self) {
        let now_ns = self.clock.now_ns();
        let mut due = Vec::new();
        // At the end only what was asked for by then is taken.
        for state in self.snapshots.rules.iter_mut().filter(|_| !self.is_final) {
            due.extend(state.at_time(now_ns));
        }
        // Of processes that have ended, or are not recorded any more, there is nothing new: an
        // empty snapshot would stand for them as the last.
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

    /// Keeps a report for who asks for it.
    pub(super) fn keep_report(&mut self, report: SnapshotReport) {
        let reports = &mut self.snapshots.reports;
        if reports.len() >= REPORTS_MAX {
            reports.pop_front();
        }
        reports.push_back(report);
    }

    /// Takes all that are asked for.
    pub(crate) fn finish_snapshots(&mut self) {
        while self.has_snapshots_to_take() || self.snapshots.capturing.is_some() {
            self.advance_snapshots();
            if self.snapshots.capturing.is_some() {
                // Its thread has more to do than we.
                std::thread::sleep(SLICE);
            }
        }
    }

    /// Asks for the snapshot with which a session that keeps nothing but the live heap ends.
    pub(super) fn request_last_snapshot(&mut self) {
        let lives = self.processes.iter().any(|process| !process.has_ended && !process.is_done);
        if lives && !self.sink.keeps_events() {
            let request = SnapshotRequest { name: "stop".to_owned(), ..SnapshotRequest::default() };
            self.snapshots.waiting.push_back((None, request));
        }
    }

    /// Drops the blocks of ended processes, of which no snapshot will be taken any more: the
    /// recorder's memory is bounded by what is live.
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

    pub(super) fn queue_by_rule(&mut self, request: SnapshotRequest) {
        // A graph is of one process.
        if request.graph.is_some() && !matches!(request.scope, SnapshotScope::Image(_)) {
            for request in self.one_by_one(request) {
                self.queue_by_rule(request);
            }
            return;
        }
        // One that waits for the same reason will show the same.
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

    pub(super) fn cut(&mut self, ticket: Option<SnapshotTicket>, request: SnapshotRequest) {
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

    /// What a snapshot cannot see.
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

    /// Looks whether sizes have been passed; with the housekeeping.
    pub(super) fn look_at_sizes(&mut self) {
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

    /// A process that was let go is recorded again: its blocks stay.
    pub(super) fn forget_end_of(&mut self, process: ProcessIndex) {
        self.snapshots.ended.retain(|&ended| ended != process);
    }

    /// A process has ended and all that it published is taken.
    pub(super) fn snapshot_at_end_of(&mut self, place: usize) {
        let process = &self.processes[place];
        let (pid, image) = (process.pid, process.index);
        self.snapshots.ended.push(image);
        if !process.has_ended || !self.snapshots.rules.iter().any(|state| state.at_exit_of(pid)) {
            return;
        }
        // The same process went on to another program by exec: its old heap is gone, but it has not
        // ended.
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
