//! Keys of thread-local values: the agent has one, and gives it up when the program needs the last
//! one.
#![cfg_attr(
    not(all(feature = "cdylib", not(test))),
    allow(unreachable_pub, reason = "the C library's names are given to them only in the shared object")
)]

use core::ffi::c_int;

use crate::hooks::real::{EAGAIN, REAL, THRD_ERROR};
use crate::record::thread_key;

/// The C function of this name.
///
/// # Safety
/// As POSIX documents it.
#[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pthread_key_create(key: *mut u32, destructor: usize) -> c_int {
    REAL.pthread_key_create.found_late();
    let status = REAL.pthread_key_create(key, destructor);
    if status == EAGAIN && thread_key::give_up_key(|key| REAL.pthread_key_delete(key)) {
        REAL.pthread_key_create(key, destructor)
    } else {
        status
    }
}

/// The C function of this name.
///
/// # Safety
/// As the C standard documents it.
#[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn tss_create(key: *mut u32, destructor: usize) -> c_int {
    REAL.tss_create.found_late();
    let status = REAL.tss_create(key, destructor);
    if status == THRD_ERROR && thread_key::give_up_key(|key| REAL.pthread_key_delete(key)) {
        REAL.tss_create(key, destructor)
    } else {
        status
    }
}
