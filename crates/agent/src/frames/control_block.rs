//! What glibc keeps of a thread in its control block: its id and its stack. The kernel tells both
//! too, but a program may have forbidden itself the calls that ask for them (seccomp), and would be
//! ended for the first event of its next thread.
//!
//! ```text
//! low                                   sp ------> frames        thread pointer            high
//! | guard |                             |                        | struct pthread, 2,304 bytes |
//! ```
//! Nothing is taken on trust: the id's place must have held the first thread's, and the two words
//! that say where the stack lies must enclose the stack pointer and the control block, which lies
//! at the top of the stack.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::frames::stack_range::StackRange;
use crate::modules::link_map;
use crate::state::AGENT;
use crate::x86_64::thread_pointer;

/// `struct pthread.tid` on x86-64 (nptl/descr.h of glibc 2.31 to 2.43).
const THREAD_ID_OFFSET: usize = 0x2d0;
/// Where `stackblock` and `stackblock_size` lie differs: behind the unwind buffers, before the end
/// of the structure.
const STACK_OFFSETS: core::ops::Range<usize> = 0x600..0x8c0;
/// From the thread pointer to the stack's upper end: the structure, and what its alignment leaves.
const ABOVE_BYTES: core::ops::Range<usize> = 0x8c0..0x2000;

/// Whether this is glibc's control block as described above.
static IS_KNOWN: AtomicBool = AtomicBool::new(false);

/// Upper end of the main thread's stack: `__libc_stack_end`; 0 if the C library does not tell.
static MAIN_HIGH: AtomicUsize = AtomicUsize::new(0);

/// Learns where the main thread's stack ends.
pub(crate) fn start() {
    start_with(link_map::find_anywhere(b"__libc_stack_end"));
}

/// As [`start`], with the address of `__libc_stack_end`; 0 if it is not known.
pub(crate) fn start_with(variable_avma: usize) {
    let variable = variable_avma as *const usize;
    if !variable.is_null() {
        // SAFETY: glibc's loader exports this variable, a pointer to the program's argument block.
        MAIN_HIGH.store(unsafe { *variable }, Relaxed);
    }
}

/// See [`MAIN_HIGH`]. No C library but glibc tells it.
pub(crate) fn main_high() -> usize {
    MAIN_HIGH.load(Relaxed)
}

fn word(offset: usize) -> usize {
    // SAFETY: callers stay within glibc's `struct pthread` of the calling thread.
    unsafe { *(thread_pointer::thread_pointer().wrapping_add(offset) as *const usize) }
}

/// Learns from a thread whose ids the kernel has told whether the control block has them.
pub(crate) fn learn(thread_id: u32, process_id: u32) {
    if let Some(local) = AGENT.fork_local() {
        local.process_id.store(process_id, Relaxed);
    }
    IS_KNOWN.store(main_high() != 0 && word(THREAD_ID_OFFSET) as u32 == thread_id, Relaxed);
}

/// The calling thread's id and its process's; `None`: the kernel must be asked. So it is by the
/// first thread of a forked child, whose control block may still have the parent's id (a raw
/// clone).
pub(crate) fn ids() -> Option<(u32, u32)> {
    let process_id = AGENT.fork_local()?.process_id.load(Relaxed);
    (process_id != 0 && IS_KNOWN.load(Relaxed)).then(|| (word(THREAD_ID_OFFSET) as u32, process_id))
}

/// The calling thread's own stack up to its control block, if `sp` lies on it.
pub(crate) fn own_stack(sp: usize) -> Option<StackRange> {
    let control_block = thread_pointer::thread_pointer();
    if !IS_KNOWN.load(Relaxed) {
        return None;
    }
    let encloses = |&offset: &usize| {
        let (low, bytes) = (word(offset), word(offset.wrapping_add(8)));
        let above = low.wrapping_add(bytes).wrapping_sub(control_block);
        low & 0xfff == 0 && low < sp && sp < control_block && ABOVE_BYTES.contains(&above)
    };
    let low = STACK_OFFSETS.step_by(8).find(encloses).map(word)?;
    Some(StackRange { low, high: control_block })
}
