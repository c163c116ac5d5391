//! Loop of a session that is controlled from outside: rounds of the recorder, with orders between
//! them.

mod remarks;
mod updates;

use std::collections::{HashMap, VecDeque};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use crate::control::clerk::Clerk;
use crate::control::target_thread::{Done, Job, TargetThread};
use crate::control::{Order, Request, StopReport};
use crate::failure::Failure;
use crate::flags::flagged_programs::{Flagged, FlaggedTargets};
use crate::recorder::facts::process_tree::descendants;
use crate::{Error, FlagKind, InjectError, LoggingMode, Session, SessionStatus, SessionSummary};
use remarks::{attach_remark, child_remark, children_remark, left_remark};
use updates::PendingUpdate;

/// Interval between two checks of the processes, so that an ended one is shown as ended.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Time after which a session without orders and without live targets completes its file and ends.
/// Its owner has most likely gone without stopping it.
const FORSAKEN_AFTER: Duration = Duration::from_secs(12 * 3600);

/// Longest wait for the program to load the agent: it loads before its own libraries, within
/// milliseconds.
const PROGRAM_LIMIT: Duration = Duration::from_secs(2);

/// Largest number of remarks stored.
const REMARKS_MAX: usize = 20;
/// Largest number of orders between two rounds.
const ORDERS_PER_ROUND: u32 = 16;

/// Session with the program that it started and the source of its orders.
#[derive(Debug)]
pub(crate) struct Worker {
    session: Session,
    clerk: Clerk,
    child: Option<Child>,
    wait_status: Option<i32>,
    attached: Vec<u32>,
    /// Thread that attaches and detaches; created when first needed.
    targets: Option<TargetThread<Purpose>>,
    /// Updates that wait for jobs of that thread.
    updates: HashMap<u64, PendingUpdate>,
    update_count: u64,
    next_look: Instant,
    flagged: Option<Flagged>,
    /// Remarks on flagged processes, newest last.
    remarks: VecDeque<String>,
}

/// Purpose of an attach or detach.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// Process is flagged.
    Flagged,
    /// Update with this number requested the job.
    Update(u64),
    /// Session ends.
    End,
}

/// Result of a worker.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Summary of the session; `None` if it was cancelled, and the file removed.
    pub(crate) summary: Option<SessionSummary>,
    pub(crate) report: StopReport,
    /// Order that ended the session, to be answered when the name is free again.
    pub(crate) order: Option<Order>,
}

impl Worker {
    pub(crate) fn new(session: Session, orders: Receiver<Order>, child: Option<Child>) -> Self {
        Self {
            session,
            clerk: Clerk::new(orders),
            child,
            wait_status: None,
            attached: Vec::new(),
            targets: None,
            updates: HashMap::new(),
            update_count: 0,
            next_look: Instant::now(),
            flagged: None,
            remarks: VecDeque::new(),
        }
    }

    /// Attaches to the processes that a session begins with.
    ///
    /// # Errors
    /// The first failure; processes before it are let go again.
    pub(crate) fn attach_all(&mut self, pids: &[u32], with_children: bool) -> Result<Vec<String>, Error> {
        let mut remarks = Vec::new();
        for &pid in pids {
            match self.attach(pid) {
                Ok(remark) => remarks.push(format!("process {pid} is traced: {remark}")),
                Err(error) => {
                    self.detach_all();
                    return Err(error);
                }
            }
        }
        // Children that start after the attach are traced anyhow.
        for &pid in pids {
            let children = self.children_of(pid);
            if with_children {
                for child in children {
                    let outcome = self.attach(child);
                    remarks.push(child_remark(pid, child, outcome));
                }
            } else if let Some(remark) = children_remark(pid, &children) {
                remarks.push(remark);
            }
        }
        Ok(remarks)
    }

