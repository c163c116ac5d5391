//! Reasons for which a .NET runtime cannot be asked for its heap.

use std::path::PathBuf;

use heapr_table::quantity::bytes;

use crate::dump_error::DumpError;

/// Reason for which a process cannot be asked for its .NET heap.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DotnetError {
    /// No runtime in the process.
    #[error("it runs no .NET (no libcoreclr.so is mapped, and it has no diagnostics socket)")]
    NoDotnet,
    /// The runtime was started without diagnostics.
    #[error("its .NET takes no commands: it was started with {variable}=0")]
    Disabled {
        /// Variable of its environment.
        variable: &'static str,
    },
    /// The runtime has no socket.
    #[error(
        "its .NET has no diagnostics socket ({path}): it is older than 3.0, is starting, or it was removed"
    )]
    NoSocket {
        /// Path of the socket that was looked for.
        path: PathBuf,
    },
    /// The process is stopped or its control group frozen, and cannot answer.
    #[error("it is stopped or frozen, and answers when it goes on (kill -CONT)")]
    Stopped,
    /// The process may not be asked by this user.
    #[error("it may not be asked by this user: its own user and root may ({path})")]
    NotAllowed {
        /// Path that was denied.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A path could not be used.
    #[error("cannot use {path}: {source}")]
    File {
        /// Path.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The events could fill the memory that the process may have.
    #[error(
        "its .NET keeps events in its own memory until they are read, which may need {}, and it may have only \
         {} more",
        bytes(*.needed_bytes), bytes(*.free_bytes)
    )]
    NoRoom {
        /// Bytes that the events may need.
        needed_bytes: u64,
        /// Bytes that the process may still have.
        free_bytes: u64,
    },
    /// No answer within the time.
    #[error("its .NET does not answer within {seconds} s")]
    NoAnswer {
        /// Time that was waited, in seconds.
        seconds: u64,
    },
    /// The runtime refused.
    #[error("its .NET refuses the command {command:#06x} (code {code:#x})")]
    Refused {
        /// Set of commands in the upper byte, and command.
        command: u16,
        /// Code of the answer.
        code: u32,
    },
    /// The events cannot be read.
    #[error("the events of its .NET cannot be read: {0}")]
    Events(#[from] DumpError),
}

impl DotnetError {
    /// Error of a path, by the kind of its cause.
    pub(super) fn of_file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            std::io::ErrorKind::PermissionDenied => Self::NotAllowed { path, source },
            _ => Self::File { path, source },
        }
    }
}
