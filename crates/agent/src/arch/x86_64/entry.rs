//! The program at the entry of a hooked function.

/// Stack pointer at entry, where the call has stored the return address. Entry points pass it to
/// hooks as one word.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Entry(*const usize);

impl Entry {
    /// Makes the entry of a call whose return address is this word of the stack.
    pub(super) fn at(return_address: &usize) -> Self {
        Self(return_address)
    }

    /// Returns the stack pointer at entry.
    #[inline(always)]
    pub(crate) fn sp(self) -> usize {
        self.0 as usize
    }

    /// Returns the stack pointer of the caller, once the call has returned.
    #[inline(always)]
    pub(crate) fn sp_after_return(self) -> usize {
        self.sp().wrapping_add(8)
    }

    /// Returns the address at which the caller continues.
    ///
    /// # Safety
    /// 1. The call has not returned: the frame of its caller still exists.
    #[inline(always)]
    pub(crate) unsafe fn return_avma(self) -> usize {
        // SAFETY: (1): at entry the stack pointer points to the return address.
        unsafe { *self.0 }
    }
}
