//! Memory accesses in an order with reading the time, which the processor does not keep by itself.

use core::arch::asm;
use core::sync::atomic::AtomicU64;

/// Loads a word after `ticks` was read: its address depends on them, by nothing (the highest bit of a time is 0).
///
/// A time with that bit set (a century after the counter's start) loads the eight bytes behind the word instead.
#[inline(always)]
pub(crate) fn load_after(word: &AtomicU64, ticks: u64) -> u64 {
    let value: u64;
    // SAFETY: reads the word, or the one behind it, which the caller keeps there (`EventClock`); an aligned load of eight bytes is
    // atomic, and loads keep their order on x86-64. Flags are changed, as is allowed without `preserves_flags`.
    unsafe {
        asm!(
            "shr {index}, 63",
            "mov {value}, qword ptr [{word} + {index} * 8]",
            word = in(reg) core::ptr::from_ref(word),
            index = inout(reg) ticks => _,
            value = lateout(reg) value,
            options(nostack, readonly),
        );
    }
    value
}

/// Goes on when all loads before, and atomic exchanges, are done.
#[inline(always)]
pub(crate) fn wait_for_loads() {
    // SAFETY: an instruction that every x86-64 has, and that changes nothing.
    unsafe { asm!("lfence", options(nostack, preserves_flags)) };
}
