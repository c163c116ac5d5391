//! Takes the agent's names out of its symbol table if the agent is switched off from the start.
//!
//! ```text
//!                  looked up before             looked up from then on
//! program's call   trampoline -> C library      C library
//! ```
//!
//! The loader binds most calls when they are first made, which is after this. They go to the C
//! library as if there were no agent. Calls that are bound when the program is loaded (`-z now`),
//! or were made before, still go through a trampoline. Only the agent's own symbol table is
//! changed, and only while no other thread exists that could search it. An agent that ends later
//! leaves the table unchanged.

use heapr_ring::pages::{page_begin, page_end};
use heapr_ring::sys;

use crate::hooks;
use crate::modules::dynamic_section::Symbol;
use crate::modules::link_map;

const READ: usize = 1;
const READ_WRITE: usize = 3;

/// Hides the agent's definitions of functions that are only passed on. Called when the agent
/// starts, once every trampoline leads to the real function.
///
/// If a step fails, the table stays as it is: the trampolines do the same, three instructions
/// later.
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
    let start = page_begin(first);
    let end = page_end(last.wrapping_add(size_of::<Symbol>()));
    let bytes = end.wrapping_sub(start);
    // SAFETY: pages of the agent's own, with its symbol table, which stay readable.
    if unsafe { sys::protect(start, bytes, READ_WRITE) }.is_err() {
        return;
    }
    hooks::for_each_bypassed(&mut |name| {
        if let Some(entry) = agent.find_entry(name) {
            let entry = entry.cast_mut();
            // SAFETY: in the pages above, which no other thread reads at this time. Without section
            // and value an entry refers to a name instead of defining it, and every loader
            // continues with the next module. Hashes and names are unchanged.
            unsafe {
                (*entry).section = 0;
                (*entry).value = 0;
            }
        }
    });
    // SAFETY: as above; no code writes there after this.
    let _ = unsafe { sys::protect(start, bytes, READ) };
}
