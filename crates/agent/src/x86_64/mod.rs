//! What depends on the processor: unwinding, trampolines, the thread pointer.

mod byte_reader;
mod call_frame;
mod expression;
pub(crate) mod full;
mod rule;
mod signal_return;
#[cfg(test)]
mod tests;
pub(crate) mod thread_pointer;
pub(crate) mod trampolines;

pub use byte_reader::SEGMENTS_MAX;
pub use call_frame::EhFrameHdr;
pub use rule::{Rule, Step, rule_for};

/// Fetches the cache line at `address`, which need not be mapped.
#[inline(always)]
pub(crate) fn prefetch(address: *const u8) {
    // SAFETY: a prefetch never faults.
    unsafe { core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast()) };
}
