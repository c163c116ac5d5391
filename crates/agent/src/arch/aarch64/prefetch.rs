//! Prefetching memory that is about to be read.

use core::arch::asm;

/// Begins to load the cache line of an address into the caches. Any address is allowed, and the
/// program sees no access.
#[inline(always)]
pub(crate) fn prefetch(address: usize) {
    // SAFETY: an instruction that neither faults nor changes anything.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly)) };
}
