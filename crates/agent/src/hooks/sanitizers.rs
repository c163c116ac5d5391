//! Programs that are built with a sanitizer run untraced, and are not disturbed.
//!
//! | its runtime | what it cannot bear |
//! |---|---|
//! | AddressSanitizer, a library | that another library stands before it: it ends the program |
//! | ThreadSanitizer, MemorySanitizer | to be called before it has started |
//! | HWAddressSanitizer, any in the program | nothing, but the calls do not come here |
//!
//! AddressSanitizer requests its default options while it starts, by a function that any module may
//! define. The agent's definition says that the order of the libraries need not be checked. A user
//! who has set that option explicitly is recorded as he wishes.

use core::ffi::c_char;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use heapr_ring::{Pool, sys};
use heapr_wire::{DisableReason, SESSION_RECORDING};

use crate::arch::weak_symbols;
use crate::hooks::real::REAL;
use crate::modules::link_map;
use crate::process::environment;
use crate::state::{AGENT, program};

const ORDER_OPTION: &[u8] = b"verify_asan_link_order=0";
const OPTIONS_BYTES_MAX: usize = 1024;

static OPTIONS: [AtomicU8; OPTIONS_BYTES_MAX] = [const { AtomicU8::new(0) }; OPTIONS_BYTES_MAX];

/// Called by AddressSanitizer's runtime. Returns the options of the definition that would be called
/// without the agent, and the agent's.
///
/// No other function may be called, because no library has started yet.
#[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
pub(crate) extern "C" fn __asan_default_options() -> *const c_char {
    let mut places = OPTIONS.iter().take(OPTIONS_BYTES_MAX - 1);
    let mut put = |byte: u8| {
        if let Some(place) = places.next() {
            place.store(byte, Relaxed);
        }
    };
    ORDER_OPTION.iter().for_each(|&byte| put(byte));
    let address = link_map::find_after_agent_uncalled(b"__asan_default_options");
    if address != 0 {
        // SAFETY: any module that defines this name for the runtime gives it this interface.
        let next: extern "C" fn() -> *const c_char = unsafe { core::mem::transmute(address) };
        let mut text = next().cast::<u8>();
        if !text.is_null() {
            put(b':');
            loop {
                // SAFETY: a zero-terminated string.
                let byte = unsafe { text.read_volatile() };
                if byte == 0 {
                    break;
                }
                put(byte);
                text = text.wrapping_add(1);
            }
        }
    }
    OPTIONS.as_ptr().cast()
}

fn is_sanitized() -> bool {
    let is_early = [
        weak_symbols::thread_sanitizer(),
        weak_symbols::memory_sanitizer(),
        weak_symbols::hardware_address_sanitizer(),
    ];
    is_early.iter().any(|&address| address != 0)
        || weak_symbols::address_sanitizer() != 0 && !environment::allows_address_sanitizer()
}

/// Disables the agent if it must not start. A sanitizer's runtime comes here while it starts
/// itself, and replaces `dl_iterate_phdr`, `memcmp` and others, which cannot be called until it has
/// started.
pub(crate) fn bypass() -> bool {
    if !is_sanitized() {
        return false;
    }
    REAL.resolve_uncalled();
    let is_resolved = REAL.malloc.address() != 0;
    if is_resolved {
        AGENT.disable(DisableReason::SessionClosed);
    }
    is_resolved
}

/// Tells the recorder, once the runtime has started.
pub(crate) fn report() {
    if !is_sanitized() {
        return;
    }
    let (Some(path), false) = environment::session() else { return };
    let Ok(descriptor) = sys::open(&path, true) else { return };
    let Ok(pool) = Pool::open(&descriptor) else { return };
    if pool.control().state.load(Relaxed) != SESSION_RECORDING {
        return;
    }
    AGENT.start_ticks.store(pool.control().start_ticks.load(Relaxed), Relaxed);
    program::read_executable();
    if AGENT.attach(pool).is_ok() && AGENT.process().is_some() {
        AGENT.disable(DisableReason::Sanitizer);
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;

    use super::*;
    use crate::process::environment::may_come_second;

    #[test]
    fn the_order_of_libraries_is_not_looked_at() {
        // SAFETY: the string that was just built.
        let options = unsafe { CStr::from_ptr(__asan_default_options()) };
        assert!(may_come_second(options.to_bytes()), "{options:?}");
        assert!(!may_come_second(b"verify_asan_link_order=0:verify_asan_link_order=1"));
        assert!(!may_come_second(b"detect_leaks=0"));
    }
}
