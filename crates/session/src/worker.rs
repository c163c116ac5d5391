//! The loop of a session that is controlled from outside: rounds of the recorder, and between them the orders.

use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use crate::control::{Answer, Failure, Order, Request, StopReport, Update, UpdateReport};
use crate::{Error, Session, SessionSummary};

/// Processes are looked at this often: one that has ended is shown as such.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A session, the program that it started, and where its orders come from.
#[derive(Debug)]
pub(crate) struct Worker {
    session: Session,
    orders: Receiver<Order>,
    child: Option<Child>,
    wait_status: Option<i32>,
    attached: Vec<u32>,
    next_look: Instant,
}

/// How a worker ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None`: it was cancelled, and the file was removed.
    pub(crate) summary: Option<SessionSummary>,
    pub(crate) report: StopReport,
    /// The order that ended it, to be answered when the name is free again.
    pub(crate) order: Option<Order>,
}

impl Worker {
    pub(crate) fn new(session: Session, orders: Receiver<Order>, child: Option<Child>) -> Self {
        Self { session, orders, child, wait_status: None, attached: Vec::new(), next_look: Instant::now() }
    }

    /// Attaches to the processes that a session begins with.
    ///
    /// # Errors
    /// The first that fails; those before it are attached.
    pub(crate) fn attach_all(&mut self, pids: &[u32]) -> Result<(), Error> {
        for &pid in pids {
            self.attach(pid)?;
        }
        Ok(())
    }

    /// Records until an order or `stop` ends it, or nobody is left who could give orders.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Ended {
        loop {
            self.session.step();
            self.look_at_processes();
            loop {
                match self.orders.try_recv() {
                    Ok(order) if order.is_last() => return self.end(Some(order)),
                    Ok(order) => {
                        let answer = self.obey(order.request);
                        // Who asked may have gone.
                        let _ = order.answer.send(answer);
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
            && let Ok(Some(status)) = child.try_wait()
        {
            let pid = child.id();
            self.wait_status = Some(status.into_raw());
            self.child = None;
            // What registered and ended between two rounds is found first.
            self.session.step_now();
            self.session.process_exited(pid, status.into_raw());
        }
        if self.next_look.elapsed() >= LOOK_EVERY {
            self.session.look_for_ends();
            self.next_look = Instant::now();
        }
    }

    fn obey(&mut self, request: Request) -> Answer {
        match request {
            Request::Status => {
                self.session.step_now();
                Answer::Status(Box::new(self.session.status()))
            }
            Request::Mark(text) => {
                // What happened before the mark stands before it.
                self.session.step_now();
                self.session.mark(&text);
                Answer::Done
            }
            Request::Update(update) => Answer::Updated(self.update(&update)),
            Request::Stop | Request::Cancel => Answer::Done,
        }
    }

    fn update(&mut self, update: &Update) -> UpdateReport {
        let mut report = UpdateReport::default();
        if let Some(stacks) = update.stacks {
            self.session.set_stacks(stacks);
        }
        for &pid in &update.remove_pids {
            match self.detach(pid) {
                Ok(()) => report.detached.push(pid),
                Err(error) => report.failed.push((pid, Failure::from(&error))),
            }
        }
        for &pid in &update.add_pids {
            match self.attach(pid) {
                Ok(remark) => report.attached.push((pid, remark)),
                Err(error) => report.failed.push((pid, Failure::from(&error))),
            }
        }
        if update.flush {
            self.session.flush();
        }
        report
    }

    fn attach(&mut self, pid: u32) -> Result<String, Error> {
        if !std::path::Path::new(&format!("/proc/{pid}")).exists() {
            return Err(Error::NoSuchProcess { pid });
        }
        self.attached.push(pid);
        Err(Error::NotTraceable { pid, reason: "attaching is not built in".to_owned() })
    }

    fn detach(&mut self, pid: u32) -> Result<(), Error> {
        self.attached.retain(|&attached| attached != pid);
        Err(Error::NotTraceable { pid, reason: "it was not attached to".to_owned() })
    }

    fn end(mut self, order: Option<Order>) -> Ended {
        for pid in std::mem::take(&mut self.attached) {
            let _ = self.detach(pid);
        }
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
            events_lost: summary.statistics.loss.events_lost,
            wait_status: self.wait_status,
            write_error: summary.write_error.as_ref().map(ToString::to_string),
        };
        Ended { summary: (!is_cancel).then_some(summary), report, order }
    }
}
