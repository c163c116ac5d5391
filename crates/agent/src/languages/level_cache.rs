//! The cache of a thread's level, for the language of the process.

use heapr_ring::sys;

use crate::frames::frame::Frame;
use crate::record::thread::Scope;
use crate::state::AGENT;

/// Returns the level's cache, which is mapped at its first use. `None` without memory: the stack
/// counts as lost.
///
/// The mapping is wiped in a forked child, whose recorder's entry knows no functions yet.
///
/// # Safety
/// 1. All zero is a valid `T`, and no process has two types of caches.
/// 2. The caller has no other reference to the cache.
#[inline(always)]
pub(super) unsafe fn of_level<'a, T>(scope: &mut Scope) -> Option<&'a mut T> {
    if scope.level().language.is_null() {
        scope.level().language = allocate::<T>().cast();
    }
    // SAFETY: null, or a mapping of this level alone, which is never unmapped.
    let cache = unsafe { scope.level().language.cast::<T>().as_mut() };
    if cache.is_none() {
        AGENT.count(|slot| &slot.stacks_lost);
    }
    cache
}

#[cold]
fn allocate<T>() -> *mut T {
    sys::map_anonymous(size_of::<T>(), true).map_or(core::ptr::null_mut(), <*mut u8>::cast)
}

/// Returns the native frames of the level's cached stack, outermost first.
///
/// # Safety
/// 1. No code changes the cached stack while the slice is used.
#[inline(always)]
pub(super) unsafe fn natives<'a>(scope: &mut Scope) -> &'a [Frame] {
    let kept = &scope.level().kept;
    // SAFETY: `depth` frames are cached.
    unsafe { core::slice::from_raw_parts(kept.frames, kept.depth) }
}
