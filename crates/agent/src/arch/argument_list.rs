//! Variable arguments of a call: words without a number, after one named word.
//!
//! The registers that hold the first ones are spilled to the stack. The others lie where the caller
//! has put them, above a return address if the call has pushed one:
//!
//! ```text
//! registers behind the named word's    arguments 0 to n - 1    --> spilled [0..n]
//! the caller's stack                   arguments n and on      --> as they lie
//! ```

use core::ffi::c_char;

use super::LISTED_IN_REGISTERS;

/// Words of such a list, in two parts, as the folders' `list_entries` pass them.
pub(crate) type Words = *const *const c_char;

/// The variable arguments of a call, which are strings or null.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArgumentList {
    pub(crate) spilled: Words,
    pub(crate) above: Words,
}

impl ArgumentList {
    /// Returns word `index` of the list.
    ///
    /// # Safety
    /// 1. The call passed a word of this index.
    pub(crate) unsafe fn word(self, index: usize) -> *const c_char {
        // SAFETY: (1); the spilled words are those of the registers, the others lie above.
        unsafe {
            match index.checked_sub(LISTED_IN_REGISTERS) {
                None => *self.spilled.add(index),
                Some(above) => *self.above.add(above),
            }
        }
    }
}