    /// Waits until the program that the session has started is recorded, so that a status shows it.
    /// Ends early if the program has ended or does not load the agent.
    pub(crate) fn await_program(&mut self) {
        let began = Instant::now();
        while let Some(child) = &self.child
            && !self.session.recorder().has_started(child.id())
            && began.elapsed() < PROGRAM_LIMIT
        {
            self.session.step();
            self.look_at_processes();
        }
    }

    /// Returns the descendants of `pid` that are not recorded.
    fn children_of(&mut self, pid: u32) -> Vec<u32> {
        self.session.step_now();
        let mut children = descendants(pid);
        children.retain(|&child| !self.session.recorder().records(child));
        children
    }

    /// See [`Session::use_spare_time`].
    pub(crate) fn use_spare_time(&mut self) {
        self.session.use_spare_time();
    }

    /// Starts to attach to flagged programs when they start. Running programs that must be traced
    /// are traced on return. Returns remarks on them.
    pub(crate) fn watch_flags(&mut self, flagged: FlaggedTargets) -> Vec<String> {
        let kind = match self.session.properties().mode {
            LoggingMode::Snapshot => FlagKind::Snapshot,
            _ => FlagKind::Heap,
        };
        self.flagged = Some(Flagged::watch(kind, flagged, self.session.preload()));
        self.attach_flagged();
        while self.targets.as_ref().is_some_and(TargetThread::is_busy) {
            self.session.step();
            self.take_done();
        }
        self.remarks.iter().cloned().collect()
    }

    fn attach_flagged(&mut self) {
        let Some(flagged) = &mut self.flagged else { return };
        let recorder = self.session.recorder();
        let findings = flagged.look(|pid| recorder.records(pid));
        for remark in findings.remarks {
            self.remark(remark);
        }
        for (pid, outcome) in findings.attached {
            let report = self.session.take_attached(pid, *outcome);
            self.attached.push(pid);
            let remark = attach_remark(&report);
            self.remark(format!(
                "process {pid} is flagged and traced since its libraries were loaded: {remark}"
            ));
        }
        for pid in findings.to_attach {
            // A child of a traced process is traced from its birth.
            let is_at = self.targets.as_ref().is_some_and(|targets| targets.is_at(pid));
            if !is_at && !self.session.recorder().records(pid) {
                let preload = self.session.preload();
                self.push(Job::Attach { pid, preload }, Purpose::Flagged);
            }
        }
    }

    fn remark(&mut self, text: String) {
        if self.remarks.back() == Some(&text) {
            return;
        }
        if self.remarks.len() >= REMARKS_MAX {
            self.remarks.pop_front();
        }
        self.remarks.push_back(text);
    }

    /// Lets all processes go. A process that has ended, or cannot be stopped, runs on untraced once
    /// the session is closed.
    fn detach_all(&mut self) {
        for pid in std::mem::take(&mut self.attached) {
            self.push(Job::Detach { pid }, Purpose::End);
        }
        // Jobs under way are finished too, and may have attached to another process.
        loop {
            self.take_done();
            for pid in std::mem::take(&mut self.attached) {
                self.push(Job::Detach { pid }, Purpose::End);
            }
            if !self.targets.as_ref().is_some_and(TargetThread::is_busy) {
                return;
            }
            self.session.hold_spare_time(true);
            self.session.step();
        }
    }

    /// Gives a job to the thread; if it cannot start (no memory), the job runs here.
    fn push(&mut self, job: Job, purpose: Purpose) {
        if self.targets.is_none() {
            self.targets = TargetThread::start(self.session.bell()).ok();
        }
        match &mut self.targets {
            Some(targets) => targets.push(job, purpose),
            None => {
                let done = job.run();
                self.finish(purpose, done);
            }
        }
    }

    fn take_done(&mut self) {
        while let Some((purpose, done)) = self.targets.as_mut().and_then(TargetThread::take_done) {
            self.finish(purpose, done);
        }
    }

