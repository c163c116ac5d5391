//! Errors of the server and of its tools.

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
    /// An argument of a tool is missing or invalid.
    #[error("argument {name}: {reason}")]
    Argument {
        /// Name of the argument.
        name: &'static str,
        /// Reason.
        reason: String,
    },
    /// A tool that does more than read was called without permission.
    #[error(
        "{tool} is not allowed: it starts or attaches to processes. The user can allow it with `heapr mcp --allow-attach`"
    )]
    NotAllowed {
        /// Name of the tool.
        tool: &'static str,
    },
    /// The command line could not be started.
    #[error("cannot run heapr: {0}")]
    Run(std::io::Error),
    /// The command line refused or failed, in its own words.
    #[error("{0}")]
    Refused(String),
    /// A command took too long; its limit in seconds.
    #[error("no answer within {0} s")]
    Late(u64),
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
