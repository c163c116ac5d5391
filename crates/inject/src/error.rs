//! Errors of an attach or a detach. The target runs on unchanged after any of them.

use crate::Unreachable;

/// Reason why a process could not be attached to or detached from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process does not exist.
    #[error("there is no process {pid}")]
    NoSuchProcess {
        /// Process id.
        pid: u32,
    },
    /// The process has ended, and its parent has not waited for it.
    #[error("process {pid} has ended: it is a zombie that its parent has not waited for")]
    Zombie {
        /// Process id.
        pid: u32,
    },
    /// The kernel does not permit tracing.
    #[error("not allowed to trace process {pid}: {reason}")]
    NotPermitted {
        /// Process id.
        pid: u32,
        /// Setting, capability or user that prevents it, and a remedy.
        reason: String,
    },
    /// A debugger traces the process.
    #[error("process {pid} is traced by {tracer_name} (process {tracer_pid}): end that first")]
    AlreadyTraced {
        /// Process id.
        pid: u32,
        /// Process id of the tracer.
        tracer_pid: u32,
        /// Name of the tracer.
        tracer_name: String,
    },
    /// A session records the process.
    #[error("process {pid} is recorded by a session already: stop that session first")]
    AlreadyAttached {
        /// Process id.
        pid: u32,
    },
    /// The process was detached from an agent that was loaded at its start. It cannot get another
    /// one while that agent's session runs.
    #[error(
        "process {pid} was let go by a session that still runs, and was started with its agent: stop that session first, or start the \
         program again"
    )]
    LetGo {
        /// Process id.
        pid: u32,
    },
    /// The process has no agent.
    #[error("process {pid} is not attached to")]
    NotAttached {
        /// Process id.
        pid: u32,
    },
    /// The process can never be attached to.
    #[error("cannot attach to process {pid}: {reason}")]
    Unsupported {
        /// Process id.
        pid: u32,
        /// Reason.
        reason: &'static str,
    },
    /// The kernel keeps the process from making memory executable.
    #[error(
        "cannot attach to process {pid}: it may not make memory executable (MemoryDenyWriteExecute= of systemd, PR_SET_MDWE); start it \
         with heapr run, which needs no such memory, or without that protection"
    )]
    WriteExecuteDenied {
        /// Process id.
        pid: u32,
    },
    /// A seccomp filter of the process would end it.
    #[error(
        "cannot attach to process {pid}: its seccomp filter would end it for the system call {call}, which heapr makes in it; start it \
         with heapr run"
    )]
    SeccompForbids {
        /// Process id.
        pid: u32,
        /// Name of the system call.
        call: &'static str,
    },
    /// A seccomp filter of the process cannot be read.
    #[error(
        "cannot attach to process {pid}: it has a seccomp filter, which may end it for what heapr does in it, and which the kernel \
         shows to root only: use sudo, or heapr start --despite-seccomp if it is known to answer with errors only"
    )]
    SeccompUnreadable {
        /// Process id.
        pid: u32,
    },
    /// No suitable moment came in the allowed time.
    #[error("process {pid} gave no chance to attach within {seconds} s: {reason}; try again")]
    NoQuietMoment {
        /// Process id.
        pid: u32,
        /// Duration of the tries.
        seconds: u64,
        /// Obstacle at the last try.
        reason: String,
    },
    /// The process's memory could not be read while it was stopped.
    #[error(
        "process {pid} was let go before its memory was read: a read had waited for {waited_ms} ms, for a program that serves it \
         (userfaultfd, FUSE), or for a disk"
    )]
    ReadWaits {
        /// Process id.
        pid: u32,
        /// Milliseconds after which the process was resumed.
        waited_ms: u64,
    },
    /// The process ended during the operation.
    #[error("process {pid} ended while it was attached to")]
    Ended {
        /// Process id.
        pid: u32,
    },
    /// A system call in the target failed.
    #[error("{call} in process {pid} failed with error {errno}")]
    RemoteCall {
        /// Process id.
        pid: u32,
        /// Name of the system call.
        call: &'static str,
        /// Error number.
        errno: i32,
    },
    /// A system call of this process failed.
    #[error("{call} on process {pid} failed: {source}")]
    Trace {
        /// Process id.
        pid: u32,
        /// Name of the system call.
        call: &'static str,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The target's memory cannot be accessed.
    #[error("process {pid}: {source}")]
    Memory {
        /// Process id.
        pid: u32,
        /// Location and operation.
        source: Unreachable,
    },
    /// Data in the target's memory is invalid.
    #[error("process {pid}: {what} at {address_avma:#x} makes no sense ({value:#x})")]
    Malformed {
        /// Process id.
        pid: u32,
        /// Name of the data.
        what: &'static str,
        /// Address of the data.
        address_avma: u64,
        /// Value found.
        value: u64,
    },
    /// The agent itself refused to start.
    #[error("the agent could not start in process {pid} (reason {reason})")]
    AgentRefused {
        /// Process id.
        pid: u32,
        /// Number of a `DisableReason`.
        reason: u32,
    },
    /// The agent's file is invalid.
    #[error("the agent's file is damaged: {what}")]
    BadAgent {
        /// Description of the fault.
        what: &'static str,
    },
    /// The target lacks a function that the agent calls.
    #[error("the agent calls {name}, which the program does not have: heapr cannot record it")]
    MissingFunction {
        /// Name of the function.
        name: String,
    },
    /// A test requested the failure.
    #[error("step {step} failed because a test asked for it")]
    MadeToFail {
        /// Number of the step.
        step: u32,
    },
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
