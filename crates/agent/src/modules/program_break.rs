//! The end of the program's data, as the C library keeps it: its allocator moves it without a
//! function that could be hooked.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::modules::dynamic_section::Dynamic;

/// Where it is kept (`__curbrk`); 0: nowhere that is known.
static PLACE: AtomicUsize = AtomicUsize::new(0);

/// Looks at a module that has turned up.
pub(crate) fn note(dynamic: &Dynamic) {
    if PLACE.load(Relaxed) == 0
        && let Some((place, _)) = dynamic.find_object(b"__curbrk")
    {
        PLACE.store(place, Relaxed);
    }
}

/// Where the data ends now; 0: it is not known.
#[inline(always)]
pub(crate) fn end() -> usize {
    match PLACE.load(Relaxed) {
        0 => 0,
        // SAFETY: a variable of the C library, which is never unloaded.
        place => unsafe { (place as *const usize).read_volatile() },
    }
}
