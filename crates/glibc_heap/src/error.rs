//! Reasons why a rundown cannot be made.

use super::layout::Version;

/// Reason why a rundown cannot be made; the target is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process's list of mappings could not be read.
    #[error("failed to read {path}: {source}; the process ended, or reading it is not permitted")]
    Mappings {
        /// Path of the file in /proc.
        path: String,
        /// Error of the system.
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
        /// Path of the libc file.
        path: String,
    },
    /// The heap layout of this version is unknown.
    #[error(
        "glibc {found} has a heap that is not known here; a rundown needs {} to {}",
        Version::OLDEST,
        Version::NEWEST
    )]
    UnsupportedVersion {
        /// Version that libc states.
        found: Version,
    },
    /// No part of libc's data is consistent as an arena.
    #[error(
        "no main arena was found in the data of {path}: {candidates} places had the right ring, none the right bins"
    )]
    NoMainArena {
        /// Path of the libc file.
        path: String,
        /// Number of positions with a plausible ring pointer.
        candidates: usize,
    },
    /// The main arena was consistent before the stop and is damaged at the stop.
    #[error("the main arena at {address_avma:#x} is damaged: {what} is {value:#x}")]
    DamagedMainArena {
        /// Address of the arena.
        address_avma: u64,
        /// Name of the impossible field.
        what: &'static str,
        /// Value of the field.
        value: u64,
    },
}
