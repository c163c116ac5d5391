//! Session with a name and a socket: begun in the recording process, then run until it is stopped.

use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use serde::{Deserialize, Serialize};

use crate::bell::Letterbox;
use crate::control::claim::NameClaim;
use crate::control::worker::{Ended, Worker};
use crate::control::{Answer, Listener, Order};
use crate::flags::flagged_programs::FlaggedTargets;
use crate::{Error, Session, SessionName, SessionProperties, SessionSummary, SnapshotRule};

/// Properties and targets with which a session begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartRequest {
    /// Properties of the session, including its name.
    pub properties: SessionProperties,
    /// Program to be started with the session.
    pub program: Option<ProgramCommand>,
    /// Processes to attach to.
    pub pids: Vec<u32>,
    /// Whether children of these processes are attached to as well.
    #[serde(default)]
    pub with_children: bool,
    /// Rules for snapshots.
    pub snapshot_rules: Vec<SnapshotRule>,
    /// Flagged programs that are traced when they start, if any.
    pub flagged: Option<FlaggedTargets>,
}

impl StartRequest {
    /// Returns a request for a session without targets.
    #[must_use]
    pub fn new(properties: SessionProperties) -> Self {
        Self {
            properties,
            program: None,
            pids: Vec::new(),
            with_children: false,
            snapshot_rules: Vec::new(),
            flagged: None,
        }
    }
}

/// Program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCommand {
    /// Path of the program's file.
    pub path: OsString,
    /// All arguments, the name first.
    pub arguments: Vec<OsString>,
}

/// Session that has begun: its targets are traced, its name is taken. Its socket answers once it
/// runs.
#[derive(Debug)]
pub struct BackgroundSession {
    worker: Worker,
    listener: Listener,
    claim: NameClaim,
    orders: Letterbox<Order>,
    remarks: Vec<String>,
}

impl BackgroundSession {
    /// Takes the name, creates file, buffers and socket, starts the program, attaches to the
    /// processes. If any step fails, all is undone.
    ///
    /// # Errors
    /// The step that failed; see [`Error::kind`].
    pub fn begin(request: StartRequest) -> Result<Self, Error> {
        let StartRequest { properties, program, pids, with_children, snapshot_rules, flagged } = request;
        let name = SessionName::new(&properties.name)?;
        properties.check()?;
        let claim = NameClaim::new(&name)?;
        let output = properties.output.clone();
        let mut session = Session::start(properties)?;
        snapshot_rules.into_iter().for_each(|rule| session.add_snapshot_rule(rule));
        Self::begin_with(session, claim, program, (&pids, with_children), flagged).inspect_err(|_| {
            let _ = std::fs::remove_file(&output);
        })
    }

    fn begin_with(
        session: Session,
        claim: NameClaim,
        program: Option<ProgramCommand>,
        (pids, with_children): (&[u32], bool),
        flagged: Option<FlaggedTargets>,
    ) -> Result<Self, Error> {
        let (orders, receiver) = mpsc::channel();
        let orders = Letterbox::new(orders, session.bell());
        let socket = claim.listen()?;
        let listener =
            Listener::start(socket, orders.clone()).map_err(|source| Error::Recorder { source })?;
        let child = program.map(|program| start_program(&session, &program)).transpose()?;
        let mut worker = Worker::new(session, receiver, child);
        worker.await_program();
        let mut remarks = worker.attach_all(pids, with_children)?;
        if let Some(flagged) = flagged {
            remarks.extend(worker.watch_flags(flagged));
        }
        Ok(Self { worker, listener, claim, orders, remarks })
    }

    /// Remarks on the processes with which the session began.
    #[must_use]
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// See [`Session::use_spare_time`].
    pub fn use_spare_time(&mut self) {
        self.worker.use_spare_time();
    }

    /// Records until an order stops or cancels the session, or `stop` is set. Returns `None` if
    /// cancelled. `at_end` is called when the file is complete, before the stop is answered.
    pub fn run(self, stop: &AtomicBool, at_end: impl FnOnce(&SessionSummary)) -> Option<SessionSummary> {
        let Self { worker, listener, claim, orders, remarks: _ } = self;
        let Ended { summary, report, order } = worker.run(stop, &|| claim.has_name());
        if let Some(summary) = &summary {
            at_end(summary);
        }
        // After the answer, the client may start the next session of this name.
        drop(claim);
        if let Some(order) = order {
            let _ = order.answer.send(Answer::Stopped(report));
        }
        listener.finish();
        drop(orders);
        summary
    }

    /// Returns where orders can be sent from the same process.
    pub(crate) fn orders(&self) -> Letterbox<Order> {
        self.orders.clone()
    }
}

fn start_program(session: &Session, program: &ProgramCommand) -> Result<std::process::Child, Error> {
    use std::os::unix::process::CommandExt as _;
    let failed =
        |source: io::Error| Error::Program { program: program.path.to_string_lossy().into_owned(), source };
    let mut command = Command::new(&program.path);
    if let Some((name, arguments)) = program.arguments.split_first() {
        command.arg0(name).args(arguments);
    }
    heapr_inject::start_as_given(&mut command, &session.environment_for_target());
    command.stdin(Stdio::null()).spawn().map_err(failed)
}
