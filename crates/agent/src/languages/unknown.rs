//! An interpreter whose frames are not read because its version is unknown. It is stored until it
//! can be reported to the recorder, once.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::record::events;
use crate::record::thread::Scope;

/// Language and version; 0: no interpreter that must be reported.
static UNTOLD: AtomicU64 = AtomicU64::new(0);

/// Notes such an interpreter; the next stack's event reports it.
pub(crate) fn note(language: u8, version: u32) {
    UNTOLD.store(u64::from(language) << 32 | u64::from(version.max(1)), Relaxed);
}

pub(crate) fn is_noted() -> bool {
    UNTOLD.load(Relaxed) != 0
}

/// Tells the recorder, if an interpreter was noted.
#[cold]
#[inline(never)]
pub(crate) fn tell(scope: &mut Scope) {
    let untold = UNTOLD.swap(0, Relaxed);
    if untold != 0 {
        events::language_unknown(scope, untold);
    }
}
