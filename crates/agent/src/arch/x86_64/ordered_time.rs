//! Orders memory accesses and readings of the time, which the processor may reorder.

use core::arch::asm;

/// A zero that is known only once a time was read. A load from an address to which it is added is
/// done after that reading.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Late(usize);

impl Late {
    /// Makes the zero of the reading `ticks`.
    #[inline(always)]
    pub(crate) fn than(ticks: u64) -> Self {
        let highest_bit;
        // SAFETY: shifts a register. The compiler must not know the result, or it would remove the
        // dependency. Flags are changed, as is allowed without `preserves_flags`.
        unsafe {
            asm!("shr {bit}, 63", bit = inout(reg) ticks => highest_bit, options(pure, nomem, nostack));
        }
        Self(highest_bit)
    }

    /// Returns 0 while a time has its highest bit clear (for a century after the counter's start),
    /// and 1 after that; no other value.
    #[inline(always)]
    pub(crate) fn none(self) -> usize {
        self.0
    }
}

/// Waits until all earlier loads, and atomic exchanges, are done.
#[inline(always)]
pub(crate) fn wait_for_loads() {
    // SAFETY: an instruction that every x86-64 has, and that changes nothing.
    unsafe { asm!("lfence", options(nostack, preserves_flags)) };
}
