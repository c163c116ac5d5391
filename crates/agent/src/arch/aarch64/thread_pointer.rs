//! The agent's thread-local storage, and the thread pointer.
//!
//! The slot lies in initial-exec TLS and is defined here in assembly: `#[thread_local]` is unstable
//! and `thread_local!` needs std. Access can neither allocate nor fail. A library loaded at run
//! time takes the slot from the loader's static TLS surplus (16 bytes of it). After the slot lies
//! the countdown of samples, except in an injected agent: there the slot is a word of the C
//! library's.

use core::arch::{asm, global_asm};

global_asm!(
    ".section .tbss.heapr_thread,\"awT\",@nobits",
    ".balign 8",
    ".hidden heapr_thread_slot",
    ".globl heapr_thread_slot",
    ".type heapr_thread_slot, @object",
    ".size heapr_thread_slot, 16",
    "heapr_thread_slot:",
    ".zero 16",
    ".text",
);

/// Returns the slot's offset from the thread pointer.
#[inline(always)]
fn slot_offset() -> usize {
    let offset;
    // SAFETY: reads the offset from the agent's own offset table, which the loader has filled in.
    unsafe {
        asm!(
            "adrp {offset}, :gottprel:heapr_thread_slot",
            "ldr {offset}, [{offset}, :gottprel_lo12:heapr_thread_slot]",
            offset = out(reg) offset,
            options(pure, nostack, preserves_flags, readonly),
        );
    }
    offset
}

/// Returns the calling thread's state; null before its first event and after its end.
#[inline(always)]
pub(crate) fn current() -> *mut () {
    let place = thread_pointer().wrapping_add(slot_offset());
    let state;
    // SAFETY: reads the slot defined above. In assembly, because a signal handler of the same
    // thread may change it.
    unsafe {
        asm!("ldr {}, [{}]", out(reg) state, in(reg) place, options(nostack, preserves_flags, readonly));
    }
    state
}

/// Sets the calling thread's state.
#[inline(always)]
pub(crate) fn set_current(state: *mut ()) {
    let place = thread_pointer().wrapping_add(slot_offset());
    // SAFETY: as above, a store into the agent's own slot.
    unsafe { asm!("str {}, [{}]", in(reg) state, in(reg) place, options(nostack, preserves_flags)) };
}

/// Returns the address of the calling thread's countdown. Not for an injected agent.
#[inline(always)]
pub(crate) fn countdown() -> *mut () {
    thread_pointer().wrapping_add(slot_offset()).wrapping_add(8) as *mut ()
}

/// Returns the thread pointer. In glibc's and musl's threads the control block lies below it, at
/// the top of the thread's own stack.
#[inline(always)]
pub(crate) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: reads the register that the ABI has for it.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}

/// True if `handle` is what `pthread_self` returns in the thread with this thread pointer: the
/// begin of its descriptor, which ends at the thread pointer. The descriptor's size differs by C
/// library. Other threads' descriptors are farther away, as a stack lies between.
#[inline(always)]
pub(crate) fn is_handle_of(handle: usize, thread_pointer: usize) -> bool {
    /// Upper bound of a descriptor's size.
    const DESCRIPTOR_BYTES_MAX: usize = 4096;
    let distance = thread_pointer.wrapping_sub(handle);
    distance != 0 && distance <= DESCRIPTOR_BYTES_MAX
}

/// Returns the address of the slot of a thread with this thread pointer.
pub(crate) fn slot_place_of(thread_pointer: usize) -> usize {
    thread_pointer.wrapping_add(slot_offset())
}

pub(crate) use heapr_known::glibc::THREAD_ID_OFFSET;

/// Returns the thread id in the calling thread's control block of glibc.
///
/// # Safety
/// 1. The C library is glibc.
pub(crate) unsafe fn id_in_control_block() -> u32 {
    // SAFETY: (1): the control block is longer than this.
    unsafe { *(thread_pointer().wrapping_add(THREAD_ID_OFFSET) as *const u32) }
}
