//! The table of functions that are hooked inside of the program.

use core::sync::atomic::Ordering::Relaxed;

use heapr_wire::{INNER_FUNCTIONS, InnerFunction};

/// For the injector: what it has hooked.
pub(crate) static FUNCTIONS: [InnerFunction; INNER_FUNCTIONS] =
    [const { InnerFunction::free() }; INNER_FUNCTIONS];

/// Whether anything is hooked.
pub(crate) fn is_any_known() -> bool {
    FUNCTIONS.iter().any(|function| function.real.load(Relaxed) != 0)
}
