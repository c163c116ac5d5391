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

use crate::frames::frame::{Frame, Start};
use crate::languages::java::cached_frames::{CachedJava, Followed};
use crate::languages::path::Path;
use crate::languages::{unknown, verifying};
use crate::modules;
use crate::modules::interpreters::JAVA;
use crate::modules::java_layout::{self, Layout};
use crate::record::thread::Scope;
use crate::stack;
use crate::state::AGENT;
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
    if scope.level().language.is_null() {
        scope.level().language = CachedJava::allocate().cast();
    }
    // SAFETY: null, or a mapping of this level alone, which is never unmapped.
    let Some(kept) = (unsafe { scope.level().language.cast::<CachedJava>().as_mut() }) else {
        AGENT.count(|slot| &slot.stacks_lost);
        return native;
    };
    let Some(native) = follow(scope, kept, layout, start, native) else { return native };
    if kept.hash() != 0 && verifying::is_due(scope) {
        let hash = kept.hash();
        kept.forget_answers();
        kept.follow(scope, layout, native);
        verifying::count(hash, kept.hash());
    }
    match kept.pairs.find(native, kept.hash()) {
        Ok(node) => node,
        Err(pair) => build(scope, kept, native, pair),
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
        if kept.has_none(native) {
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

/// Joins the frames of both stacks, and makes the node.
#[cold]
#[inline(never)]
fn build(scope: &mut Scope, kept: &mut CachedJava, native: u32, pair: u64) -> u32 {
    let native_kept = &scope.level().kept;
    // SAFETY: `depth` frames are cached, and no code here changes them.
    let natives: &[Frame] = unsafe { core::slice::from_raw_parts(native_kept.frames, native_kept.depth) };
    let mut path = Path::of_frames(kept.whole_depth(natives.len()));
    let mut frames = kept.frames().iter().peekable();
    for (index, frame) in natives.iter().enumerate() {
        match frames.next_if(|frame| frame.index as usize == index) {
            // Plus one, like a return address, which lies after its call.
            Some(frame) => kept.places_of(frame).iter().for_each(|place| path.add(place.wrapping_add(1))),
            None => path.add(frame.pc as u64),
        }
    }
    let Some(node) = path.finish(pair) else { return native };
    kept.pairs.keep(pair, node);
    node
}