    /// Enters the result of a job, and passes it on by the job's purpose.
    fn finish(&mut self, purpose: Purpose, done: Done) {
        let (pid, is_attach, outcome) = match done {
            Done::Attached { pid, outcome: Ok(outcome) } => {
                let report = self.session.take_attached(pid, *outcome);
                self.attached.push(pid);
                (pid, true, Ok(attach_remark(&report)))
            }
            Done::Attached { pid, outcome: Err(error) } => {
                self.session.forget_attach();
                (pid, true, Err(error))
            }
            Done::Detached { pid, outcome } => {
                let outcome = match outcome {
                    Err(_) if self.session.let_go_outside(pid) => Ok(String::new()),
                    outcome => outcome.map(|report| {
                        self.session.take_detached(pid, &report);
                        if report.bytes_left > 0 {
                            self.remark(left_remark(pid, report.bytes_left));
                        }
                        String::new()
                    }),
                };
                (pid, false, outcome)
            }
        };
        match (purpose, outcome) {
            (Purpose::Flagged, Ok(remark)) => {
                self.remark(format!("process {pid} is flagged and traced: {remark}"));
            }
            // Another path has recorded the process meanwhile.
            (Purpose::Flagged, Err(Error::Inject { source: InjectError::AlreadyAttached { .. } }))
                if self.session.recorder().records(pid) => {}
            (Purpose::Flagged, Err(error)) => self.remark(format!("process {pid} is flagged: {error}")),
            (Purpose::Update(number), outcome) => {
                let children = if is_attach && outcome.is_ok() { self.children_of(pid) } else { Vec::new() };
                let children = self.update_children(number, pid, children);
                let Some(update) = self.updates.get_mut(&number) else { return };
                match outcome {
                    Ok(remark) if is_attach => {
                        update.report.attached.push((pid, [remark, children].concat()));
                    }
                    Ok(_) => update.report.detached.push(pid),
                    Err(error) => update.report.failed.push((pid, Failure::from(&error))),
                }
                update.left_count -= 1;
                if update.left_count == 0 {
                    self.answer_update(number);
                }
            }
            (Purpose::End, _) => {}
        }
    }

    /// Whether a thread of this process holds a target still, or may at any time: with flags each
    /// exec waits for the watch.
    fn holds_targets(&self) -> bool {
        self.flagged.is_some() || self.targets.as_ref().is_some_and(TargetThread::is_busy)
    }

    /// Whether every event that needs the session wakes it. The end of a program that it started
    /// does not.
    fn may_rest(&self) -> bool {
        let are_looked_for = self.flagged.as_ref().is_some_and(Flagged::looks_itself);
        self.child.is_none() && !are_looked_for
    }

    /// Whether any target exists or may come.
    fn is_wanted(&self) -> bool {
        self.child.is_some()
            || self.flagged.is_some()
            || self.session.live_process_count() > 0
            || self.targets.as_ref().is_some_and(TargetThread::is_busy)
    }

    /// Records until an order or `stop` ends the session, no sender of orders is left, or no target
    /// was there for long. Without a target, it also ends if `is_reachable` tells that no command
    /// can find it any more.
    pub(crate) fn run(self, stop: &AtomicBool, is_reachable: &dyn Fn() -> bool) -> Ended {
        self.run_until_forsaken(stop, is_reachable, FORSAKEN_AFTER)
    }

