//! The table of embedded allocators' functions that are hooked.

use core::sync::atomic::Ordering::Relaxed;

use heapr_wire::{INNER_FUNCTIONS, InnerFunction};

/// Functions that the injector has hooked; the injector fills in the table.
pub(crate) static FUNCTIONS: [InnerFunction; INNER_FUNCTIONS] =
    [const { InnerFunction::free() }; INNER_FUNCTIONS];

/// True if any function is hooked.
pub(crate) fn is_any_known() -> bool {
    FUNCTIONS.iter().any(|function| function.real.load(Relaxed) != 0)
}
