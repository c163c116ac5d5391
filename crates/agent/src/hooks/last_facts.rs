//! The process's resident memory just before its end, for the recorder: a short program ends
//! between two of the recorder's samples.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{Relaxed, Release};

use heapr_ring::{forbidden_calls, sys};

use crate::hooks::look_inside;
use crate::hooks::real::{EXITS, Real};
use crate::process::own_files::{decimal, for_each_line};
use crate::state::AGENT;

/// Least own memory, in bytes, with which a process is inspected before it ends.
const LOOKED_AT_BYTES: u64 = 3 << 20;

const NAMES: [&[u8]; 4] = [b"RssAnon:", b"RssFile:", b"RssShmem:", b"VmHWM:"];

/// Notes the resident memory. Called at the end of `exit`; a process that ends otherwise is covered
/// only if the agent was attached.
pub(crate) extern "C" fn note() {
    if !AGENT.is_active() {
        return;
    }
    let Some(slot) = AGENT.slot() else { return };
    for_each_line(b"/proc/self/status\0", &mut |line| {
        for (name, place) in NAMES.iter().zip(&slot.resident_at_exit) {
            if let Some(rest) = line.strip_prefix(*name) {
                place.store(decimal(rest.trim_ascii_start()).wrapping_mul(1024), Relaxed);
            }
        }
    });
    // Release: the four values are written.
    slot.exits_noted.fetch_add(1, Release);
    let [anonymous_bytes, file_bytes, shared_bytes, most_bytes] =
        slot.resident_at_exit.each_ref().map(|place| place.load(Relaxed));
    let most_own_bytes = most_bytes.saturating_sub(file_bytes).saturating_sub(shared_bytes);
    if anonymous_bytes.max(most_own_bytes) >= LOOKED_AT_BYTES {
        look_inside::ask_for_memory();
    }
}

/// Hook of `_exit`, in which `exit` ends, too. For a program to which the agent was attached, which
/// ends without the agent's destructors.
///
/// # Safety
/// As the C library documents it.
pub(crate) unsafe extern "C" fn exit_now(status: c_int) {
    // (A child by vfork is not the process that its memory belongs to.)
    let is_own = || AGENT.slot().is_some_and(|slot| slot.pid.load(Relaxed) == sys::process_id());
    if AGENT.is_active() && forbidden_calls::may_wait() && is_own() {
        note();
    }
    // One of the two functions has led here, and does not return.
    for exit in EXITS.iter().map(Real::address).filter(|&address| address != 0) {
        // SAFETY: an injector has found it under one of these names in the C library.
        unsafe {
            let exit: unsafe extern "C" fn(c_int) = core::mem::transmute(exit);
            exit(status);
        }
    }
}
