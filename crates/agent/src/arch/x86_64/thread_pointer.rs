//! The agent's thread-local storage, and the thread pointer.
//!
//! The slot lies in initial-exec TLS and is defined here in assembly: `#[thread_local]` is unstable
//! and `thread_local!` needs std. Access is two instructions and can neither allocate nor fail. A
//! library loaded at run time takes the slot from the loader's static TLS surplus (16 bytes of it).
//! After the slot lies the countdown of samples, except in an injected agent: there the slot is a
//! word of the C library's.

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

/// Returns the calling thread's state; null before its first event and after its end.
#[inline(always)]
pub(crate) fn current() -> *mut () {
    let state;
    // SAFETY: reads the slot defined above through its offset from the thread pointer, according to
    // the initial-exec model.
    unsafe {
        asm!(
            "mov {state}, qword ptr [rip + heapr_thread_slot@GOTTPOFF]",
            "mov {state}, qword ptr fs:[{state}]",
            state = out(reg) state,
            options(nostack, preserves_flags, readonly),
        );
    }
    state
}

/// Sets the calling thread's state.
#[inline(always)]
pub(crate) fn set_current(state: *mut ()) {
    // SAFETY: as above, a store into the agent's own slot.
    unsafe {
        asm!(
            "mov {scratch}, qword ptr [rip + heapr_thread_slot@GOTTPOFF]",
            "mov qword ptr fs:[{scratch}], {state}",
            scratch = out(reg) _,
            state = in(reg) state,
            options(nostack, preserves_flags),
        );
    }
}

/// Returns the address of the calling thread's countdown. Not for an injected agent.
#[inline(always)]
pub(crate) fn countdown() -> *mut () {
    let place: usize;
    // SAFETY: computes the address of the word after the slot.
    unsafe {
        asm!(
            "mov {place}, qword ptr [rip + heapr_thread_slot@GOTTPOFF]",
            "add {place}, qword ptr fs:[0]",
            place = out(reg) place,
            options(nostack, readonly),
        );
    }
    place.wrapping_add(8) as *mut ()
}

/// Returns the thread pointer. In glibc's and musl's threads the control block lies at the top of
/// the thread's own stack.
#[inline(always)]
pub(crate) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the x86-64 ABI keeps the thread pointer's own address at fs:0.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly))
    };
    pointer
}

/// True if `handle` is what `pthread_self` returns in the thread with this thread pointer: the
/// address of its descriptor.
#[inline(always)]
pub(crate) fn is_handle_of(handle: usize, thread_pointer: usize) -> bool {
    handle == thread_pointer
}

/// Returns the address of the slot of a thread with this thread pointer.
pub(crate) fn slot_place_of(thread_pointer: usize) -> usize {
    let offset: usize;
    // SAFETY: reads the slot's offset from the thread pointer, a word of the agent's own.
    unsafe {
        asm!(
            "mov {offset}, qword ptr [rip + heapr_thread_slot@GOTTPOFF]",
            offset = out(reg) offset,
            options(nostack, preserves_flags, readonly),
        );
    }
    thread_pointer.wrapping_add(offset)
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
