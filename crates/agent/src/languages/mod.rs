//! Frames of the languages in which a program is written, among the native frames of its stacks.
//!
//! ```text
//! native stack            frames of the language      what is recorded
//! [malloc's caller]                                   [malloc's caller]
//! [evaluate]         <--  features:41, <module>:60    features:41
//!                                                     <module>:60
//!                                                     [evaluate]
//! [main]                                              [main]
//! ```
//!
//! The agent runs none of the program's code for this. It reads the interpreter's structures for
//! the thread that is in the hook, so that they do not change in the meantime. Programs without
//! such a language never come here. A process has the frames of one language: the first that is
//! found.

mod answers;
pub(crate) mod code_table;
mod copied_memory;
#[cfg(test)]
mod documented;
mod given_back;
mod java;
mod joined;
mod joined_runs;
mod level_cache;
mod native_frames;
mod pairs;
mod path;
pub(crate) mod python;
mod readable;
mod text;
mod unknown;
pub(crate) mod v8;
mod verifying;
mod walked;

pub(crate) use given_back::{any_memory_goes, memory_goes};

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use heapr_wire::{FLAG_NO_LANGUAGES, PACKED_SIZE_MAX};

use crate::frames::frame::Start;
use crate::record::thread::{Scope, ScopeHandle};
use crate::state::{AGENT, own_stack};

/// Language whose frames are read.
static SPOKEN: AtomicU32 = AtomicU32::new(NONE);
const NONE: u32 = 0;
const PYTHON: u32 = 1;
const JAVASCRIPT: u32 = 2;
const WALKED: u32 = 3;
const JAVA: u32 = 4;

/// Checks whether a new module contains an interpreter.
pub(crate) fn look() {
    let is_wanted =
        AGENT.pool().is_some_and(|pool| pool.control().flags.load(Relaxed) & FLAG_NO_LANGUAGES == 0);
    if !is_wanted || SPOKEN.load(Relaxed) != NONE {
        return;
    }
    let found = if python::look() {
        PYTHON
    } else if v8::look() {
        JAVASCRIPT
    } else if java::look() {
        JAVA
    } else if walked::look() {
        WALKED
    } else {
        NONE
    };
    if found != NONE {
        // The first language stays: the cache of a level is of one language, and other threads may
        // use it already.
        let _ = SPOKEN.compare_exchange(NONE, found, Relaxed, Relaxed);
    }
    if found != NONE || unknown::is_noted() {
        AGENT.plain_bytes_end.store(0, Relaxed);
    }
}

/// True if there may be language frames to add.
#[inline(always)]
pub(crate) fn are_spoken() -> bool {
    AGENT.plain_bytes_end.load(Relaxed) == 0
}

/// True if a language's frames lie in blocks of the allocator. The program may resize those blocks,
/// so the frames are read before the call.
#[inline(always)]
pub(crate) fn are_in_blocks() -> bool {
    are_spoken() && SPOKEN.load(Relaxed) == WALKED
}

/// Fast path of [`whole_stack`] if no stack is verified; must return the same node (heapr's tests
/// `scripts` and `python` compare both).
///
/// (Its arguments are in registers: see [`stack::capture`].)
#[inline(never)]
pub(crate) fn whole_stack_plainly(handle: ScopeHandle, pc: usize, sp: usize, bp: usize, native: u32) -> u32 {
    let mut scope = handle.scope();
    let start = Start { pc, sp, bp };
    match SPOKEN.load(Relaxed) {
        PYTHON if python::is_known() && is_roomy(&mut scope, start) => {
            joined::node_plainly(handle, pc, sp, bp, native)
        }
        WALKED if walked::has_none(&mut scope, native) => native,
        WALKED if is_roomy(&mut scope, start) => walked::node(handle, (pc, sp, bp), native),
        JAVASCRIPT if is_roomy(&mut scope, start) => v8::node(handle, pc, sp, bp, native),
        _ => whole_stack_of(handle, pc, sp, bp, native),
    }
}

#[inline(never)]
fn whole_stack_of(handle: ScopeHandle, pc: usize, sp: usize, bp: usize, native: u32) -> u32 {
    whole_stack(&mut handle.scope(), Start { pc, sp, bp }, native)
}

/// Returns the node of the stack that begins at `start`, whose native frames have the node
/// `native`.
#[inline(never)]
pub(crate) fn whole_stack(scope: &mut Scope, start: Start, native: u32) -> u32 {
    if is_roomy(scope, start) {
        whole_stack_here(scope, start, native)
    } else {
        own_stack::run(|| whole_stack_here(scope, start, native))
    }
}

/// True if the program's stack has room for the reading of language frames. Stacks of interpreters
/// are large, and few instructions per event decide this.
#[inline(always)]
fn is_roomy(scope: &mut Scope, start: Start) -> bool {
    const ROOM_BYTES: usize = 64 << 10;
    let own = scope.state().ranges.own();
    own.contains(start.sp) && start.sp.wrapping_sub(own.low) > ROOM_BYTES
}

fn whole_stack_here(scope: &mut Scope, start: Start, native: u32) -> u32 {
    let Start { pc, sp, bp } = start;
    match SPOKEN.load(Relaxed) {
        PYTHON if python::is_known() => joined::node::<false>(scope, start, native),
        JAVASCRIPT => v8::node(scope.handle(), pc, sp, bp, native),
        JAVA => java::node(scope, start, native),
        WALKED => walked::node(scope.handle(), (pc, sp, bp), native),
        _ => {
            tell_unknown(scope);
            native
        }
    }
}

/// Announces an interpreter whose frames are not read, and stops all further calls for language
/// frames.
#[cold]
#[inline(never)]
fn tell_unknown(scope: &mut Scope) {
    unknown::tell(scope);
    AGENT.plain_bytes_end.store(PACKED_SIZE_MAX.wrapping_add(1), Relaxed);
}
