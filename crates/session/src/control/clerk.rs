//! Carries out orders that any session supports, for a session that the caller steps. Remembers
//! which clients wait for a snapshot.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use super::protocol::{Answer, Order, Request, SnapshotTaken, Update};
use crate::failure::{Failure, FailureKind};
use crate::{
    GraphContents, SNAPSHOT_INTERVAL_MIN, Session, SessionStatus, SnapshotReport, SnapshotRequest,
    SnapshotRule, SnapshotScope, SnapshotTicket, SnapshotWhen,
};

/// Largest size in bytes of a marker's text.
const MARKER_BYTES_MAX: usize = 16 << 10;

/// Incoming orders of a session, and those not answered yet.
#[derive(Debug)]
pub(crate) struct Clerk {
    orders: Receiver<Order>,
    /// Clients that wait for a snapshot, by ticket.
    snapshots: HashMap<SnapshotTicket, Sender<Answer>>,
}

impl Clerk {
    pub(crate) fn new(orders: Receiver<Order>) -> Self {
        Self { orders, snapshots: HashMap::new() }
    }

    /// Takes the next order, if there is one.
    pub(crate) fn next_order(&self) -> Result<Order, TryRecvError> {
        self.orders.try_recv()
    }

    /// Carries out an order. Returns orders that depend on the caller: updates, and those that end
    /// the session. `complete` adds to a status what only the caller knows.
    pub(crate) fn take(
        &mut self,
        session: &mut Session,
        order: Order,
        complete: impl FnOnce(SessionStatus) -> SessionStatus,
    ) -> Option<Order> {
        let Order { request, answer } = order;
        let reply = match request {
            Request::Status => {
                session.step_now();
                Answer::Status(Box::new(complete(session.status())))
            }
            Request::Mark(text) if text.len() > MARKER_BYTES_MAX => {
                invalid(format!("a marker of {} bytes: at most {MARKER_BYTES_MAX} are possible", text.len()))
            }
            Request::Mark(text) => {
                // Events from before the mark are written before it.
                session.step_now();
                session.mark(&text);
                Answer::Done
            }
            Request::Snapshot { name, pids, graph } => {
                let scope = SnapshotScope::of_pids(&pids);
                let request = SnapshotRequest { name, scope, graph, ..SnapshotRequest::default() };
                match session.request_snapshot(request) {
                    // The snapshot is taken between the next rounds, and answered then.
                    Ok(ticket) => {
                        self.snapshots.insert(ticket, answer);
                        return None;
                    }
                    Err(error) => Answer::Failed(Failure::from(&error)),
                }
            }
            Request::SnapshotEvery { interval_ms, pids, graph } => {
                snapshot_every(session, interval_ms, pids, graph)
            }
            request @ (Request::Update(_) | Request::Stop | Request::Cancel) => {
                return Some(Order { request, answer });
            }
        };
        // The client may have gone.
        let _ = answer.send(reply);
        None
    }

    /// Answers clients whose snapshots are finished.
    pub(crate) fn report_snapshots(&mut self, session: &mut Session) {
        self.snapshots.retain(|&ticket, waiting| {
            let Some(report) = session.take_report_of(ticket) else { return true };
            // A client that gets the answer must be able to read the snapshot.
            session.flush_file();
            let _ = waiting.send(taken(session, report));
            false
        });
    }
}

/// Changes which events of the recorded processes carry stacks, and the sampling. Returns the
/// reason if the sampling cannot be changed.
pub(super) fn change(session: &mut Session, update: &Update) -> Option<Failure> {
    if let Some(stacks) = update.stacks {
        session.set_stacks(stacks);
    }
    let outcome = update.sample.map(|rate| match update.sample_for_ms {
        Some(time_ms) => session.set_sample_rate_for(rate, Duration::from_millis(time_ms)),
        None => session.set_sample_rate(rate),
    });
    outcome.and_then(Result::err).map(|error| Failure::from(&error))
}

/// Answer to an order that is invalid, or not possible in this session.
pub(super) fn invalid(message: String) -> Answer {
    Answer::Failed(Failure::new(FailureKind::Invalid, message))
}

fn taken(session: &Session, report: SnapshotReport) -> Answer {
    let (snapshot, blocks) = (report.snapshot, report.blocks);
    match (report.write_error, report.graph_failure) {
        (Some(error), _) => Answer::Failed(Failure::new(FailureKind::Output, error)),
        (None, Some(failure)) => Answer::Failed(failure),
        (None, None) => Answer::Snapshot(SnapshotTaken {
            number: snapshot.number,
            output: session.properties().output.clone().into_os_string(),
            time_ns: snapshot.time_ns,
            process_count: snapshot.processes.len() as u64,
            block_count: snapshot.block_count,
            block_bytes: snapshot.block_bytes,
            block_count_plus_minus: blocks.count_plus_minus(),
            block_bytes_plus_minus: blocks.bytes_plus_minus(),
            export_ns: snapshot.export_ns,
            notes: snapshot.notes,
            pause_ns: report.pause_ns,
        }),
    }
}

/// Sets the interval of snapshots of some processes, in place of an earlier one; `None` ends them.
fn snapshot_every(
    session: &mut Session,
    interval_ms: Option<u64>,
    pids: Vec<u32>,
    graph: Option<GraphContents>,
) -> Answer {
    let interval = interval_ms.map(Duration::from_millis);
    if interval.is_some_and(|interval| interval < SNAPSHOT_INTERVAL_MIN) {
        let least_ms = SNAPSHOT_INTERVAL_MIN.as_millis();
        return invalid(format!("snapshots at an interval below {least_ms} ms are not possible"));
    }
    let is_turned_off = |rule: &SnapshotRule| {
        matches!(rule.when, SnapshotWhen::Every { .. }) && (rule.pids == pids || pids.is_empty())
    };
    session.retain_snapshot_rules(|rule| !is_turned_off(rule));
    if let Some(interval) = interval {
        session.add_snapshot_rule(SnapshotRule { when: SnapshotWhen::Every { interval }, pids, graph });
    }
    Answer::Done
}
