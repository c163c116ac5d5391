//! Orders memory accesses and readings of the time, which the processor may reorder.
//!
//! The processor reorders loads and stores with each other and with readings of the counter.
//! Barriers stand where x86-64 needs none; see `docs/decisions/0028-second-processor.md`, rows 1
//! and 2.

use core::arch::asm;

/// A zero that is known only once a time was read. A load from an address to which it is added is
/// done after that reading (address dependency). That load is also done after all loads before it
/// (barrier). Without that the owner of a region could be read before the load that led to the
/// event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Late(usize);

impl Late {
    /// Makes the zero of the reading `ticks`.
    #[inline(always)]
    pub(crate) fn than(ticks: u64) -> Self {
        let highest_bit;
        // SAFETY: shifts a register; the barrier changes nothing. The compiler must not know the
        // result, or it would remove the dependency.
        unsafe {
            asm!(
                "lsr {bit}, {bit}, 63",
                "dmb ishld",
                bit = inout(reg) ticks => highest_bit,
                options(nostack, preserves_flags)
            );
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

/// Orders earlier stores before a reading of the time that follows: other processors see a thread's
/// event as begun before it has its time.
#[inline(always)]
pub(crate) fn keep_stores_before_time() {
    // SAFETY: barriers, which change nothing.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}

/// Number of ticks that the unordered reading saves for each word of a record. The counter has some
/// 25 to 1,000 MHz, so that a saving is less than a tick on most machines.
pub(crate) const WORD_TICKS: u32 = 1;

/// Waits until all earlier loads, and atomic exchanges, are done.
#[inline(always)]
pub(crate) fn wait_for_loads() {
    // SAFETY: barriers, which change nothing.
    unsafe { asm!("dsb ishld", "isb", options(nostack, preserves_flags)) };
}