    fn run_until_forsaken(
        mut self,
        stop: &AtomicBool,
        is_reachable: &dyn Fn() -> bool,
        forsaken_after: Duration,
    ) -> Ended {
        let mut wanted_at = Instant::now();
        loop {
            if self.is_wanted() {
                wanted_at = Instant::now();
            } else if wanted_at.elapsed() > forsaken_after || !is_reachable() {
                return self.end(None);
            }
            self.session.hold_spare_time(self.holds_targets());
            self.session.let_rest(self.may_rest());
            self.session.step();
            self.look_at_processes();
            self.report_snapshots();
            self.attach_flagged();
            self.take_done();
            // Clients that ask without end must not keep the rounds waiting.
            for _ in 0..ORDERS_PER_ROUND {
                match self.clerk.next_order() {
                    Ok(order) if order.is_last() => return self.end(Some(order)),
                    Ok(order) => {
                        wanted_at = Instant::now();
                        self.take(order);
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self.end(None),
                }
            }
            if stop.load(Relaxed) {
                return self.end(None);
            }
        }
    }

    fn look_at_processes(&mut self) {
        if let Some(child) = &mut self.child
            && let Ok(Some(status)) = self.session.child_ended(child)
        {
            self.wait_status = Some(status.into_raw());
            self.child = None;
        }
        if self.next_look.elapsed() >= LOOK_EVERY {
            self.session.look_for_ends();
            self.next_look = Instant::now();
        }
    }

    fn take(&mut self, order: Order) {
        let (remarks, flagged) = (&self.remarks, &self.flagged);
        let complete = |status| SessionStatus {
            remarks: remarks.iter().cloned().collect(),
            flag_watch: flagged.as_ref().map(|flagged| flagged.method().to_owned()),
            ..status
        };
        let left = self.clerk.take(&mut self.session, order, complete);
        // An update is answered when the jobs for all its processes are done.
        if let Some(Order { request: Request::Update(update), answer }) = left {
            self.update(&update, answer);
        }
    }

    fn report_snapshots(&mut self) {
        self.clerk.report_snapshots(&mut self.session);
        // Reports of rules' snapshots are not requested by any client.
        while self.session.take_snapshot_report().is_some() {}
    }

    /// Attaches to a process. Returns a remark on it.
    fn attach(&mut self, pid: u32) -> Result<String, Error> {
        if self.session.recorder().records(pid) {
            return Err(Error::AlreadyRecorded { pid });
        }
        let report = self.session.attach(pid)?;
        self.attached.push(pid);
        Ok(attach_remark(&report))
    }

    fn end(mut self, order: Option<Order>) -> Ended {
        self.detach_all();
        let output = self.session.properties().output.clone();
        let summary = self.session.stop();
        let is_cancel = order.as_ref().is_some_and(|order| order.request == Request::Cancel);
        if is_cancel {
            let _ = std::fs::remove_file(&output);
        }
        let report = StopReport {
            output: output.into_os_string(),
            event_count: summary.summary.event_count,
            process_count: summary.process_count as u64,
            wall_ns: u64::try_from(summary.wall.as_nanos()).unwrap_or(u64::MAX),
            events_lost: summary.statistics.loss.missing_events(),
            wait_status: self.wait_status,
            write_error: summary.write_error.as_ref().map(ToString::to_string),
        };
        Ended { summary: (!is_cancel).then_some(summary), report, order }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionProperties;

    #[test]
    fn a_session_without_targets_that_nobody_asks_completes_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("forsaken.heapr");
        let session = Session::start(SessionProperties::new(path.clone())).unwrap();
        let (_orders, receiver) = std::sync::mpsc::channel();
        let worker = Worker::new(session, receiver, None);
        let ended = worker.run_until_forsaken(&AtomicBool::new(false), &|| true, Duration::from_millis(150));
        assert!(ended.summary.is_some() && ended.report.write_error.is_none());
        assert!(heapr_trace::Trace::open(&path).is_ok());
    }

    #[test]
    fn a_session_without_targets_that_nobody_can_find_completes_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("unreachable.heapr");
        let session = Session::start(SessionProperties::new(path.clone())).unwrap();
        let (_orders, receiver) = std::sync::mpsc::channel();
        let worker = Worker::new(session, receiver, None);
        let ended = worker.run_until_forsaken(&AtomicBool::new(false), &|| false, FORSAKEN_AFTER);
        assert!(ended.summary.is_some() && ended.report.write_error.is_none());
        assert!(heapr_trace::Trace::open(&path).is_ok());
    }
}
