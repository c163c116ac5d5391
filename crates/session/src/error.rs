//! What can go wrong with a session.

use std::path::PathBuf;

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
    /// More snapshots were asked for than are taken.
    #[error("{waiting} snapshots wait to be taken: ask again when some are done")]
    TooManySnapshots {
        /// How many.
        waiting: usize,
    },
    /// No place for the agent.
    #[error(
        "found no directory from which programs could load the agent ({reasons}): set XDG_RUNTIME_DIR to one that is private and not mounted noexec"
    )]
    NoAgentDirectory {
        /// What is wrong with each that was tried.
        reasons: String,
    },
}
