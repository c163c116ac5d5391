//! Errors of a capture.

use std::io;
use std::net::SocketAddr;

use super::standstill::Standstill;

/// Result type of a capture step.
pub type Result<T> = std::result::Result<T, Error>;

/// Reason why a capture failed. Each message says how to solve the problem, if possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process does not exist, or has ended.
    #[error("there is no process {pid}")]
    NoProcess {
        /// Process id.
        pid: u32,
    },
    /// The process ended during the capture.
    #[error("process {pid} has ended meanwhile; if memory was short, the kernel's log (dmesg) names it")]
    ProcessEnded {
        /// Process id.
        pid: u32,
    },
    /// The process is about to end, and waits for the session to close.
    #[error("process {pid} is ending")]
    ProcessEnding {
        /// Process id.
        pid: u32,
    },
    /// Access to `/proc/PID/fd` and similar files is denied, because of the user.
    #[error(
        "process {pid} belongs to user {uid} and cannot be looked into: run heapr as that user or as root"
    )]
    NoPermission {
        /// Process id.
        pid: u32,
        /// Effective user of the process.
        uid: u32,
    },
    /// Access to `/proc/PID/fd` and similar files is denied for another reason than the user.
    #[error(
        "process {pid} cannot be looked into, {reason}; run heapr where that process was started from, or have the process \
         write its snapshot itself (v8.writeHeapSnapshot(), --heapsnapshot-signal)"
    )]
    Forbidden {
        /// Process id.
        pid: u32,
        /// Reason, as far as `/proc` shows it.
        reason: String,
    },
    /// A file of `/proc` could not be read for another reason.
    #[error("cannot read {path}: {source}")]
    Proc {
        /// Path of the file.
        path: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The program contains no V8 and has no debugging port open.
    #[error(
        "process {pid} ({program}) is no Node process and has no debugging port open: heapr takes V8 snapshots from \
         Node, Deno, Electron, Chrome and workerd (all but Node started with their inspector open); --heap names the heap of another program: python, ruby, java, dotnet or native"
    )]
    NotV8 {
        /// Process id.
        pid: u32,
        /// File name of the executable.
        program: String,
    },
    /// The runtime opens its port only at its start.
    #[error("process {pid} is {runtime}, which opens no port later on: start it with {option}")]
    NeedsPort {
        /// Process id.
        pid: u32,
        /// Name of the runtime: `Deno`, `Chrome` …
        runtime: &'static str,
        /// Option that opens the port.
        option: &'static str,
    },
    /// The program is Bun, whose inspector has another protocol.
    #[error(
        "process {pid} is Bun, whose inspector speaks WebKit's protocol: call Bun.generateHeapSnapshot(\"v8\") or \
         require(\"v8\").writeHeapSnapshot() in the program"
    )]
    Bun {
        /// Process id.
        pid: u32,
    },
    /// The process has no handler for the signal, which would end it.
    #[error("process {pid} does not catch {signal}, which would end it: {advice}")]
    SignalNotCaught {
        /// Process id.
        pid: u32,
        /// Name of the signal.
        signal: &'static str,
        /// Alternative to the signal.
        advice: &'static str,
    },
    /// The caller forbade the signal, and no port is open.
    #[error("process {pid} has no inspector port open, and SIGUSR1, which would open one, was forbidden")]
    SignalForbidden {
        /// Process id.
        pid: u32,
    },
    /// SIGUSR1 has another meaning in this process.
    #[error(
        "process {pid} was started with {option}=SIGUSR1, so that the signal opens no inspector port: use \
         `heapr snapshot take --signal SIGUSR1 {pid}` if it writes a snapshot, or start it with --inspect"
    )]
    SignalMeansElse {
        /// Process id.
        pid: u32,
        /// Option of Node that gives it this meaning.
        option: &'static str,
    },
    /// The main thread does not run and cannot answer.
    #[error("process {pid} {standstill}; nothing was sent to it")]
    StandsStill {
        /// Process id.
        pid: u32,
        /// Reason why it does not run.
        standstill: Standstill,
    },
    /// The kernel refused to send the signal.
    #[error("cannot send {signal} to process {pid}: {source}")]
    Signal {
        /// Process id.
        pid: u32,
        /// Name of the signal.
        signal: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// Another process listens on the inspector's port.
    #[error(
        "port {port}, which the inspector of process {pid} would use, is taken by {owner}: close that one first, or \
         start the program with --inspect-port=0"
    )]
    PortTaken {
        /// Process id.
        pid: u32,
        /// Number of the port.
        port: u16,
        /// Owner of the port: `process 17 (node)` or `another process`.
        owner: String,
    },
    /// SIGUSR1 was sent, but no port was opened.
    #[error(
        "process {pid} opened no inspector port within {waited_s} s of SIGUSR1: either the program has a SIGUSR1 handler \
         of its own (which has run now), or its main thread is blocked (and will open the port when it is free); start \
         it with --inspect, or under `heapr node`"
    )]
    PortDidNotOpen {
        /// Process id.
        pid: u32,
        /// Time waited, in seconds.
        waited_s: u64,
    },
    /// The process is in another network namespace, which heapr may not enter.
    #[error(
        "process {pid} runs in a container with its own network (pid {inner_pid} inside): run heapr as root, or inside \
         the container (nsenter --target {pid} --pid --net --mount)"
    )]
    OtherNetwork {
        /// Process id in heapr's namespace.
        pid: u32,
        /// Process id in the process's own namespace.
        inner_pid: u32,
    },
    /// The server on the port is not an inspector.
    #[error("{address} is no inspector: {what}")]
    NotAnInspector {
        /// Address of the server.
        address: SocketAddr,
        /// Description of its answer.
        what: String,
    },
    /// The port has more than one target.
    #[error("process {pid} has {} targets, choose one by its id or a part of its title or URL: {}", .targets.len(), .targets.join(", "))]
    ChooseTarget {
        /// Process id.
        pid: u32,
        /// Targets as `ID (URL)`.
        targets: Vec<String>,
    },
    /// The port has no target, or not the requested one.
    #[error("process {pid} has no target {wanted:?}")]
    NoTarget {
        /// Process id.
        pid: u32,
        /// Requested target.
        wanted: String,
    },
    /// The connection broke.
    #[error("the connection to the inspector at {address} broke: {source}")]
    Connection {
        /// Address of the inspector.
        address: SocketAddr,
        /// Error of the connection.
        source: Box<tungstenite::Error>,
    },
    /// The inspector closed the connection.
    #[error("the inspector at {address} closed the connection")]
    Closed {
        /// Address of the inspector.
        address: SocketAddr,
    },
    /// A message does not follow the protocol.
    #[error("the inspector sent something that is no message of its protocol ({what}): {start:?}")]
    BadMessage {
        /// Description of the defect.
        what: String,
        /// First characters of the message.
        start: String,
    },
    /// The inspector refused a request.
    #[error("the inspector refused {method}: {message}")]
    Refused {
        /// Method of the request.
        method: String,
        /// Message of the inspector.
        message: String,
    },
    /// An answer did not arrive in time.
    #[error("no answer to {method} within {waited_s} s: the thread is busy or blocked")]
    NoAnswer {
        /// Method of the request.
        method: String,
        /// Time waited, in seconds.
        waited_s: u64,
    },
    /// The received snapshot is incomplete.
    #[error("the snapshot is not whole: it ends with {end:?}")]
    NotWhole {
        /// Last characters of the snapshot.
        end: String,
    },
    /// The snapshot file could not be written.
    #[error("cannot write the snapshot: {source}")]
    Write {
        /// Error of the system.
        source: io::Error,
    },
    /// The process was not started with this signal for snapshots.
    #[error(
        "process {pid} was not started with --heapsnapshot-signal={signal}{}, and the signal may mean something else to \
         it: take a snapshot without --signal, or start it under `heapr node` (--at-risk sends the signal nevertheless)",
        if .given.is_empty() { String::new() } else { format!(" but with {given}") }
    )]
    NoSnapshotSignal {
        /// Process id.
        pid: u32,
        /// Name of the signal.
        signal: &'static str,
        /// Signal that the process was started with; empty without one.
        given: String,
    },
    /// The process cannot write its snapshot. Node would throw an exception, which would end the
    /// program.
    #[error(
        "process {pid} would end with an exception on {signal}: its snapshot goes to {directory}, which {reason}; nothing \
         was sent to it; take one without --signal, or start it with another --diagnostic-dir (--at-risk sends the signal \
         nevertheless)"
    )]
    CannotWrite {
        /// Process id.
        pid: u32,
        /// Name of the signal.
        signal: &'static str,
        /// Directory of the snapshot, as the process sees it.
        directory: String,
        /// Reason why the directory cannot be written.
        reason: &'static str,
    },
    /// The program already has a handler for the signal.
    #[error("process {pid} has a handler for {signal} already: choose the other of SIGUSR1 and SIGUSR2")]
    SignalTaken {
        /// Process id.
        pid: u32,
        /// Name of the signal.
        signal: &'static str,
    },
    /// The signal was sent, but no file appeared.
    #[error(
        "process {pid} wrote no snapshot within {waited_s} s of {signal} into {directories}: is its main thread blocked?"
    )]
    NoFile {
        /// Process id.
        pid: u32,
        /// Name of the signal.
        signal: &'static str,
        /// Time waited, in seconds.
        waited_s: u64,
        /// Directories that were searched.
        directories: String,
    },
    /// The user cancelled the capture.
    #[error("stopped")]
    Cancelled,
}
