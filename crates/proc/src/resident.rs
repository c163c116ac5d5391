//! The kernel's counters of a process's resident memory.

use crate::fields::Fields;

/// Counters in `/proc/PID/status`. The kernel caches parts of them per processor, so that they may
/// be some hundred kB off. The exact values are the sums over the mappings: see [`crate::smaps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResidentCounters {
    /// Resident memory without a file.
    pub anonymous_bytes: u64,
    /// Resident pages of files.
    pub file_bytes: u64,
    /// Resident shared memory.
    pub shared_memory_bytes: u64,
    /// Private memory that is swapped out.
    pub swapped_bytes: u64,
    /// Page tables.
    pub page_table_bytes: u64,
    /// Reserved huge pages (hugetlbfs), which no resident set counts.
    pub reserved_huge_bytes: u64,
    /// Peak of the resident memory.
    pub most_rss_bytes: u64,
}

impl ResidentCounters {
    /// Reads the counters of a process; `None` if it is gone or has released its memory.
    pub fn of_process(pid: u32) -> Option<Self> {
        Self::from_status(&Fields::of_process(pid).ok()?)
    }

    fn from_status(status: &Fields) -> Option<Self> {
        let bytes = |name| status.bytes(name);
        Some(Self {
            anonymous_bytes: bytes("RssAnon")?,
            file_bytes: bytes("RssFile")?,
            shared_memory_bytes: bytes("RssShmem")?,
            swapped_bytes: bytes("VmSwap").unwrap_or(0),
            page_table_bytes: bytes("VmPTE").unwrap_or(0),
            reserved_huge_bytes: bytes("HugetlbPages").unwrap_or(0),
            most_rss_bytes: bytes("VmHWM").unwrap_or(0),
        })
    }

    /// Resident memory of all three kinds.
    pub fn rss_bytes(&self) -> u64 {
        [self.anonymous_bytes, self.file_bytes, self.shared_memory_bytes]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_anonymous_memory_and_files() {
        let own = ResidentCounters::of_process(std::process::id()).unwrap();
        assert!(own.anonymous_bytes > 0 && own.file_bytes > 0 && own.page_table_bytes > 0);
        assert_eq!(ResidentCounters::of_process(u32::MAX), None);
    }

    #[test]
    fn a_thread_of_the_kernel_has_none() {
        let status = Fields::parse(b"Name:\tkthreadd\nThreads:\t1\n");
        assert_eq!(ResidentCounters::from_status(&status), None);
    }
}
