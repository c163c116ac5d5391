//! What can stand in the way of a capture.

use std::io;
use std::net::SocketAddr;

use super::standstill::Standstill;

/// The result of a capture step.
pub type Result<T> = std::result::Result<T, Error>;

/// Why nothing could be captured. Each message says what to do about it, where something can be
/// done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such process, or it has ended.
    #[error("there is no process {pid}")]
    NoProcess {
        /// The process id.
        pid: u32,
    },
    /// The process has ended while it was worked with.
    #[error("process {pid} has ended meanwhile; if memory was short, the kernel's log (dmesg) names it")]
    ProcessEnded {
        /// The process id.
        pid: u32,
    },
    /// The process is about to end, and waits for us to leave.
    #[error("process {pid} is ending")]
    ProcessEnding {
        /// The process id.
        pid: u32,
    },
    /// `/proc/PID/fd` and the like are closed to us.
    #[error(
        "process {pid} belongs to user {uid} and cannot be looked into: run heapr as that user or as root"
    )]
    NoPermission {
        /// The process id.
        pid: u32,
        /// Its effective user.
        uid: u32,
    },
    /// The same, though the user is not the reason.
    #[error(
        "process {pid} cannot be looked into, {reason}; run heapr where that process was started from, or have the process \
         write its snapshot itself (v8.writeHeapSnapshot(), --heapsnapshot-signal)"
    )]
    Forbidden {
        /// The process id.
        pid: u32,
        /// Why, as far as `/proc` tells.
        reason: String,
    },
    /// `/proc` could not be read for another reason.
    #[error("cannot read {path}: {source}")]
    Proc {
        /// The file of `/proc`.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// Not a program with V8 in it, and no debugging port either.
    #[error(
        "process {pid} ({program}) is no Node process and has no debugging port open: heapr takes V8 snapshots from \
         Node, Deno, Electron, Chrome and workerd (all but Node started with their inspector open); --native is for other heaps"
    )]
    NotV8 {
        /// The process id.
        pid: u32,
        /// The file name of its executable.
        program: String,
    },
    /// A runtime that opens its port only at its start.
    #[error("process {pid} is {runtime}, which opens no port later on: start it with {option}")]
    NeedsPort {
        /// The process id.
        pid: u32,
        /// `Deno`, `Chrome` …
        runtime: &'static str,
        /// What opens the port.
        option: &'static str,
    },
    /// Bun speaks another protocol.
    #[error(
        "process {pid} is Bun, whose inspector speaks WebKit's protocol: call Bun.generateHeapSnapshot(\"v8\") or \
         require(\"v8\").writeHeapSnapshot() in the program"
    )]
    Bun {
        /// The process id.
        pid: u32,
    },
    /// The signal would end the process.
    #[error("process {pid} does not catch {signal}, which would end it: {advice}")]
    SignalNotCaught {
        /// The process id.
        pid: u32,
        /// The signal's name.
        signal: &'static str,
        /// What to do instead.
        advice: &'static str,
    },
    /// The caller forbade the signal, and no port is open.
    #[error("process {pid} has no inspector port open, and SIGUSR1, which would open one, was forbidden")]
    SignalForbidden {
        /// The process id.
        pid: u32,
    },
    /// SIGUSR1 does something else in this process.
    #[error(
        "process {pid} was started with {option}=SIGUSR1, so that the signal opens no inspector port: use \
         `heapr snapshot take --signal SIGUSR1 {pid}` if it writes a snapshot, or start it with --inspect"
    )]
    SignalMeansElse {
        /// The process id.
        pid: u32,
        /// The option of Node.
        option: &'static str,
    },
    /// Its main thread does not run, and would answer nothing.
    #[error("process {pid} {standstill}; nothing was sent to it")]
    StandsStill {
        /// The process id.
        pid: u32,
        /// Why it does not run.
        standstill: Standstill,
    },
    /// The kernel refuses the signal.
    #[error("cannot send {signal} to process {pid}: {source}")]
    Signal {
        /// The process id.
        pid: u32,
        /// The signal's name.
        signal: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Somebody else listens where the inspector would.
    #[error(
        "port {port}, which the inspector of process {pid} would use, is taken by {owner}: close that one first, or \
         start the program with --inspect-port=0"
    )]
    PortTaken {
        /// The process id.
        pid: u32,
        /// The port.
        port: u16,
        /// `process 17 (node)` or `another process`.
        owner: String,
    },
    /// SIGUSR1 was sent and no port appeared.
    #[error(
        "process {pid} opened no inspector port within {waited_s} s of SIGUSR1: either the program has a SIGUSR1 handler \
         of its own (which has run now), or its main thread is blocked (and will open the port when it is free); start \
         it with --inspect, or under `heapr node`"
    )]
    PortDidNotOpen {
        /// The process id.
        pid: u32,
        /// How long it was waited for.
        waited_s: u64,
    },
    /// The process lives in another network namespace, which we cannot enter.
    #[error(
        "process {pid} runs in a container with its own network (pid {inner_pid} inside): run heapr as root, or inside \
         the container (nsenter --target {pid} --pid --net --mount)"
    )]
    OtherNetwork {
        /// The process id as we see it.
        pid: u32,
        /// The process id inside its own namespace.
        inner_pid: u32,
    },
    /// The inspector did not answer as one.
    #[error("{address} is no inspector: {what}")]
    NotAnInspector {
        /// The address.
        address: SocketAddr,
        /// What came instead.
        what: String,
    },
    /// More than one thing can be inspected there.
    #[error("process {pid} has {} targets, choose one by its id or a part of its title or URL: {}", .targets.len(), .targets.join(", "))]
    ChooseTarget {
        /// The process id.
        pid: u32,
        /// `ID (URL)` of each.
        targets: Vec<String>,
    },
    /// No target, or none that was asked for.
    #[error("process {pid} has no target {wanted:?}")]
    NoTarget {
        /// The process id.
        pid: u32,
        /// What was asked for.
        wanted: String,
    },
    /// The connection broke.
    #[error("the connection to the inspector at {address} broke: {source}")]
    Connection {
        /// The address.
        address: SocketAddr,
        /// What broke.
        source: Box<tungstenite::Error>,
    },
    /// The other side closed the connection.
    #[error("the inspector at {address} closed the connection")]
    Closed {
        /// The address.
        address: SocketAddr,
    },
    /// A message that is none of the protocol.
    #[error("the inspector sent something that is no message of its protocol ({what}): {start:?}")]
    BadMessage {
        /// What is wrong with it.
        what: String,
        /// Its first characters.
        start: String,
    },
    /// The inspector refused a request.
    #[error("the inspector refused {method}: {message}")]
    Refused {
        /// The request's method.
        method: String,
        /// The inspector's words.
        message: String,
    },
    /// No answer came in time.
    #[error("no answer to {method} within {waited_s} s: the thread is busy or blocked")]
    NoAnswer {
        /// The request's method.
        method: String,
        /// How long it was waited for.
        waited_s: u64,
    },
    /// The snapshot that came is not whole.
    #[error("the snapshot is not whole: it ends with {end:?}")]
    NotWhole {
        /// Its last characters.
        end: String,
    },
    /// The file could not be written.
    #[error("cannot write the snapshot: {source}")]
    Write {
        /// The system's error.
        source: io::Error,
    },
    /// The process was not started for snapshots by this signal.
    #[error(
        "process {pid} was not started with --heapsnapshot-signal={signal}{}, and the signal may mean something else to \
         it: take a snapshot without --signal, or start it under `heapr node` (--at-risk sends the signal nevertheless)",
        if .given.is_empty() { String::new() } else { format!(" but with {given}") }
    )]
    NoSnapshotSignal {
        /// The process id.
        pid: u32,
        /// The signal that was to be sent.
        signal: &'static str,
        /// The one that it was started with, if any.
        given: String,
    },
    /// Node throws where it cannot write, and nobody catches that.
    #[error(
        "process {pid} would end with an exception on {signal}: its snapshot goes to {directory}, which {reason}; nothing \
         was sent to it; take one without --signal, or start it with another --diagnostic-dir (--at-risk sends the signal \
         nevertheless)"
    )]
    CannotWrite {
        /// The process id.
        pid: u32,
        /// The signal that was to be sent.
        signal: &'static str,
        /// Where the snapshot would go, as the process sees it.
        directory: String,
        /// Why it can't.
        reason: &'static str,
    },
    /// The program has a handler for the signal already.
    #[error("process {pid} has a handler for {signal} already: choose the other of SIGUSR1 and SIGUSR2")]
    SignalTaken {
        /// The process id.
        pid: u32,
        /// The signal.
        signal: &'static str,
    },
    /// The signal was sent and no file appeared.
    #[error(
        "process {pid} wrote no snapshot within {waited_s} s of {signal} into {directories}: is its main thread blocked?"
    )]
    NoFile {
        /// The process id.
        pid: u32,
        /// The signal.
        signal: &'static str,
        /// How long it was waited for.
        waited_s: u64,
        /// Where it was looked for.
        directories: String,
    },
    /// The user wanted to stop.
    #[error("stopped")]
    Cancelled,
}
