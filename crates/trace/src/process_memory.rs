//! Memory of a process at a time: resident memory, and the explained parts of its own memory.

use crate::{MemoryPart, ProcessIndex};

/// Resident set size of a process at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RssSample {
    /// Time of the sample.
    pub time_ns: u64,
    /// The process.
    pub process: ProcessIndex,
    /// Resident bytes.
    pub rss_bytes: u64,
}

/// Resident set of a process at a time by kind of page, and memory that the kernel holds beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResidentSample {
    /// Time of the sample.
    pub time_ns: u64,
    /// The process.
    pub process: ProcessIndex,
    /// Resident memory without a file: heaps, stacks, written data.
    pub anonymous_bytes: u64,
    /// Resident pages of files.
    pub file_bytes: u64,
    /// Resident shared memory.
    pub shared_memory_bytes: u64,
    /// Swapped-out memory, which is not resident.
    pub swapped_bytes: u64,
    /// Page tables, which do not count as resident.
    pub page_table_bytes: u64,
    /// Largest resident set so far, including the time before the recording.
    pub most_rss_bytes: u64,
}

impl ResidentSample {
    /// Size of the resident set.
    #[must_use]
    pub fn rss_bytes(&self) -> u64 {
        self.anonymous_bytes.saturating_add(self.file_bytes).saturating_add(self.shared_memory_bytes)
    }
}

/// Account of a process's own memory at its largest, as far as it was examined.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryAccount {
    /// Time at which the account was written.
    pub time_ns: u64,
    /// The process.
    pub process: ProcessIndex,
    /// Anonymous memory at its largest, without that of heapr itself.
    pub anonymous_bytes: u64,
    /// Memory of heapr itself in the process.
    pub agent_bytes: u64,
    /// The explained parts; the rest has no explanation.
    pub parts: Vec<MemoryPart>,
}

impl MemoryAccount {
    /// Number of explained bytes.
    #[must_use]
    pub fn explained_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).fold(0, u64::saturating_add).min(self.anonymous_bytes)
    }

    /// Number of bytes outside of recorded blocks, data and stacks.
    #[must_use]
    pub fn unseen_bytes(&self) -> u64 {
        let seen = self.parts.iter().filter(|part| !part.is_unseen);
        let seen_bytes = seen.map(|part| part.bytes).fold(0, u64::saturating_add);
        self.anonymous_bytes.saturating_sub(seen_bytes)
    }
}
