//! Reasons for which a Java virtual machine cannot be asked for a heap dump.

use std::path::PathBuf;

use heapr_table::quantity::bytes;

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
    /// The process is stopped or its control group frozen, and cannot answer.
    #[error("it is stopped or frozen, and answers when it goes on (kill -CONT)")]
    Stopped,
    /// The process may not be asked by this user.
    #[error("it may not be asked by this user: its own user and root may ({path})")]
    NotAllowed {
        /// File that was denied.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// No folder that both see.
    #[error("it has no folder for files of its Java virtual machine (/tmp, its working directory)")]
    NoFolder,
    /// The dump could fill the disk.
    #[error(
        "its heap dump needs up to {} in {folder}, where {} are free",
        bytes(*.needed_bytes), bytes(*.free_bytes)
    )]
    NoRoom {
        /// Folder as the process sees it.
        folder: PathBuf,
        /// Bytes that are free for the process.
        free_bytes: u64,
        /// Bytes in use, a quarter of them, and 64 MiB.
        needed_bytes: u64,
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
        /// Last line of its answer, cut at 200 characters.
        text: String,
    },
}

impl AttachError {
    /// Refusal of a command, with the end of the answer.
    pub(super) fn refused(command: &str, result: &str, answer: &str) -> Self {
        let last = answer.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        Self::Refused {
            command: command.to_owned(),
            result: result.chars().take(16).collect(),
            text: last.chars().filter(|it| !it.is_control()).take(200).collect(),
        }
    }

    /// Error of a file, by the kind of its cause.
    pub(super) fn of_file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            std::io::ErrorKind::PermissionDenied => Self::NotAllowed { path, source },
            _ => Self::File { path, source },
        }
    }
}
