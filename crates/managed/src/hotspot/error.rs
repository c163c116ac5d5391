//! Reasons for which a Java virtual machine cannot be asked for a heap dump.

use std::path::PathBuf;

/// Reason for which a process cannot be asked for a heap dump of Java.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// No HotSpot in the process.
    #[error("it runs no Java virtual machine of the HotSpot kind (no libjvm.so is mapped)")]
    NoHotSpot,
    /// OpenJ9, which has another protocol.
    #[error("it runs OpenJ9, whose heap is not read: only HotSpot's is")]
    OpenJ9,
    /// The virtual machine was started without the protocol.
    #[error("its Java virtual machine takes no commands: it was started with {option}")]
    Disabled {
        /// Option of its command line or environment.
        option: &'static str,
    },
    /// The signal that opens the protocol would end the process.
    #[error(
        "it does not handle signal 3 (SIGQUIT), which would end it: its Java virtual machine is starting, or leaves signals alone"
    )]
    SignalWouldKill,
    /// The process is stopped, and cannot answer.
    #[error("it is stopped, and answers when it goes on (kill -CONT)")]
    Stopped,
    /// The process may not be asked by this user.
    #[error("it may not be asked by this user: its own user and root may ({path}: {source})")]
    NotAllowed {
        /// File that was denied.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A file could not be used.
    #[error("cannot use {path}: {source}")]
    File {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// No answer within the time.
    #[error("its Java virtual machine does not answer within {seconds} s")]
    NoAnswer {
        /// Time that was waited, in seconds.
        seconds: u64,
    },
    /// The virtual machine refused.
    #[error("its Java virtual machine refuses {command} (result {result}): {text}")]
    Refused {
        /// Command.
        command: String,
        /// Result, 0 if it is fine.
        result: String,
        /// First line of its answer.
        text: String,
    },
}

impl AttachError {
    /// Error of a file, by the kind of its cause.
    pub(super) fn of_file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            std::io::ErrorKind::PermissionDenied => Self::NotAllowed { path, source },
            _ => Self::File { path, source },
        }
    }
}
