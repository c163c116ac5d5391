//! The key of thread-local values whose destructor reports the end of each thread.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

use heapr_known::glibc::INLINE_KEYS;
use heapr_ring::early_ends;
use heapr_wire::INJECTED_KEY_SET_TWICE;

use crate::arch::thread_pointer;
use crate::arch::wide_registers::call_keeping;
use crate::modules::link_map;
use crate::record::thread_state::{ThreadState, current};
use crate::record::{late_threads, thread_states};
use crate::state::AGENT;

/// The key plus one; 0 without a key.
static END_KEY: AtomicU32 = AtomicU32::new(0);
/// Number of threads that are setting their value of the key at this moment.
static ARMING: AtomicU32 = AtomicU32::new(0);
/// Address of `pthread_setspecific`; 0 if it was not found.
static SET_SPECIFIC: AtomicUsize = AtomicUsize::new(0);

/// Claims a key whose destructor reports the end of each thread.
///
/// `create` and `delete` are the addresses of `pthread_key_create` and `pthread_key_delete`; 0: not
/// found.
pub(crate) fn register(create: usize, delete: usize) {
    // Keys below INLINE_KEYS have their values in the thread's own descriptor, so that setting one
    // does not allocate. (musl stores all values there.)
    let set = link_map::find_anywhere(b"pthread_setspecific");
    if create == 0 || set == 0 {
        return;
    }
    let mut key = 0_u32;
    // SAFETY: the POSIX functions of these names.
    let status = unsafe { claim_key(create, delete, &raw mut key) };
    if status == 0 && key < INLINE_KEYS {
        SET_SPECIFIC.store(set, Relaxed);
        END_KEY.store(key.wrapping_add(1), Release);
        // The thread that starts the agent was registered before the key existed.
        let state = current();
        if !state.is_null() {
            arm(state);
        }
    }
}

/// Claims the last of the keys whose values lie in the thread's descriptor. Called by the injector,
/// too.
///
/// The last one is chosen because of other C libraries in the process (dlmopen). Such a library
/// counts its keys from the first on, and stores their values in the same locations.
///
/// # Safety
/// 1. `create` and `delete` are the POSIX functions' addresses, `key` may be written.
pub(crate) unsafe extern "C" fn claim_key(create: usize, delete: usize, key: *mut u32) -> i32 {
    const NONE: u32 = u32::MAX;
    // SAFETY: (1).
    let (create, delete) = unsafe {
        (
            core::mem::transmute::<usize, unsafe extern "C" fn(*mut u32, extern "C" fn(*mut c_void)) -> i32>(
                create,
            ),
            core::mem::transmute::<usize, Option<unsafe extern "C" fn(u32) -> i32>>(delete),
        )
    };
    let (mut claimed, mut status) = (NONE, 0);
    let mut others = [NONE; INLINE_KEYS as usize + 1];
    for other in &mut others {
        let mut next = NONE;
        // SAFETY: (1).
        status = unsafe { create(&raw mut next, end_of_thread) };
        if status != 0 {
            break;
        }
        let is_inline = next < INLINE_KEYS;
        // Without `delete` no key can be given back, and the first one is as good.
        *other = if is_inline { core::mem::replace(&mut claimed, next) } else { next };
        if !is_inline || next + 1 == INLINE_KEYS || delete.is_none() {
            break;
        }
    }
    for other in others.into_iter().filter(|&other| other != NONE) {
        if let Some(delete) = delete {
            // SAFETY: (1).
            unsafe { delete(other) };
        }
    }
    // SAFETY: (1).
    unsafe { key.write(claimed) };
    if claimed == NONE { status } else { 0 }
}

/// Registers, instead of [`register`], a key (plus one; 0: no key) that the injector has claimed.
pub(crate) fn register_as(key: u32, set_specific_avma: usize) {
    SET_SPECIFIC.store(set_specific_avma, Relaxed);
    END_KEY.store(key, Release);
}

pub(crate) fn arm(state: *mut ThreadState) {
    ARMING.fetch_add(1, SeqCst);
    let key = END_KEY.load(SeqCst);
    let set = SET_SPECIFIC.load(Relaxed);
    if key != 0 && set != 0 {
        // SAFETY: the POSIX function of this signature; the key is ours and below the inline limit,
        // so nothing allocates.
        unsafe {
            let number = (key & !INJECTED_KEY_SET_TWICE).wrapping_sub(1) as usize;
            if key & INJECTED_KEY_SET_TWICE != 0 {
                call_keeping(number, 0, set);
            }
            call_keeping(number, state as usize, set);
        }
    }
    ARMING.fetch_sub(1, SeqCst);
}

/// Deletes the key, so that the program can have it: the recorder must then find out itself which
/// threads have ended. Returns true if there was a key and it is deleted.
#[cold]
pub(crate) fn give_up_key(delete: fn(u32) -> i32) -> bool {
    const LOOKS_MAX: u32 = 10_000;
    let key = END_KEY.swap(0, SeqCst);
    if key == 0 {
        return false;
    }
    // A thread that has read the key must not set a value of the key after the program has claimed
    // it.
    let is_unused = (0..LOOKS_MAX).any(|_| {
        core::hint::spin_loop();
        ARMING.load(SeqCst) == 0
    });
    if !is_unused {
        END_KEY.store(key, SeqCst);
    }
    is_unused && delete((key & !INJECTED_KEY_SET_TWICE).wrapping_sub(1)) == 0
}

/// Closes the state of the calling thread. Runs among the thread's destructors; events of later
/// destructors are a late thread's (see [`late_threads`]).
pub(crate) extern "C" fn end_of_thread(state: *mut c_void) {
    let state = state.cast::<ThreadState>();
    // An injected agent's slot is the key's own value, which is null by the time of this call.
    let now = current();
    if state.is_null() || (now != state && !now.is_null()) {
        return;
    }
    thread_pointer::set_current(core::ptr::null_mut());
    // SAFETY: this thread's state, no longer reachable through the slot.
    let state_ref = unsafe { &mut *state };
    state_ref.close();
    late_threads::note_end(state_ref.thread_id);
    thread_states::give_back(state);
    if let Some(pool) = AGENT.pool() {
        early_ends::note(pool);
    }
}
