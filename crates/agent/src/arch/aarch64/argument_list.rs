//! Variable arguments of a call: words without a number, after one named word.
//!
//! The registers that hold the first seven are spilled to the stack; the others lie at the caller's
//! stack pointer:
//!
//! ```text
//! x0                  the named word
//! x1 to x7            arguments 0 to 6      --> spilled [0..7]
//! [sp], [sp + 8], …   arguments 7 and on    --> as they lie
//! ```

use core::ffi::c_char;

/// Number of arguments that the registers hold.
const SPILLED: usize = 7;

/// Words of such a list, in two parts, as [`super::entries::list_entries`] passes them.
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
        // SAFETY: (1); the spilled words are the first seven, the others lie at the caller's stack
        // pointer.
        unsafe {
            match index.checked_sub(SPILLED) {
                None => *self.spilled.add(index),
                Some(above) => *self.above.add(above),
            }
        }
    }
}
