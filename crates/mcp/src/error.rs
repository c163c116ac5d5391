//! What can go wrong.

/// A failure of the server or of a tool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server cannot begin.
    #[error("cannot start the server: {0}")]
    Start(std::io::Error),
    /// The client does not speak the protocol.
    #[error("the client does not speak the protocol: {0}")]
    Protocol(String),
    /// An argument of a tool is missing or makes no sense.
    #[error("argument {name}: {reason}")]
    Argument {
        /// Its name.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A tool that does more than read.
    #[error(
        "{tool} is not allowed: it starts or attaches to processes. The user can allow it with `heapr mcp --allow-attach`"
    )]
    NotAllowed {
        /// Its name.
        tool: &'static str,
    },
    /// The command line could not be started.
    #[error("cannot run heapr: {0}")]
    Run(std::io::Error),
    /// The command line refused or failed, in its own words.
    #[error("{0}")]
    Refused(String),
    /// It took too long.
    #[error("no answer within {0} s")]
    Late(u64),
}

/// Of this crate.
pub type Result<T> = std::result::Result<T, Error>;
