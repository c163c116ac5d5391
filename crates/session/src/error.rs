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
}
