//! Errors of recording.

use std::fmt;

/// Reason why nothing was recorded.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The program cannot be started.
    NoProgram {
        /// Name of the program.
        program: String,
        /// Reason.
        source: std::io::Error,
    },
    /// The program refused.
    Refused {
        /// Text that the program printed.
        said: String,
    },
    /// The program's answer could not be read.
    Answer {
        /// Name of the missing part.
        missing: &'static str,
    },
    /// The folder for the trace could not be made.
    Folder(std::io::Error),
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProgram { program, source } => {
                write!(out, "cannot run {program}: {source}; HEAPR names another, and PATH must have it else")
            }
            Self::Refused { said } => out.write_str(said),
            Self::Answer { missing } => write!(out, "heapr's answer has no {missing}"),
            Self::Folder(source) => write!(out, "no folder for the trace: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoProgram { source, .. } | Self::Folder(source) => Some(source),
            Self::Refused { .. } | Self::Answer { .. } => None,
        }
    }
}
