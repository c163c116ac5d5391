//! Functions that a program looks up in a library: `dlsym` and `dlvsym` with a handle or
//! `RTLD_NEXT`, `ctypes.CDLL("libc.so.6").free`. That search does not find the agent's functions.
//!
//! So each allocator's own symbol table is changed to name the agent's functions, as for libraries
//! that are bound past the agent ([`crate::hooks::other_namespaces`]). For the process's allocator
//! these are the ordinary trampolines. An allocator that the program's calls do not reach gets
//! separate hooks, which call its own functions. An example is one that a preloaded library
//! precedes and looks up.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::hooks::real::REAL;
use crate::hooks::symbol_tables::{self, Take};
use crate::hooks::{entries, inner_calls, other_allocators};
use crate::modules::dynamic_section::Dynamic;
use crate::modules::link_map::{self, DlPhdrInfo};
use crate::state::AGENT;

/// Number of modules that the loader had unloaded at the last inspection (`SEEN_UNLOADS`), and
/// number of inspected modules of its list. New ones are at the end, as long as no module is
/// unloaded.
static SEEN_UNLOADS: AtomicU64 = AtomicU64::new(0);
static SEEN_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Inspects the modules that are new: at the start, and when the loader has loaded more.
#[cold]
pub(crate) fn look() {
    if AGENT.is_injected.load(Relaxed) != 0 {
        return;
    }
    let agent = look as *const () as usize;
    let (mut number, mut seen) = (0_usize, SEEN_COUNT.load(Relaxed));
    let mut is_behind = false;
    link_map::for_each_module(&mut |info| {
        let [_, unloads] = info.load_counts;
        if number == 0 && SEEN_UNLOADS.swap(unloads, Relaxed) != unloads {
            seen = 0;
        }
        if info.contains(agent) {
            is_behind = true;
        } else if is_behind && number >= seen {
            look_at(info);
        }
        number = number.wrapping_add(1);
        false
    });
    SEEN_COUNT.store(number, Relaxed);
}

/// Makes an allocator's symbol table name the hooks.
pub(crate) fn look_at(info: &DlPhdrInfo) {
    let Some(dynamic) = info.dynamic() else { return };
    let has = |name: &[u8]| dynamic.find_entry(name).is_some();
    // An old loader defines malloc for itself.
    if !has(b"malloc") || !has(b"free") || has(b"_rtld_global") {
        return;
    }
    redirect_known(info, &dynamic);
    redirect_others(info, &dynamic);
}

/// Redirects the functions to which the program's calls lead.
fn redirect_known(info: &DlPhdrInfo, dynamic: &Dynamic) {
    symbol_tables::redirect(info, dynamic, &|take: Take<'_>| {
        entries::for_each_of_allocator(&mut |name, address, trampoline| {
            if address != 0 && info.contains(address) {
                take(name, trampoline);
            }
        });
        // Modules unloaded by `dlclose` must be known, so every lookup of it gets the hook.
        let dlclose = REAL.dlclose.address();
        if dlclose != 0 && info.contains(dlclose) {
            take(REAL.dlclose.name, entries::dlclose as *const () as usize);
        }
    });
}

/// Redirects the functions that the program's calls do not reach.
fn redirect_others(info: &DlPhdrInfo, dynamic: &Dynamic) {
    let is_other = |name: &[u8]| {
        // A symbol that was changed before names an address outside of the module.
        let address = dynamic.find(name);
        address != 0 && info.contains(address)
    };
    let mut is_any = false;
    other_allocators::for_each_function(&mut |name, _, _| is_any |= is_other(name));
    if !is_any {
        return;
    }
    inner_calls::add_allocator(info);
    let Some(number) = other_allocators::number_of(info.bias) else { return };
    other_allocators::for_each_function(&mut |name, real, _| {
        if is_other(name)
            && let Some(real) = real.get(number)
        {
            real.store(dynamic.find(name), Relaxed);
        }
    });
    symbol_tables::redirect(info, dynamic, &|take: Take<'_>| {
        other_allocators::for_each_function(&mut |name, _, trampoline| {
            if is_other(name) {
                take(name, other_allocators::entry(trampoline, number));
            }
        });
    });
}
