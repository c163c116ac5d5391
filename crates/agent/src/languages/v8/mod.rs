//! Frames of JavaScript that V8 runs.
//!
//! ```text
//! native stack                     words at its frame pointer         recorded
//! [malloc's caller]                                                   [malloc's caller]
//! [node::Buffer::New]                                                 [node::Buffer::New]
//! [JIT code]                  -->  function, code: three in one       read:41, each:12, main:60
//! [interpreter's entry]       -->  function, instruction              (top level):3
//! [JSEntry]                                                           [JSEntry]
//! ```
//!
//! Each JavaScript frame is a native one, and its words are found by its frame pointer.  They
//! include the function. The instruction is there, too, if the interpreter runs; for JIT code it is
//! in the code's tables. A frame whose name is found replaces its native one; builtins and frames
//! that are not found stay as they are.
//!
//! Objects move. The data to which a frame points is read at each event, and compared with the
//! cached words.

mod bytecode_sizes;
mod cached_frames;
mod finding;
mod function;
mod heap;
pub(crate) mod layout;
mod made_code;
mod translation;
mod variable_bytes;

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use heapr_wire::LANGUAGE_JAVASCRIPT;

use crate::frames::frame::Start;
use crate::languages::level_cache;
use crate::languages::unknown;
use crate::languages::v8::cached_frames::CachedV8;
use crate::languages::verifying;
use crate::modules::interpreters::V8;
use crate::record::thread::{Scope, ScopeHandle};
use crate::stack;
use crate::stack::suffix_cache::found_base;
use crate::tree;

/// True if a V8 with a known layout is found that was not there before.
pub(super) fn look() -> bool {
    let major = V8.major.load(Acquire);
    if major == 0 && V8.is_hidden.swap(0, Acquire) != 0 {
        unknown::note(LANGUAGE_JAVASCRIPT, 0);
    }
    if major == 0 || V8.is_seen.swap(1, Relaxed) != 0 {
        return false;
    }
    // SAFETY: two variables of V8, which its module exports under these names.
    let (major, minor) =
        unsafe { ((major as *const u32).read(), (V8.minor.load(Relaxed) as *const u32).read()) };
    let version = (major & 0xff) << 8 | (minor & 0xff);
    match layout::find(version) {
        Some(layout) => {
            layout::choose(layout);
            true
        }
        None => {
            unknown::note(LANGUAGE_JAVASCRIPT, version);
            false
        }
    }
}

/// The node of the stack that begins at `start`, with the frames of JavaScript.
#[inline(never)]
pub(super) fn node(handle: ScopeHandle, pc: usize, sp: usize, bp: usize, native: u32) -> u32 {
    let (scope, start) = (&mut *handle.scope(), Start { pc, sp, bp });
    let Some(layout) = layout::chosen().filter(|_| native != tree::ROOT) else { return native };
    // SAFETY: all zero is an empty cache, the only one of a process with V8.
    let Some(kept) = (unsafe { level_cache::of_level::<CachedV8>(scope) }) else { return native };
    if kept.has_none(native) {
        return native;
    }
    // If the inner frames are not the cached ones, the outer ones may suffice.
    let base = found_base(&scope.level().kept, start, native);
    let hash = base.and_then(|base| kept.hash_from(scope, layout, (native, base)));
    if let Some(hash) = hash {
        if verifying::is_due(scope) {
            settle(scope, start, native);
            kept.forget();
            kept.follow(scope, layout, native);
            verifying::count(hash, kept.frames.hash());
        }
        if let Ok(node) = kept.frames.pairs.find(native, hash) {
            return node;
        }
    }
    settle(scope, start, native);
    kept.follow(scope, layout, native);
    if kept.frames.hash() != 0 && verifying::is_due(scope) {
        let hash = kept.frames.hash();
        kept.forget();
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

/// Makes the cached native frames those of the stack, with their hashes.
fn settle(scope: &mut Scope, start: Start, native: u32) {
    stack::settle(scope, start, native);
    scope.level().kept.settle_hashes();
}
