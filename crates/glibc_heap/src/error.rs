//! Why a rundown cannot be made at all.

use super::layout::Version;

/// Why there is no rundown; the target itself is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process's list of mappings could not be read.
    #[error("failed to read {path}: {source}; the process ended, or reading it is not permitted")]
    Mappings {
        /// The file of /proc.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// No mapping of the process belongs to glibc.
    #[error("no glibc is mapped; a rundown is made for programs that use glibc's malloc")]
    NoLibc,
    /// The program's malloc is not glibc's.
    #[error(
        "malloc is {by}'s, not glibc's: no rundown is made; blocks allocated before are unknown, and their frees are not errors"
    )]
    OtherAllocator {
        /// The module that defines malloc.
        by: String,
    },
    /// libc's text does not say its version.
    #[error(
        "{path} does not say its version; a rundown needs glibc {} to {}",
        Version::OLDEST,
        Version::NEWEST
    )]
    UnknownVersion {
        /// The libc that was looked at.
        path: String,
    },
    /// The heap of this version has another layout.
    #[error(
        "glibc {found} has a heap that is not known here; a rundown needs {} to {}",
        Version::OLDEST,
        Version::NEWEST
    )]
    UnsupportedVersion {
        /// What libc says it is.
        found: Version,
    },
    /// Nothing in libc's data is consistent as an arena.
    #[error(
        "no main arena was found in the data of {path}: {candidates} places had the right ring, none the right bins"
    )]
    NoMainArena {
        /// The libc that was looked at.
        path: String,
        /// How many places looked like it at first sight.
        candidates: usize,
    },
    /// The arena was there before the stop and is not now.
    #[error("the main arena at {address_avma:#x} is damaged: {what} is {value:#x}")]
    DamagedMainArena {
        /// Where the arena is.
        address_avma: u64,
        /// The field that cannot be.
        what: &'static str,
        /// Its value.
        value: u64,
    },
}
