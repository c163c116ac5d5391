//! Errors of a session.

use std::path::PathBuf;

use crate::failure::{Failure, FailureKind};

/// Reason for which a session could not be started or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Shared buffers could not be made.
    #[error("cannot make the shared buffers: {source}")]
    Pool {
        /// Cause.
        #[from]
        source: heapr_ring::PoolError,
    },
    /// Output file could not be made.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: heapr_trace::Error,
    },
    /// Snapshot requested of a process that the session does not know.
    #[error("process {pid} is not recorded by this session: name one that `status` lists")]
    NotRecorded {
        /// Requested process id.
        pid: u32,
    },
    /// Snapshot requested after the recording has ended.
    #[error("the recording has ended because the file is as large as it may be: no snapshot can be taken")]
    RecordingEnded,
    /// Too many snapshots wait.
    #[error("{waiting} snapshots wait to be taken: ask again when some are done")]
    TooManySnapshots {
        /// Number of waiting snapshots.
        waiting: usize,
    },
    /// Core file could not be read as a heap.
    #[error("{}: {reason}", path.display())]
    Core {
        /// Path of the core file.
        path: PathBuf,
        /// Cause.
        reason: String,
    },
    /// Graph of a process could not be captured.
    #[error("no graph of process {pid}: {reason}")]
    NoGraph {
        /// Process id.
        pid: u32,
        /// Cause.
        reason: String,
    },
    /// Heap of a managed language could not be read.
    #[error("the heap of process {pid} cannot be read: {reason}")]
    NoManagedHeap {
        /// Process id.
        pid: u32,
        /// Cause.
        reason: heapr_managed::Error,
    },
    /// Graph requested of no process, or of several at once.
    #[error("a graph is of one process, and {count} are recorded: name one")]
    OneProcess {
        /// Number of recorded processes that match.
        count: usize,
    },
    /// Attach to a process that the session already records.
    #[error("process {pid} is recorded by this session already")]
    AlreadyRecorded {
        /// As asked.
        pid: u32,
    },
    /// Sampling requested of a session that records all allocations: its file states exact counts.
    #[error("this session records all allocations: start it with --sample all to change that while it runs")]
    NotSampled,
    /// Process could not be attached to or detached from.
    #[error("{source}")]
    Inject {
        /// Cause.
        #[from]
        source: heapr_inject::Error,
    },
    /// No directory for the agent's file.
    #[error(
        "found no directory from which programs could load the agent ({reasons}): set XDG_RUNTIME_DIR to one that is private and not mounted noexec"
    )]
    NoAgentDirectory {
        /// Reason against each directory that was tried.
        reasons: String,
    },
    /// Invalid name of a session.
    #[error("{name:?} cannot be a session's name: {reason}")]
    BadName {
        /// Requested name.
        name: String,
        /// Reason for which the name is invalid.
        reason: String,
    },
    /// Name of a session that already exists.
    #[error("a session named {name} exists: stop it (heapr stop {name}), or give this one another name")]
    SessionExists {
        /// Requested name.
        name: String,
    },
    /// Invalid property.
    #[error("invalid properties: {what}")]
    InvalidProperties {
        /// Property and reason.
        what: String,
    },
    /// Buffers would take more memory than is free.
    #[error(
        "not enough memory: the buffers that are there from the start need {needed_mib} MiB, and {available_mib} MiB are free: lower --min-buffers or --buffer-size"
    )]
    OutOfMemory {
        /// MiB that the buffers need.
        needed_mib: u64,
        /// MiB that are free.
        available_mib: u64,
    },
    /// Limit that leaves too little for the shared buffers or for the agent.
    #[error("not enough memory: at least {needed_kib} KiB are needed, and {of} leaves {left_kib} KiB")]
    NoRoom {
        /// KiB that are needed.
        needed_kib: u64,
        /// KiB that are left.
        left_kib: u64,
        /// Description of the limit.
        of: String,
    },
    /// No directory for a session's socket.
    #[error(
        "found no directory for the sessions' sockets ({reasons}): set XDG_RUNTIME_DIR, or HEAPR_RUNTIME_DIR where that is set, to one that is this user's alone"
    )]
    NoRuntimeDirectory {
        /// Reason against each directory that was tried.
        reasons: String,
    },
    /// Socket or lock of a session could not be made.
    #[error("cannot make {}: {source}", path.display())]
    Control {
        /// Path of the socket or lock.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// Program of a session could not be started.
    #[error("cannot run {program}: {source}")]
    Program {
        /// Name of the program.
        program: String,
        /// Cause.
        source: std::io::Error,
    },
    /// Thread or process of the session could not be made.
    #[error("cannot start the recorder: {source}")]
    Recorder {
        /// Cause.
        source: std::io::Error,
    },
    /// Failure reported by a session in another process, or in a thread of this one.
    #[error(transparent)]
    Session(#[from] Failure),
}

const ENOMEM: i32 = 12;
const ENOSPC: i32 = 28;

impl Error {
    /// Kind of the error, as in the API of a trace session.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Pool { source: heapr_ring::PoolError::System { errno: ENOMEM | ENOSPC, .. } } => {
                FailureKind::OutOfMemory
            }
            Self::Pool {
                source: heapr_ring::PoolError::BufferSize { .. } | heapr_ring::PoolError::BufferCount { .. },
            }
            | Self::BadName { .. }
            | Self::InvalidProperties { .. } => FailureKind::Invalid,
            Self::Output { .. } => FailureKind::Output,
            Self::OutOfMemory { .. } | Self::NoRoom { .. } => FailureKind::OutOfMemory,
            Self::SessionExists { .. } => FailureKind::AlreadyExists,
            Self::Inject { source } => kind_of_attach(source),
            Self::NotRecorded { .. } => FailureKind::NoSuchProcess,
            Self::AlreadyRecorded { .. } => FailureKind::NotTraceable,
            Self::RecordingEnded | Self::TooManySnapshots { .. } => FailureKind::Other,
            Self::Session(failure) => failure.kind,
            Self::Recorder { source } if source.raw_os_error() == Some(ENOMEM) => FailureKind::OutOfMemory,
            _ => FailureKind::Other,
        }
    }
}

fn kind_of_attach(error: &heapr_inject::Error) -> FailureKind {
    use heapr_inject::Error as Inject;
    match error {
        Inject::NoSuchProcess { .. } | Inject::Zombie { .. } | Inject::Ended { .. } => {
            FailureKind::NoSuchProcess
        }
        Inject::NotPermitted { .. } | Inject::SeccompUnreadable { .. } => FailureKind::NoPermission,
        Inject::RemoteCall { errno: ENOMEM, .. } => FailureKind::OutOfMemory,
        Inject::AlreadyTraced { .. }
        | Inject::AlreadyAttached { .. }
        | Inject::LetGo { .. }
        | Inject::NotAttached { .. }
        | Inject::Unsupported { .. }
        | Inject::SeccompForbids { .. }
        | Inject::NoQuietMoment { .. }
        | Inject::Malformed { .. } => FailureKind::NotTraceable,
        _ => FailureKind::Other,
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}
