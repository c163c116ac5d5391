//! The frame that the trampolines of embedded allocators' functions make before they jump to one of
//! the two entries: [`super::all_registers_entry`] and [`super::light_entry`].
//!
//! ```text
//! caller's sp
//! return address (x30)               pushed by the trampoline with one `stp`
//! the function's Kept     <- sp
//! ```

use super::entry::Entry;

/// The frame's words, from the lowest address on, and the caller's frame pointer below them.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TrampolineFrame {
    bp: usize,
    _link: usize,
    function: usize,
    return_address: usize,
}

impl TrampolineFrame {
    /// Returns the address of the function's `Kept`.
    pub(crate) fn function(&self) -> usize {
        self.function
    }

    /// Returns the call's entry.
    pub(crate) fn entry(&self) -> Entry {
        Entry::of((&raw const *self).addr().wrapping_add(size_of::<Self>()), self.return_address)
    }

    /// Returns the caller's frame pointer register.
    pub(crate) fn bp(&self) -> usize {
        self.bp
    }
}

/// Returns the function's `Kept` of a call that came through one of the entries. Any other word:
/// the call has been left.
///
/// # Safety
/// 1. The stack at `entry_sp`, the stack pointer at the call's entry, may be read.
pub(crate) unsafe fn function_of_call(entry_sp: usize) -> usize {
    // SAFETY: (1).
    unsafe { *(entry_sp.wrapping_sub(16) as *const usize) }
}
