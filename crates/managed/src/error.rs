//! Reasons for which a heap cannot be read.

/// Reason for which a managed heap cannot be read. The process is not changed by the attempt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No module defines `_PyRuntime`.
    #[error("no module of it defines _PyRuntime: it does not run CPython 3.8 or later, or hides its symbols")]
    NoRuntime,
    /// Version that the table of layouts lacks.
    #[error("it runs CPython {}.{}, whose objects are not known here: 3.8 to 3.15 are", .version >> 8, .version & 0xff)]
    UnknownVersion {
        /// Version, for example `0x0310`.
        version: u32,
    },
    /// `_PyRuntime` of a size that no known version has.
    #[error(
        "it runs a CPython whose _PyRuntime has {runtime_bytes} bytes, which no known version has (3.8 to 3.15)"
    )]
    UnknownRuntime {
        /// Size of `_PyRuntime`.
        runtime_bytes: u64,
    },
    /// Another implementation of Python.
    #[error("it runs PyPy, whose objects are not those of CPython: they are not read")]
    PyPy,
    /// Build without the interpreter's lock.
    #[error("it runs CPython without the interpreter's lock (free-threaded), whose heap is not read yet")]
    FreeThreaded,
    /// Structures that do not have the form of the version's release builds.
    #[error(
        "its CPython {}.{} is not laid out as release builds are ({what} is not where it belongs): a debug build, or one with changes", .version >> 8, .version & 0xff
    )]
    OtherLayout {
        /// Version, for example `0x030b`.
        version: u32,
        /// Structure that was not found.
        what: &'static str,
    },
    /// No module defines Ruby's version.
    #[error("no module of it defines ruby_api_version: it does not run Ruby, or hides its symbols")]
    NoRuby,
    /// Version of Ruby that the table of layouts lacks.
    #[error("it runs Ruby {}.{}, whose objects are not known here: 3.1 and 3.3 are", .version >> 8, .version & 0xff)]
    UnknownRuby {
        /// Version, for example `0x0302`.
        version: u32,
    },
    /// Structures of Ruby that do not have the form of the version's release builds.
    #[error(
        "its Ruby {}.{} is not laid out as release builds are ({what} is not where it belongs)", .version >> 8, .version & 0xff
    )]
    OtherRuby {
        /// Version, for example `0x0301`.
        version: u32,
        /// Structure that was not found.
        what: &'static str,
    },
    /// More objects or references than can be numbered.
    #[error("it has more references than its memory has room for, or more than 4 billion")]
    TooLarge,
    /// The caller has ended the reading.
    #[error("it could not be read within the allowed time: --max-pause MS allows more")]
    GivenUp,
}

/// Result of reading a heap.
pub type Result<T> = std::result::Result<T, Error>;
