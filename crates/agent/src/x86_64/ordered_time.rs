//! Memory accesses in an order with reading the time, which the processor does not keep by itself.

use core::arch::asm;

/// Nothing, known only once a time was read: an address to which it is added is loaded from after
/// that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Late(usize);

impl Late {
    /// After `ticks` was read.
    #[inline(always)]
    pub(crate) fn than(ticks: u64) -> Self {
        let highest_bit;
        // SAFETY: shifts a register. The compiler must not know what becomes of it, or it would
        // leave it out. Flags are changed, as is allowed without `preserves_flags`.
        unsafe {
            asm!("shr {bit}, 63", bit = inout(reg) ticks => highest_bit, options(pure, nomem, nostack));
        }
        Self(highest_bit)
    }

    /// 0 as long as a time has its highest bit clear (for a century after the counter's start), and
    /// 1 after that; nothing else.
    #[inline(always)]
    pub(crate) fn none(self) -> usize {
        self.0
    }
}

/// Goes on when all loads before, and atomic exchanges, are done.
#[inline(always)]
pub(crate) fn wait_for_loads() {
    // SAFETY: an instruction that every x86-64 has, and that changes nothing.
    unsafe { asm!("lfence", options(nostack, preserves_flags)) };
}
