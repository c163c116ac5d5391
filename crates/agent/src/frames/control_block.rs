//! A thread's id and stack from glibc's control block. The kernel provides both, too. But a program
//! may have forbidden itself the system calls (seccomp), and would then be killed at the first
//! event of its next thread.
//!
//! ```text
//! low                                   sp ------> frames        thread pointer            high
//! | guard |                             |                        | struct pthread, 2,304 bytes |
//! ```
//! Everything is verified. The id's location must have held the first thread's id. The two words
//! that describe the stack must enclose the stack pointer and the control block, which lies at the
//! top of the stack.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use heapr_known::glibc::{STACK_BOUNDS_NEAR, STACK_END_ABOVE};
use heapr_ring::pages::page_begin;
use heapr_ring::sys;

use crate::arch::thread_pointer;
use crate::frames::stack_range::StackRange;
use crate::modules::link_map;
use crate::state::AGENT;

/// Whether the control block is glibc's as described above.
static IS_KNOWN: AtomicBool = AtomicBool::new(false);

/// Upper end of the main thread's stack: `__libc_stack_end`; 0 if the C library does not export it.
static MAIN_HIGH: AtomicUsize = AtomicUsize::new(0);

/// Reads where the main thread's stack ends.
pub(crate) fn start() {
    start_with(link_map::find_anywhere(b"__libc_stack_end"));
}

/// Starts like [`start`], with the address of `__libc_stack_end`; 0 if it is not known.
pub(crate) fn start_with(variable_avma: usize) {
    let variable = variable_avma as *const usize;
    if !variable.is_null() {
        // SAFETY: glibc's loader exports this variable, a pointer to the program's argument block.
        MAIN_HIGH.store(unsafe { *variable }, Relaxed);
    }
}

/// Returns [`MAIN_HIGH`], which only glibc exports.
pub(crate) fn main_high() -> usize {
    MAIN_HIGH.load(Relaxed)
}

fn word(offset: usize) -> usize {
    // SAFETY: callers stay within glibc's `struct pthread` of the calling thread.
    unsafe { *(thread_pointer::thread_pointer().wrapping_add(offset) as *const usize) }
}

/// Identity of the calling thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    /// Id of the thread to which its events are attributed.
    pub(crate) thread_id: u32,
    pub(crate) is_main: bool,
    /// The kernel's id of the thread, as far as it is known, by which its death is found.
    pub(crate) kernel_id: u32,
    /// Whether the control block has this id, and the kernel clears it there when the thread has
    /// ended.
    pub(crate) is_in_block: bool,
    /// True if the thread belongs to another process, which shares this one's memory, and uses an
    /// unknown thread's state. Its events are attributed to the first thread, which lives longest.
    pub(crate) is_lent: bool,
}

/// Returns the id in the calling thread's control block; 0 if the C library is not glibc.
fn id_in_block() -> u32 {
    // SAFETY: only glibc exports where the main stack ends.
    if main_high() == 0 { 0 } else { unsafe { thread_pointer::id_in_control_block() } }
}

/// Returns the identity of the calling thread from its control block or the kernel. A child that
/// shares the memory (vfork, clone) has the block of its parent's thread.
pub(crate) fn identity() -> Identity {
    let process_id = AGENT.fork_local().map_or(0, |local| local.process_id.load(Relaxed));
    let in_block = id_in_block();
    if process_id != 0 && IS_KNOWN.load(Relaxed) && in_block != 0 {
        return of_block(in_block, process_id);
    }
    let (thread_id, asked_id) = (sys::thread_id(), sys::process_id());
    if process_id == 0 || asked_id == process_id || asked_id == 0 {
        learn(thread_id, asked_id);
        return Identity {
            thread_id,
            is_main: thread_id == asked_id,
            kernel_id: thread_id,
            is_in_block: in_block == thread_id,
            is_lent: false,
        };
    }
    if in_block != 0 && sys::process_exists(in_block) {
        return of_block(in_block, process_id);
    }
    Identity {
        thread_id: process_id,
        is_main: false,
        kernel_id: thread_id,
        is_in_block: false,
        is_lent: true,
    }
}

fn of_block(thread_id: u32, process_id: u32) -> Identity {
    Identity {
        thread_id,
        is_main: thread_id == process_id,
        kernel_id: thread_id,
        is_in_block: true,
        is_lent: false,
    }
}

/// Returns the identity of the first thread of a forked child, whose control block may still have
/// the parent's id (a raw clone). The child's process is registered.
pub(crate) fn identity_in_child() -> Identity {
    let process_id = AGENT.fork_local().map_or(0, |local| local.process_id.load(Relaxed));
    let (thread_id, asked_id) = (sys::thread_id(), sys::process_id());
    if process_id != 0 && asked_id != process_id {
        // A grandchild, which shares the child's memory.
        return of_block(process_id, process_id);
    }
    learn(thread_id, asked_id);
    let is_in_block = id_in_block() == thread_id;
    Identity { thread_id, is_main: thread_id == asked_id, kernel_id: thread_id, is_in_block, is_lent: false }
}

/// Checks whether the current thread's control block has its ids, which are known from the kernel.
fn learn(thread_id: u32, process_id: u32) {
    if let Some(local) = AGENT.fork_local() {
        let _ = local.process_id.compare_exchange(0, process_id, Relaxed, Relaxed);
    }
    let is_known = thread_id != 0 && id_in_block() == thread_id;
    IS_KNOWN.store(is_known, Relaxed);
    AGENT.has_ids_in_blocks.store(u32::from(is_known), Relaxed);
}

/// Checks this on the calling thread, which the program has started itself.
pub(crate) fn learn_here() {
    learn(sys::thread_id(), sys::process_id());
}

/// Returns the calling thread's own stack up to its control block, if `sp` lies on it.
pub(crate) fn own_stack(sp: usize) -> Option<StackRange> {
    let control_block = thread_pointer::thread_pointer();
    if !IS_KNOWN.load(Relaxed) {
        return None;
    }
    let encloses = |&offset: &usize| {
        let (low, bytes) = (word(offset), word(offset.wrapping_add(8)));
        let above = low.wrapping_add(bytes).wrapping_sub(control_block);
        low == page_begin(low) && low < sp && sp < control_block && STACK_END_ABOVE.contains(&above)
    };
    let low = STACK_BOUNDS_NEAR.step_by(8).find(encloses).map(word)?;
    Some(StackRange { low, high: control_block })
}
