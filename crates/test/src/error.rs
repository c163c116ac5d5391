//! What can go wrong.

use std::fmt;

/// Why nothing was recorded.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The program cannot be started.
    NoProgram {
        /// Its name.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// It has refused.
    Refused {
        /// In its own words.
        said: String,
    },
    /// Its answer is none.
    Answer {
        /// What is missing in it.
        missing: &'static str,
    },
    /// The trace has no place.
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
