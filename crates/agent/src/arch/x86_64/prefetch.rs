//! Prefetching memory that is about to be read.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Begins to load the cache line of an address into the caches. Any address is allowed, and the
/// program sees no access.
#[inline(always)]
pub(crate) fn prefetch(address: usize) {
    // SAFETY: an instruction that every x86-64 has, and that neither faults nor changes anything.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::without_provenance(address)) };
}
