//! What can go wrong with a session.

use std::path::PathBuf;

use crate::failure::{Failure, FailureKind};

/// Why a session could not be started or went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The shared buffers could not be made.
    #[error("cannot make the shared buffers: {source}")]
    Pool {
        /// Why.
        #[from]
        source: heapr_ring::PoolError,
    },
    /// The output file could not be made.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// Which.
        path: PathBuf,
        /// Why.
        source: heapr_trace::Error,
    },
    /// A snapshot of a process that the session does not know.
    #[error("process {pid} is not recorded by this session: name one that `status` lists")]
    NotRecorded {
        /// As asked.
        pid: u32,
    },
    /// A snapshot of a session that records no more.
    #[error("the recording has ended because the file is as large as it may be: no snapshot can be taken")]
    RecordingEnded,
    /// More snapshots were asked for than are taken.
    #[error("{waiting} snapshots wait to be taken: ask again when some are done")]
    TooManySnapshots {
        /// How many.
        waiting: usize,
    },
    /// A core file could not be read as a heap.
    #[error("{}: {reason}", path.display())]
    Core {
        /// Which.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The graph of a process could not be taken.
    #[error("no graph of process {pid}: {reason}")]
    NoGraph {
        /// Whose.
        pid: u32,
        /// Why not.
        reason: String,
    },
    /// A graph of no process, or of several at once.
    #[error("a graph is of one process, and {count} are recorded: name one")]
    OneProcess {
        /// Processes that could be meant.
        count: usize,
    },
    /// A process that the session records already.
    #[error("process {pid} is recorded by this session already")]
    AlreadyRecorded {
        /// As asked.
        pid: u32,
    },
    /// A session that records all cannot begin to sample: its file says that it counts.
    #[error("this session records all allocations: start it with --sample all to change that while it runs")]
    NotSampled,
    /// A process could not be attached to or detached from.
    #[error("{source}")]
    Inject {
        /// Why.
        #[from]
        source: heapr_inject::Error,
    },
    /// No place for the agent.
    #[error(
        "found no directory from which programs could load the agent ({reasons}): set XDG_RUNTIME_DIR to one that is private and not mounted noexec"
    )]
    NoAgentDirectory {
        /// What is wrong with each that was tried.
        reasons: String,
    },
    /// A session's name cannot be one.
    #[error("{name:?} cannot be a session's name: {reason}")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The name is taken.
    #[error("a session named {name} exists: stop it (heapr stop {name}), or give this one another name")]
    SessionExists {
        /// The name.
        name: String,
    },
    /// A property makes no sense.
    #[error("invalid properties: {what}")]
    InvalidProperties {
        /// Which and why.
        what: String,
    },
    /// The buffers would take more memory than there is.
    #[error(
        "not enough memory: the buffers that are there from the start need {needed_mib} MiB, and {available_mib} MiB are free: lower --min-buffers or --buffer-size"
    )]
    OutOfMemory {
        /// What they need.
        needed_mib: u64,
        /// What there is.
        available_mib: u64,
    },
    /// A limit leaves too little for the shared buffers or for the agent.
    #[error("not enough memory: at least {needed_kib} KiB are needed, and {of} leaves {left_kib} KiB")]
    NoRoom {
        /// What is needed.
        needed_kib: u64,
        /// What there is.
        left_kib: u64,
        /// The limit.
        of: String,
    },
    /// No place for a session's socket.
    #[error(
        "found no directory for the sessions' sockets ({reasons}): set XDG_RUNTIME_DIR, or HEAPR_RUNTIME_DIR where that is set, to one that is this user's alone"
    )]
    NoRuntimeDirectory {
        /// What is wrong with each that was tried.
        reasons: String,
    },
    /// A session's socket or lock could not be made.
    #[error("cannot make {}: {source}", path.display())]
    Control {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The program of a session could not be started.
    #[error("cannot run {program}: {source}")]
    Program {
        /// Which.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// A thread or process of the session could not be made.
    #[error("cannot start the recorder: {source}")]
    Recorder {
        /// Why.
        source: std::io::Error,
    },
    /// A session that runs in another process, or a thread of this one, says what went wrong.
    #[error(transparent)]
    Session(#[from] Failure),
}

const ENOMEM: i32 = 12;
const ENOSPC: i32 = 28;

impl Error {
    /// The error in a word, as the API of a trace session has them.
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
