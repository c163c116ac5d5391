//! The end of the program's data (the program break), as the C library stores it. The library's
//! allocator moves it without a function that could be hooked.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::modules::dynamic_section::Dynamic;

/// Address of the C library's variable (`__curbrk`); 0: not known.
static PLACE: AtomicUsize = AtomicUsize::new(0);

/// Notes the variable's address, if this new module defines it.
pub(crate) fn note(dynamic: &Dynamic) {
    if PLACE.load(Relaxed) == 0
        && let Some((place, _)) = dynamic.find_object(b"__curbrk")
    {
        PLACE.store(place, Relaxed);
    }
}

/// Returns the current end of the data; 0 if it is not known.
#[inline(always)]
pub(crate) fn end() -> usize {
    match PLACE.load(Relaxed) {
        0 => 0,
        // SAFETY: a variable of the C library, which is never unloaded.
        place => unsafe { (place as *const usize).read_volatile() },
    }
}
