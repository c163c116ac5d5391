//! Memory that the resident set does not count.

use heapr_known::machine::HERE;
use heapr_proc::ResidentCounters;
use heapr_proc::smaps::PageAmounts;

/// Memory that a process costs beside its resident set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beside {
    /// Swapped bytes.
    pub swapped_bytes: u64,
    /// Bytes of page tables.
    pub page_table_bytes: u64,
    /// Bytes of the kernel's stacks for the process's threads.
    pub kernel_stack_bytes: u64,
    /// Bytes of reserved huge pages (hugetlbfs).
    pub reserved_huge_bytes: u64,
    /// Resident pages of files, as the kernel counts them; the greatest number, if that is unknown.
    pub file_bytes: u64,
    /// Number of threads.
    pub threads: u64,
}

impl Beside {
    /// Combines the sums over the mappings, the kernel's counters, and the number of threads.
    pub fn of(pages: &PageAmounts, counters: Option<&ResidentCounters>, threads: u64) -> Self {
        let counter = |of: fn(&ResidentCounters) -> u64| counters.map_or(0, of);
        Self {
            swapped_bytes: pages.swapped_bytes.max(counter(|counters| counters.swapped_bytes)),
            page_table_bytes: counter(|counters| counters.page_table_bytes),
            kernel_stack_bytes: threads.saturating_mul(HERE.kernel_stack_bytes),
            reserved_huge_bytes: pages
                .reserved_huge_bytes
                .max(counter(|counters| counters.reserved_huge_bytes)),
            file_bytes: counters.map_or(u64::MAX, |counters| counters.file_bytes),
            threads,
        }
    }
}
