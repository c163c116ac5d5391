//! An agent that is switched off from the start takes its names back.
//!
//! ```text
//!                  looked up before             looked up from then on
//! program's call   trampoline -> C library      C library
//! ```
//!
//! The loader binds most calls where they are first made, which is after this: they go to the C
//! library as if there were no agent. What is bound when the program is loaded (`-z now`), or was
//! called before, goes on through a trampoline. Only the agent's own table of symbols is changed,
//! and only while no other thread exists that could be looking something up in it: an agent that
//! ends later leaves it as it is.

use heapr_ring::sys;

use crate::hooks;
use crate::modules::dynamic_section::Symbol;
use crate::modules::link_map;

const PAGE_BYTES: usize = 4096;
const READ: usize = 1;
const READ_WRITE: usize = 3;

/// Hides the agent's definitions of what is only passed on. Called where the agent starts, once
/// every trampoline leads to the real function.
///
/// What cannot be done is left: the trampolines do the same, three instructions later.
#[cold]
pub(crate) fn step_aside() {
    let Some(agent) = link_map::agent() else { return };
    let (mut first, mut last) = (usize::MAX, 0);
    hooks::for_each_bypassed(&mut |name| {
        if let Some(entry) = agent.find_entry(name) {
            first = first.min(entry as usize);
            last = last.max(entry as usize);
        }
    });
    if first > last {
        return;
    }
    let start = first & !(PAGE_BYTES - 1);
    let end = (last.wrapping_add(size_of::<Symbol>() - 1) | (PAGE_BYTES - 1)).wrapping_add(1);
    let bytes = end.wrapping_sub(start);
    // SAFETY: pages of the agent's own, with its table of symbols, which stay readable.
    if unsafe { sys::protect(start, bytes, READ_WRITE) }.is_err() {
        return;
    }
    hooks::for_each_bypassed(&mut |name| {
        if let Some(entry) = agent.find_entry(name) {
            let entry = entry.cast_mut();
            // SAFETY: in the pages above, which nobody else reads now. Without section and value an
            // entry refers to a name instead of defining it, and every loader goes on to the next
            // module; hashes and names stay as they are.
            unsafe {
                (*entry).section = 0;
                (*entry).value = 0;
            }
        }
    });
    // SAFETY: as above; nothing writes there any more.
    let _ = unsafe { sys::protect(start, bytes, READ) };
}
