//! A process's memory at a time: what is resident, and what of its own memory is explained.

use crate::{ProcessIndex, StackIndex};

/// Resident set of a process at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RssSample {
    /// When.
    pub time_ns: u64,
    /// Whose.
    pub process: ProcessIndex,
    /// Resident bytes.
    pub rss_bytes: u64,
}

/// Resident set of a process at a time by what its pages are, and what the kernel holds beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResidentSample {
    /// When.
    pub time_ns: u64,
    /// Whose.
    pub process: ProcessIndex,
    /// Resident memory without a file: heaps, stacks, written data.
    pub anonymous_bytes: u64,
    /// Resident pages of files.
    pub file_bytes: u64,
    /// Resident shared memory.
    pub shared_memory_bytes: u64,
    /// Swapped out: not resident.
    pub swapped_bytes: u64,
    /// Page tables: not resident.
    pub page_table_bytes: u64,
    /// The most that was ever resident, before the recording too.
    pub most_rss_bytes: u64,
}

impl ResidentSample {
    /// All that is resident.
    #[must_use]
    pub fn rss_bytes(&self) -> u64 {
        self.anonymous_bytes.saturating_add(self.file_bytes).saturating_add(self.shared_memory_bytes)
    }
}

/// What a process's own memory was when it held most, as far as it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryAccount {
    /// When it was written.
    pub time_ns: u64,
    /// Whose.
    pub process: ProcessIndex,
    /// Anonymous memory at its most, without what heapr itself needs there.
    pub anonymous_bytes: u64,
    /// What heapr itself needs there.
    pub agent_bytes: u64,
    /// What it is: the rest has no explanation.
    pub parts: Vec<MemoryPart>,
}

impl MemoryAccount {
    /// What is explained of it.
    #[must_use]
    pub fn explained_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).fold(0, u64::saturating_add).min(self.anonymous_bytes)
    }

    /// What of it is in no recorded block, nor data, nor a stack.
    #[must_use]
    pub fn unseen_bytes(&self) -> u64 {
        let seen = self.parts.iter().filter(|part| !part.is_unseen);
        let seen_bytes = seen.map(|part| part.bytes).fold(0, u64::saturating_add);
        self.anonymous_bytes.saturating_sub(seen_bytes)
    }
}

impl MemoryPart {
    /// What blocks are called that were recorded, with what the allocator takes beside each.
    pub const BLOCKS: &'static str = "recorded blocks";
    /// What is called so that is in no block that was recorded, of the memory that blocks are in.
    pub const FREE: &'static str = "free in the allocator";
    /// What the C library takes for a block beside it, about: recorded blocks have it.
    pub const BESIDE_BLOCK_BYTES: u64 = 16;
}

/// A part of a [`MemoryAccount`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryPart {
    /// What it is, in words.
    pub what: String,
    /// How much.
    pub bytes: u64,
    /// Who mapped it, where that is known.
    pub stack: StackIndex,
    /// It has a name, and is in no recorded block.
    pub is_unseen: bool,
}
