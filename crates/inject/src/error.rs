//! What can go wrong with an attach or a detach. Whatever it is: the target runs on as it was.

use crate::Unreachable;

/// Why a process could not be attached to or detached from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such process.
    #[error("there is no process {pid}")]
    NoSuchProcess {
        /// Which.
        pid: u32,
    },
    /// It has ended and waits for its parent.
    #[error("process {pid} has ended: it is a zombie that its parent has not waited for")]
    Zombie {
        /// Which.
        pid: u32,
    },
    /// The kernel does not allow it.
    #[error("not allowed to trace process {pid}: {reason}")]
    NotPermitted {
        /// Which.
        pid: u32,
        /// Which setting, capability or user is in the way, and what helps.
        reason: String,
    },
    /// A debugger is at it.
    #[error("process {pid} is traced by {tracer_name} (process {tracer_pid}): end that first")]
    AlreadyTraced {
        /// Which.
        pid: u32,
        /// Who traces it.
        tracer_pid: u32,
        /// The tracer's name.
        tracer_name: String,
    },
    /// A session records it.
    #[error("process {pid} is recorded by a session already: stop that session first")]
    AlreadyAttached {
        /// Which.
        pid: u32,
    },
    /// It has an agent that was loaded when it started, and cannot be given another one while that
    /// one's session runs.
    #[error(
        "process {pid} was let go by a session that still runs, and was started with its agent: stop that session first, or start the \
         program again"
    )]
    LetGo {
        /// Which.
        pid: u32,
    },
    /// Nothing to detach.
    #[error("process {pid} is not attached to")]
    NotAttached {
        /// Which.
        pid: u32,
    },
    /// It cannot be attached to, and never will.
    #[error("cannot attach to process {pid}: {reason}")]
    Unsupported {
        /// Which.
        pid: u32,
        /// What it is.
        reason: &'static str,
    },
    /// The kernel keeps it from making memory executable.
    #[error(
        "cannot attach to process {pid}: it may not make memory executable (MemoryDenyWriteExecute= of systemd, PR_SET_MDWE); start it \
         with heapr run, which needs no such memory, or without that protection"
    )]
    WriteExecuteDenied {
        /// Which.
        pid: u32,
    },
    /// A seccomp filter of its would end it.
    #[error(
        "cannot attach to process {pid}: its seccomp filter would end it for the system call {call}, which heapr makes in it; start it \
         with heapr run"
    )]
    SeccompForbids {
        /// Which.
        pid: u32,
        /// The call.
        call: &'static str,
    },
    /// It has a seccomp filter that we are not shown.
    #[error(
        "cannot attach to process {pid}: it has a seccomp filter, which may end it for what heapr does in it, and which the kernel \
         shows to root only: use sudo, or heapr start --despite-seccomp if it is known to answer with errors only"
    )]
    SeccompUnreadable {
        /// Which.
        pid: u32,
    },
    /// There was no good moment in the time given.
    #[error("process {pid} gave no chance to attach within {seconds} s: {reason}; try again")]
    NoQuietMoment {
        /// Which.
        pid: u32,
        /// How long it was tried.
        seconds: u64,
        /// What was in the way the last time.
        reason: String,
    },
    /// Its memory could not be read while it stood still.
    #[error(
        "process {pid} was let go before its memory was read: a read had waited for {waited_ms} ms, for a program that serves it \
         (userfaultfd, FUSE), or for a disk"
    )]
    ReadWaits {
        /// Which.
        pid: u32,
        /// Milliseconds after which it was let go.
        waited_ms: u64,
    },
    /// It ended in the middle.
    #[error("process {pid} ended while it was attached to")]
    Ended {
        /// Which.
        pid: u32,
    },
    /// A system call in the target failed.
    #[error("{call} in process {pid} failed with error {errno}")]
    RemoteCall {
        /// Which.
        pid: u32,
        /// Which call.
        call: &'static str,
        /// errno's value.
        errno: i32,
    },
    /// A system call of our own failed.
    #[error("{call} on process {pid} failed: {source}")]
    Trace {
        /// Which.
        pid: u32,
        /// Which call.
        call: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The target's memory is not as it must be.
    #[error("process {pid}: {source}")]
    Memory {
        /// Which.
        pid: u32,
        /// Where.
        source: Unreachable,
    },
    /// Something in the target's memory does not make sense.
    #[error("process {pid}: {what} at {address_avma:#x} makes no sense ({value:#x})")]
    Malformed {
        /// Which.
        pid: u32,
        /// What.
        what: &'static str,
        /// Where.
        address_avma: u64,
        /// What was found.
        value: u64,
    },
    /// The agent itself refused.
    #[error("the agent could not start in process {pid} (reason {reason})")]
    AgentRefused {
        /// Which.
        pid: u32,
        /// A `DisableReason` as a number.
        reason: u32,
    },
    /// The agent's file is not as this library needs it.
    #[error("the agent's file is damaged: {what}")]
    BadAgent {
        /// What is wrong.
        what: &'static str,
    },
    /// Asked for by a test.
    #[error("step {step} failed because a test asked for it")]
    MadeToFail {
        /// Which.
        step: u32,
    },
}

/// Answers of this library.
pub type Result<T> = std::result::Result<T, Error>;
