//! Where the code of the allocators is, and of what they call.

/// Where the allocators' code lies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AllocatorCode {
    /// Code of the allocators (start and end): a thread in it is at allocating or freeing.
    pub(crate) allocator_ranges: Vec<(u64, u64)>,
    /// Code of the modules that allocators call; the C library's first.
    pub(crate) library_ranges: Vec<(u64, u64)>,
    /// Where a thread waits for a lock of the C library's own, if that can be told.
    pub(crate) private_lock_range: Option<(u64, u64)>,
    /// An allocator is hooked that is not the C library's, and may wait in any way.
    pub(crate) has_other: bool,
}

/// Whether one of the ranges holds an address.
pub(crate) fn is_in(ranges: &[(u64, u64)], address_avma: u64) -> bool {
    ranges.iter().any(|&(start, end)| (start..end).contains(&address_avma))
}
