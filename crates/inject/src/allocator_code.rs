//! Code ranges of the allocators and of the functions that they call.

/// Code ranges that matter for stopping threads outside of the allocators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AllocatorCode {
    /// Code of the allocators (start and end): a thread in it is allocating or freeing.
    pub(crate) allocator_ranges: Vec<(u64, u64)>,
    /// Code of the modules that allocators call; the C library's first.
    pub(crate) library_ranges: Vec<(u64, u64)>,
    /// Function of the C library in which a thread waits for an internal lock, if known.
    pub(crate) private_lock_range: Option<(u64, u64)>,
    /// Whether an allocator other than the C library's is hooked, which may wait in any way.
    pub(crate) has_other: bool,
}

/// True if one of the ranges contains an address.
pub(crate) fn is_in(ranges: &[(u64, u64)], address_avma: u64) -> bool {
    ranges.iter().any(|&(start, end)| (start..end).contains(&address_avma))
}
