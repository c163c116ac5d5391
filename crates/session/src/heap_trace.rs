//! API of a heap trace session, modelled on Windows' StartHeapTrace.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use crate::bell::Letterbox;
use crate::control::{Answer, Order, Request, SnapshotTaken, Update, UpdateReport};
use crate::failure::{Failure, FailureKind};
use crate::{
    BackgroundSession, Error, GraphRequest, SessionProperties, SessionStatus, SessionSummary, StackEvents,
    StartRequest,
};

/// Heap trace session whose recorder is a thread of this process.
///
/// It has a name like any other session: `heapr status NAME`, `heapr mark` and other commands work
/// on it from outside. Dropping it stops the session and completes its file.
#[derive(Debug)]
pub struct HeapTrace {
    orders: Letterbox<Order>,
    thread: Option<JoinHandle<Option<SessionSummary>>>,
}

impl HeapTrace {
    /// Registers and starts a session for a set of processes. `stack_events`: events that carry
    /// call stacks.
    ///
    /// When it returns, the processes are traced. `properties` sets the file, the number of
    /// buffers, and what is recorded. Its `name` and `stacks` are replaced by the arguments.
    ///
    /// # Errors
    /// [`Error::kind`] distinguishes: session name taken, invalid properties, not enough memory, no
    /// such process, not allowed, not traceable. Everything is then undone.
    ///
    /// ```
    /// use heapr_session::{FailureKind, HeapTrace, SessionProperties, StackEvents};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let folder = tempfile::tempdir()?;
    /// let properties = SessionProperties::new(folder.path().join("trace.heapr"));
    /// let mut trace = HeapTrace::start(properties.clone(), "doc-start", &[], StackEvents::default())?;
    ///
    /// // The name is taken until the session stops.
    /// let second = HeapTrace::start(properties, "doc-start", &[], StackEvents::default());
    /// assert_eq!(second.unwrap_err().kind(), FailureKind::AlreadyExists);
    ///
    /// trace.mark("half way")?;
    /// assert_eq!(trace.query()?.marker_count, 1);
    /// let summary = trace.stop()?;
    /// assert_eq!(summary.statistics.loss.events_lost, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn start(
        properties: SessionProperties,
        name: &str,
        pids: &[u32],
        stack_events: StackEvents,
    ) -> Result<Self, Error> {
        let properties = SessionProperties { name: name.to_owned(), stacks: stack_events, ..properties };
        Self::start_request(StartRequest { pids: pids.to_vec(), ..StartRequest::new(properties) })
    }

    /// Variant of [`HeapTrace::start`] with a program that is started with the session and traced
    /// from its first instruction.
    ///
    /// # Errors
    /// See [`HeapTrace::start`]; or the program cannot be run.
    ///
    /// ```
    /// use heapr_session::{HeapTrace, ProgramCommand, SessionProperties, StartRequest};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let folder = tempfile::tempdir()?;
    /// let mut properties = SessionProperties::new(folder.path().join("trace.heapr"));
    /// properties.name = "doc-program".to_owned();
    /// let program = ProgramCommand { path: "/bin/true".into(), arguments: vec!["true".into()] };
    /// let request = StartRequest { program: Some(program), ..StartRequest::new(properties) };
    /// let trace = HeapTrace::start_request(request)?;
    /// while trace.query()?.live_process_count > 0 || trace.query()?.process_count == 0 {
    ///     std::thread::sleep(std::time::Duration::from_millis(5));
    /// }
    /// let summary = trace.stop()?;
    /// assert_eq!(summary.process_count, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn start_request(request: StartRequest) -> Result<Self, Error> {
        // Only the attaching thread can control a target, so the session begins in its own thread,
        // which reports the outcome.
        let (told, beginning) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("heapr-recorder".to_owned())
            .spawn(move || {
                let session = match BackgroundSession::begin(request) {
                    Ok(session) => session,
                    Err(error) => {
                        let _ = told.send(Err(error));
                        return None;
                    }
                };
                let _ = told.send(Ok(session.orders()));
                session.run(&Arc::new(AtomicBool::new(false)), |_| {})
            })
            .map_err(|source| Error::Recorder { source })?;
        match beginning.recv() {
            Ok(Ok(orders)) => Ok(Self { orders, thread: Some(thread) }),
            Ok(Err(error)) => Err(error),
            Err(mpsc::RecvError) => Err(ended().into()),
        }
    }

    /// Adds and removes processes, changes which events carry stacks, and makes the file readable.
    ///
    /// # Errors
    /// The session has ended. Failures for single processes are in the report.
    ///
    /// ```
    /// use heapr_session::{FailureKind, HeapTrace, SessionProperties, StackEvents, Update};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let properties = SessionProperties::new(folder.path().join("trace.heapr"));
    /// let mut trace = HeapTrace::start(properties, "doc-update", &[], StackEvents::default())?;
    /// let update = Update {
    ///     add_pids: vec![u32::MAX],
    ///     stacks: Some(StackEvents { free: true, ..StackEvents::default() }),
    ///     ..Update::default()
    /// };
    /// let report = trace.update(update)?;
    /// assert_eq!(report.failed[0].1.kind, FailureKind::NoSuchProcess);
    /// assert_eq!(trace.query()?.stacks, "create,alloc,realloc,free");
    /// # trace.cancel()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn update(&mut self, update: Update) -> Result<UpdateReport, Error> {
        match self.ask(Request::Update(update))? {
            Answer::Updated(report) => Ok(report),
            _ => Err(ended().into()),
        }
    }

    /// Returns the status of the session: buffers, events, losses, processes.
    ///
    /// # Errors
    /// The session has ended.
    pub fn query(&self) -> Result<SessionStatus, Error> {
        match self.ask(Request::Status)? {
            Answer::Status(status) => Ok(*status),
            _ => Err(ended().into()),
        }
    }

    /// Writes a marker with a text into the trace.
    ///
    /// # Errors
    /// The session has ended.
    pub fn mark(&mut self, text: &str) -> Result<(), Error> {
        self.ask(Request::Mark(text.to_owned())).map(|_| ())
    }

    /// Takes a snapshot of the live heaps of some processes, or of all (`pids` empty), without
    /// stopping them.
    ///
    /// # Errors
    /// The session has ended, or does not know a process.
    ///
    /// ```
    /// use heapr_session::{HeapTrace, LoggingMode, ProgramCommand, SessionProperties, StartRequest};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let mut properties = SessionProperties::new(folder.path().join("snapshots.heapr"));
    /// properties.name = "doc-snapshot".to_owned();
    /// // No stream of events: only the live heap, and snapshots of it.
    /// properties.mode = LoggingMode::Snapshot;
    /// let program = ProgramCommand { path: "/bin/sleep".into(), arguments: vec!["sleep".into(), "60".into()] };
    /// let mut trace = HeapTrace::start_request(StartRequest {
    ///     program: Some(program),
    ///     ..StartRequest::new(properties)
    /// })?;
    /// while trace.query()?.event_count == 0 {
    ///     std::thread::sleep(std::time::Duration::from_millis(5));
    /// }
    /// let snapshot = trace.snapshot("first", &[])?;
    /// assert_eq!(snapshot.process_count, 1);
    /// let sleeping = trace.query()?.processes[0].pid;
    /// std::process::Command::new("kill").arg(sleeping.to_string()).status()?;
    /// trace.stop()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn snapshot(&mut self, name: &str, pids: &[u32]) -> Result<SnapshotTaken, Error> {
        self.take_snapshot(name, pids, None)
    }

    /// Takes a snapshot of the live heap of one process with its graph: references between blocks,
    /// and from outside to blocks. The process stands still meanwhile.
    ///
    /// # Errors
    /// See [`HeapTrace::snapshot`]; or the process cannot be stopped, or would stand still for too
    /// long.
    pub fn graph_snapshot(
        &mut self,
        name: &str,
        pid: u32,
        graph: GraphRequest,
    ) -> Result<SnapshotTaken, Error> {
        self.take_snapshot(name, &[pid], Some(graph))
    }

    fn take_snapshot(
        &mut self,
        name: &str,
        pids: &[u32],
        graph: Option<GraphRequest>,
    ) -> Result<SnapshotTaken, Error> {
        match self.ask(Request::Snapshot { name: name.to_owned(), pids: pids.to_vec(), graph })? {
            Answer::Snapshot(taken) => Ok(taken),
            _ => Err(ended().into()),
        }
    }

    /// Ends the session: reads the buffers to their end and completes the file. The processes run
    /// on.
    ///
    /// # Errors
    /// The session has ended before, by an order from outside.
    pub fn stop(mut self) -> Result<SessionSummary, Error> {
        self.ask(Request::Stop)?;
        self.join().ok_or_else(|| ended().into())
    }

    /// Ends the session and removes its file.
    ///
    /// # Errors
    /// The session has ended before, by an order from outside.
    pub fn cancel(mut self) -> Result<(), Error> {
        self.ask(Request::Cancel)?;
        self.join();
        Ok(())
    }

    fn ask(&self, request: Request) -> Result<Answer, Error> {
        let (answer, receiver) = mpsc::channel();
        self.orders.send(Order { request, answer }).map_err(|_| ended())?;
        match receiver.recv().map_err(|mpsc::RecvError| ended())? {
            Answer::Failed(failure) => Err(failure.into()),
            answer => Ok(answer),
        }
    }

    fn join(&mut self) -> Option<SessionSummary> {
        self.thread.take().and_then(|thread| thread.join().ok().flatten())
    }
}

impl Drop for HeapTrace {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _: Result<Answer, Error> = self.ask(Request::Stop);
            self.join();
        }
    }
}

fn ended() -> Failure {
    Failure::new(FailureKind::NoSuchSession, "the session has ended")
}
