//! The program at the entry of a hooked function.

use super::unsigned;

/// Stack pointer at entry, and the return address, which the call has left in x30. Entry points
/// pass it to hooks as two words.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Entry {
    sp: usize,
    return_address: usize,
}

impl Entry {
    /// Makes the entry of a call with this stack pointer and return address.
    pub(super) fn of(sp: usize, return_address: usize) -> Self {
        Self { sp, return_address }
    }

    /// Returns the stack pointer at entry.
    #[inline(always)]
    pub(crate) fn sp(self) -> usize {
        self.sp
    }

    /// Returns the stack pointer of the caller, once the call has returned.
    #[inline(always)]
    pub(crate) fn sp_after_return(self) -> usize {
        self.sp
    }

    /// Returns the address at which the caller continues.
    ///
    /// # Safety
    /// 1. The call has not returned: the frame of its caller still exists.
    #[inline(always)]
    pub(crate) unsafe fn return_avma(self) -> usize {
        unsigned(self.return_address)
    }
}
