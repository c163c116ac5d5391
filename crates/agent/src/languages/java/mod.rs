//! Frames of Java (and of other languages that a HotSpot virtual machine runs).
//!
//! ```text
//! native stack                        source                            recorded
//! [malloc's caller]                                                     [malloc's caller]
//! [Unsafe_AllocateMemory0]                                              [Unsafe_AllocateMemory0]
//! [call of a native method]      -->  its method                        allocateMemory0
//! [compiled method]              -->  its metadata about the call:      allocateMemory:632
//!                                     the inlined methods               work:41
//! [interpreter]                  -->  method, instruction               main:60
//! [code of the machine's own]         left out
//! [JavaCalls::call_helper]                                              [JavaCalls::call_helper]
//! ```
//!
//! Each Java frame is a native one ([`crate::modules::java_code`] has its unwind rule). The data to
//! which the frame points is read at each event: code is freed, and other code is made at its
//! address.

mod cached_frames;
mod inlined;
mod line_numbers;
mod method;
mod small_numbers;

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use heapr_wire::LANGUAGE_JAVA;

use crate::frames::frame::Start;
use crate::languages::java::cached_frames::{CachedJava, Followed};
use crate::languages::{level_cache, unknown, verifying};
use crate::modules;
use crate::modules::interpreters::JAVA;
use crate::modules::java_layout::{self, Layout};
use crate::record::thread::Scope;
use crate::stack;
use crate::tree;

/// Largest number of times that a stack is unwound anew because code has changed.
const TRIES: usize = 3;

/// True if a virtual machine is found that was not there before. (Whether its layout is known shows
/// only once it runs.)
pub(super) fn look() -> bool {
    JAVA.structs.load(Acquire) != 0 && JAVA.is_seen.swap(1, Relaxed) == 0
}

/// Returns the node of the stack that begins at `start`, with the Java frames.
pub(super) fn node(scope: &mut Scope, start: Start, native: u32) -> u32 {
    let Some(layout) = Layout::known().filter(|_| native != tree::ROOT) else {
        if Layout::is_unknown() {
            unknown::note(LANGUAGE_JAVA, java_layout::version_of_process() << 8);
            super::tell_unknown(scope);
        }
        return native;
    };
    // SAFETY: all zero is an empty cache, the only one of a Java process.
    let Some(kept) = (unsafe { level_cache::of_level::<CachedJava>(scope) }) else { return native };
    let Some(native) = follow(scope, kept, layout, start, native) else { return native };
    let hash = kept.frames.hash();
    if hash != 0 && verifying::is_due(scope) {
        kept.forget_answers();
        kept.follow(scope, layout, native);
        verifying::count(hash, kept.frames.hash());
    }
    let hash = kept.frames.hash();
    match kept.frames.pairs.find(native, hash) {
        Ok(node) => node,
        Err(pair) => {
            // SAFETY: no code here changes the cached stack.
            let natives = unsafe { level_cache::natives(scope) };
            kept.frames.join(natives, pair).unwrap_or(native)
        }
    }
}

/// Finds the Java frames of a stack, and returns its native node, which is another one if code has
/// changed since its rules were found. Returns `None` if there are no Java frames.
#[inline(always)]
fn follow(
    scope: &mut Scope,
    kept: &mut CachedJava,
    layout: &'static Layout,
    start: Start,
    mut native: u32,
) -> Option<u32> {
    for _ in 0..TRIES {
        // Other code may stand for methods.
        kept.frames.enters_epoch();
        if kept.frames.has_none(native) {
            return None;
        }
        stack::settle(scope, start, native);
        match kept.follow(scope, layout, native) {
            Followed::Found => return Some(native),
            Followed::None => return None,
            Followed::CodeHasChanged => {
                modules::forget_code();
                native = stack::capture(scope, start);
            }
        }
    }
    None
}
