//! Memory that is about to be read.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Begins to pull the cache line of an address into the caches; any address will do, and nothing is
/// read.
#[inline(always)]
pub(crate) fn prefetch(address: usize) {
    // SAFETY: an instruction that every x86-64 has, and that neither faults nor changes anything.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::without_provenance(address)) };
}
