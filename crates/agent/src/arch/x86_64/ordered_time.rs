//! Orders memory accesses and readings of the time, which the processor may reorder.
//!
//! x86-64 does loads in program order, and stores are seen in program order. `rdtscp`, the ordered
//! reading, waits for all earlier loads. `rdtsc`, the unordered one, may be done before them or
//! after later ones. It takes 10 ns in place of 20. The event clock's proof needs no more.

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

/// Orders earlier stores before a reading of the time that follows: other processors see a thread's
/// event as begun before it has its time. Here stores are seen in program order, so that only the
/// compiler must keep it.
#[inline(always)]
pub(crate) fn keep_stores_before_time() {
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
}

/// Number of ticks that the unordered reading saves for each word of a record: 9 ns an event, which
/// are 23 ticks at 2.6 GHz. An allocation has two words and a free has one.
pub(crate) const WORD_TICKS: u32 = 16;

/// Waits until all earlier loads, and atomic exchanges, are done.
#[inline(always)]
pub(crate) fn wait_for_loads() {
    // SAFETY: an instruction that every x86-64 has, and that changes nothing.
    unsafe { asm!("lfence", options(nostack, preserves_flags)) };
}
