//! Entry points that allocator libraries define in addition to malloc's. They are operator new and
//! delete, if the allocator replaces them, and the interfaces of jemalloc, tcmalloc and mimalloc.
//!
//! They cannot simply be exported like malloc: a program that checks at run time whether `mallocx`
//! exists would then believe that it runs on jemalloc. So the hooks are installed only if a loaded
//! module defines them: the slots through which other modules call them are pointed at the hooks.
//! operator new is hooked only if it comes from a module that has its own malloc. The C++ library's
//! operator new calls malloc, which is hooked anyway.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

use heapr_known::allocator_libraries::{PREFIXES, PROBES, SUFFIX};
use heapr_ring::pages::{page_begin, page_bytes};
use heapr_ring::sys;
use heapr_wire::{HOOK_FOREIGN, HOOK_OPERATOR, InjectedHook, called};

use crate::arch::entry::Entry;
use crate::arch::loading::is_address_of_symbol;
use crate::hooks::all_registers::{self as of_kept, HookedFunction, NOTHING, Outcome};
use crate::hooks::forwarded::{run_alloc, run_free, run_posix, run_realloc, run_resize, run_string};
use crate::hooks::shared::Shared;
use crate::hooks::{self, Caller, arenas, inner_calls};
use crate::modules::dynamic_section::{Dynamic, Relocation};
use crate::modules::link_map::{self, DlPhdrInfo};
use crate::state::AGENT;

type Pointer = *mut c_void;

/// One entry point: its name, the trampoline that replaces it, and the real function once it is
/// found.
pub(crate) struct Foreign {
    name: &'static [u8],
    trampoline: unsafe extern "C" fn(),
    real: &'static AtomicUsize,
    /// Whether the entry point counts only if its module also defines malloc.
    is_operator: bool,
}

const fn hook_of(name: &'static str, trampoline: *const (), kept: &'static HookedFunction) -> InjectedHook {
    let is_operator = matches!(name.as_bytes(), [b'_', b'Z', ..]);
    InjectedHook {
        name: name.as_ptr(),
        name_bytes: name.len(),
        trampoline,
        real: kept.real,
        group: if is_operator { HOOK_OPERATOR } else { HOOK_FOREIGN },
        kept: core::ptr::from_ref(kept).cast(),
    }
}

/// True if an operator new takes an alignment after the size, according to its name.
const fn is_aligned(name: &str) -> bool {
    let mut rest = name.as_bytes();
    while let [_, tail @ ..] = rest {
        if let [b'a', b'l', b'i', b'g', b'n', ..] = rest {
            return true;
        }
        rest = tail;
    }
    false
}

/// Searches new modules for entry points and call slots: at the start, and when a module is found.
#[cold]
pub(crate) fn start() {
    if AGENT.is_injected.load(Relaxed) != 0 {
        return;
    }
    static BUSY: AtomicU32 = AtomicU32::new(0);
    if BUSY.swap(1, Acquire) != 0 {
        return;
    }
    look_at_new_modules();
    BUSY.store(0, Release);
}

/// True if the real function of any entry point is known.
pub(crate) fn is_any_known() -> bool {
    all().any(|foreign| foreign.real.load(Relaxed) != 0)
}

/// Number of inspected modules, which come first in the loader's order as long as no module is
/// unloaded.
struct Seen {
    /// [`DlPhdrInfo::load_counts`] when all modules had been inspected; 0 loads: not all have been.
    load_counts: [AtomicU64; 2],
    /// Number of modules that were searched for functions of allocators.
    searched: AtomicUsize,
    /// Number of modules whose calls were patched.
    patched: AtomicUsize,
}

static SEEN: Seen = Seen {
    load_counts: [const { AtomicU64::new(0) }; 2],
    searched: AtomicUsize::new(0),
    patched: AtomicUsize::new(0),
};

/// Inspects only the new modules: a program may have thousands, and each is reported.
fn look_at_new_modules() {
    let mut load_counts = [0; 2];
    let (mut searched, mut patched) = (SEEN.searched.load(Relaxed), SEEN.patched.load(Relaxed));
    let mut number = 0_usize;
    let mut is_any_new = false;
    link_map::for_each_module(&mut |info| {
        if number == 0 {
            load_counts = info.load_counts;
            let [loads, unloads] = load_counts;
            let [loads_before, unloads_before] = &SEEN.load_counts;
            if unloads != unloads_before.load(Relaxed) {
                (searched, patched) = (0, 0);
            } else if loads != 0 && loads == loads_before.load(Relaxed) {
                is_any_new = false;
                return true;
            }
            is_any_new = true;
        }
        if number >= searched && find_functions(info) {
            patched = 0;
        }
        number = number.wrapping_add(1);
        false
    });
    if !is_any_new {
        return;
    }
    SEEN.searched.store(number, Relaxed);
    let count = number;
    let mut is_all = true;
    number = 0;
    if is_any_known() {
        link_map::for_each_module(&mut |info| {
            if number >= patched {
                is_all &= patch(info);
                // The modules after one that the loader has not finished are inspected again.
                patched = patched.wrapping_add(usize::from(is_all));
            }
            number = number.wrapping_add(1);
            number >= count
        });
    }
    SEEN.patched.store(patched, Relaxed);
    let ([seen_loads, seen_unloads], [loads, unloads]) = (&SEEN.load_counts, load_counts);
    seen_loads.store(if is_all { loads } else { 0 }, Relaxed);
    seen_unloads.store(unloads, Relaxed);
}

/// Fills in the real functions that a module defines. Returns true if there is a new one.
fn find_functions(info: &DlPhdrInfo) -> bool {
    if info.contains(start as *const () as usize) || info.headers().is_empty() {
        return false;
    }
    let Some(dynamic) = info.dynamic() else { return false };
    // All allocators export one of these besides their malloc; for other modules the search ends
    // with these look-ups.
    let has_malloc = dynamic.find(b"malloc") != 0;
    let has_interface = PROBES.iter().any(|name| dynamic.find(name.as_bytes()) != 0);
    let has_operators = has_malloc && dynamic.find(b"_Znwm") != 0;
    if !has_interface && !has_operators {
        return false;
    }
    let mut is_any_new = false;
    for foreign in all() {
        if foreign.real.load(Relaxed) == 0 && (has_malloc || !foreign.is_operator) {
            let address = dynamic.find(foreign.name);
            foreign.real.store(address, Release);
            is_any_new |= address != 0;
        }
    }
    inner_calls::add_allocator(info);
    is_any_new
}

/// Points the slots of a module's calls at the hooks. Slots with values other than the loader's are
/// left. Returns `false` if the loader has not filled a slot yet.
fn patch(info: &DlPhdrInfo) -> bool {
    let Some(dynamic) = info.dynamic() else { return true };
    if info.contains(start as *const () as usize) || is_provider(info) {
        return true;
    }
    let mut is_bound = true;
    for (table, bytes) in dynamic.relocations {
        if table == 0 {
            continue;
        }
        for index in 0..bytes / size_of::<Relocation>() {
            // SAFETY: the table of a module that the loader has mapped.
            let relocation = unsafe { *(table as *const Relocation).add(index) };
            is_bound &= patch_slot(info, &dynamic, relocation);
        }
    }
    is_bound
}

/// True if a module is one of the allocators: calls among its own functions are not the program's
/// calls.
fn is_provider(info: &DlPhdrInfo) -> bool {
    all().any(|foreign| {
        let real = foreign.real.load(Relaxed);
        real != 0 && info.contains(real)
    })
}

fn patch_slot(info: &DlPhdrInfo, dynamic: &Dynamic, relocation: Relocation) -> bool {
    const PT_GNU_RELRO: u32 = 0x6474_e552;
    let kind = relocation.info as u32;
    let symbol = (relocation.info >> 32) as u32;
    if symbol == 0 || !is_address_of_symbol(kind) || relocation.addend != 0 {
        return true;
    }
    // SAFETY: the relocation's symbol is one of the module's dynamic symbols.
    let name = unsafe { dynamic.symbol_name(symbol) };
    let may_match = PREFIXES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
        || name.ends_with(SUFFIX.as_bytes());
    if !may_match {
        return true;
    }
    let Some(foreign) = all().find(|foreign| foreign.name == name && foreign.real.load(Relaxed) != 0) else {
        return true;
    };
    let slot = info.bias.wrapping_add(relocation.offset_svma);
    if slot & 7 != 0 || !info.contains(slot) {
        return true;
    }
    // SAFETY: an aligned word of the module's data that the loader has written.
    let place = unsafe { &*(slot as *const AtomicUsize) };
    let trampoline = foreign.trampoline as *const () as usize;
    let now = place.load(Relaxed);
    // The loader has stored the real function there, or the address in the module's own table where
    // a lazy call begins. Any other value (such as a copy that the program defines itself) must not
    // be changed.
    if now == trampoline || (now != foreign.real.load(Relaxed) && !info.contains(now)) {
        // The value that the linker has written.
        let is_unbound = now == 0 || info.contains(info.bias.wrapping_add(now));
        return now == trampoline || !is_unbound;
    }
    let relro = info.headers().iter().find(|header| header.kind == PT_GNU_RELRO);
    let is_read_only = relro.is_some_and(|header| {
        slot.wrapping_sub(info.bias.wrapping_add(header.address_svma)) < header.memory_bytes
    });
    let page = page_begin(slot);
    if is_read_only {
        // SAFETY: a page of the module's own data, made writable for one store and closed again.
        if unsafe { sys::protect(page, page_bytes(), 3) }.is_err() {
            return true;
        }
    }
    place.store(trampoline, Release);
    if is_read_only {
        // SAFETY: as above.
        let _ = unsafe { sys::protect(page, page_bytes(), 1) };
    }
    true
}

/// Begins a call. The result lies on the trampoline's stack until [`after_new`] needs it.
/// `usize::MAX`: the call is not recorded.
unsafe extern "C" fn before_new(entry: Entry) -> usize {
    inner_calls::begin(entry).unwrap_or(usize::MAX)
}

/// Ends a call with which another function continues.
unsafe extern "C" fn left_new(begun: usize) {
    if begun != usize::MAX {
        inner_calls::end(begun);
    }
}

unsafe extern "C" fn after_new<const CALLED: u8>(
    block: Pointer,
    size: usize,
    entry: Entry,
    bp: usize,
    begun: usize,
) {
    if begun != usize::MAX {
        inner_calls::end(begun);
        hooks::allocated(block, size, Caller::new(entry, bp, CALLED));
    }
}

macro_rules! foreign {
    (
        new { $($new:ident: $nothrow:ident)* }
        free { $($free:ident)* }
        call { $(|$a:pat_param, $b:pat_param, $c:pat_param, $d:pat_param, $real:pat_param, $all:pat_param, $caller:pat_param| $body:expr
            => $($name:ident)*;)* }
        note { $($noted:ident: $before:path;)* }
    ) => {
        #[allow(non_upper_case_globals, reason = "named as the C functions")]
        mod real {
            use core::sync::atomic::AtomicUsize;
            $(pub(super) static $new: AtomicUsize = AtomicUsize::new(0);)*
            $(pub(super) static $free: AtomicUsize = AtomicUsize::new(0);)*
            $($(pub(super) static $name: AtomicUsize = AtomicUsize::new(0);)*)*
            $(pub(super) static $noted: AtomicUsize = AtomicUsize::new(0);)*
        }

        #[allow(non_upper_case_globals, reason = "named as the C functions")]
        mod throwing {
            use core::sync::atomic::AtomicUsize;
            $(pub(super) static $new: AtomicUsize = AtomicUsize::new(0);)*
        }

        /// Replaces each function that throws by the one that returns null instead. For an injected
        /// agent: the program's unwinders do not know its frames, so an exception cannot be thrown
        /// through them. If the call fails, the throwing function is then called to fail by itself.
        pub(crate) fn call_what_does_not_throw() {
            $(if !core::ptr::eq(&raw const real::$new, &raw const real::$nothrow) {
                let (own, other) = (real::$new.load(Relaxed), real::$nothrow.load(Relaxed));
                if own != 0 && other != 0 {
                    throwing::$new.store(own, Relaxed);
                    real::$new.store(other, Relaxed);
                }
            })*
        }

        #[allow(non_snake_case, reason = "named as the C functions")]
        mod hook {
            use super::*;
            $(pub(super) unsafe extern "C" fn $free(
                a: usize, b: usize, c: usize, d: usize, entry: Entry, bp: usize,
            ) -> usize {
                let caller = Caller::new(entry, bp, const { called(stringify!($free)) });
                run_free(&super::real::$free, [a, b, c, d], a, caller)
            })*
            $($(pub(super) unsafe extern "C" fn $name(
                a: usize, b: usize, c: usize, d: usize, entry: Entry, bp: usize,
            ) -> usize {
                let caller = Caller::new(entry, bp, const { called(stringify!($name)) });
                super::run::$name(&super::real::$name, [a, b, c, d], caller)
            })*)*
            $(pub(super) unsafe extern "C" fn $noted(words: *const [usize; 4], entry: Entry, bp: usize) {
                let caller = Caller::new(entry, bp, const { called(stringify!($noted)) });
                if AGENT.is_active() {
                    // SAFETY: the trampoline's words, on its stack.
                    $before(&super::real::$noted, unsafe { &*words }, caller);
                }
            })*
        }

        #[allow(non_snake_case, reason = "named as the C functions")]
        mod run {
            use super::*;
            $($(#[inline(always)]
            pub(super) fn $name(real: &AtomicUsize, words: [usize; 4], caller: Caller) -> usize {
                let ([$a, $b, $c, $d], $real, $all, $caller) = (words, real, words, caller);
                $body
            })*)*
        }

        #[allow(non_upper_case_globals, reason = "named as the C functions")]
        mod kept {
            use super::*;
            $(pub(super) static $new: HookedFunction = HookedFunction {
                run: if is_aligned(stringify!($new)) { of_kept::new::<true> } else { of_kept::new::<false> },
                real: &real::$new,
                throwing: &throwing::$new,
                called: called(stringify!($new)),
                inner: None,
                note_inner: None,
            };)*
            $(pub(super) static $free: HookedFunction = HookedFunction {
                run: of_kept::freed,
                real: &real::$free,
                throwing: &NOTHING,
                called: called(stringify!($free)),
                inner: None,
                note_inner: None,
            };)*
            $($(pub(super) static $name: HookedFunction = HookedFunction {
                run: |kept, &all, caller| Outcome::Answered(super::run::$name(kept.real, all, caller)),
                real: &real::$name,
                throwing: &NOTHING,
                called: called(stringify!($name)),
                inner: None,
                note_inner: None,
            };)*)*
            $(pub(super) static $noted: HookedFunction = HookedFunction {
                run: |kept, all, caller| {
                    $before(kept.real, all, caller);
                    Outcome::PassOn
                },
                real: &real::$noted,
                throwing: &NOTHING,
                called: called(stringify!($noted)),
                inner: None,
                note_inner: None,
            };)*
        }

        #[allow(non_snake_case, reason = "named as the C functions")]
        mod trampoline {
            use heapr_wire::called;

            use crate::arch::entries::{new_entry, noting_entry, word_entry};

            $(new_entry! {
                $new, super::real::$new, super::throwing::$new, super::before_new, super::left_new,
                super::after_new::<{ called(stringify!($new)) }>
            })*
            $(word_entry! { $free, super::hook::$free })*
            $($(word_entry! { $name, super::hook::$name })*)*
            $(noting_entry! { $noted, super::real::$noted, super::hook::$noted })*
        }

        const COUNT: usize =
            [$(stringify!($new),)* $(stringify!($free),)* $($(stringify!($name),)*)* $(stringify!($noted),)*].len();

        /// All entry points that can be hooked, for an injector.
        pub(crate) static INJECTED: Shared<[InjectedHook; COUNT]> = Shared([
            $(hook_of(stringify!($new), trampoline::$new as *const (), &kept::$new),)*
            $(hook_of(stringify!($free), trampoline::$free as *const (), &kept::$free),)*
            $($(hook_of(stringify!($name), trampoline::$name as *const (), &kept::$name),)*)*
            $(hook_of(stringify!($noted), trampoline::$noted as *const (), &kept::$noted),)*
        ]);

        /// Returns every entry point that can be hooked.
        fn all() -> impl Iterator<Item = Foreign> {
            const NAMES: [(&str, unsafe extern "C" fn(), &AtomicUsize); COUNT] = [
                $((stringify!($new), trampoline::$new as unsafe extern "C" fn(), &real::$new),)*
                $((stringify!($free), trampoline::$free as unsafe extern "C" fn(), &real::$free),)*
                $($((stringify!($name), trampoline::$name as unsafe extern "C" fn(), &real::$name),)*)*
                $((stringify!($noted), trampoline::$noted as unsafe extern "C" fn(), &real::$noted),)*
            ];
            NAMES.into_iter().map(|(name, trampoline, real)| Foreign {
                name: name.as_bytes(),
                trampoline,
                real,
                is_operator: name.starts_with("_Z"),
            })
        }
    };
}

macro_rules! library_functions {
    (
        new { $($new:ident: $nothrow:ident)* }
        free { $($free:ident)* }
        alloc { $($alloc:ident)* }
        alloc_flags { $($alloc_flags:ident)* }
        realloc_flags { $($realloc_flags:ident)* }
        realloc { $($realloc:ident)* }
        resize_to_size { $($resize_to_size:ident)* }
        calloc { $($calloc:ident)* }
        memalign { $($memalign:ident)* }
        heap_alloc { $($heap_alloc:ident)* }
        posix_memalign { $($posix_memalign:ident)* }
        string { $($string:ident)* }
        heap_string { $($heap_string:ident)* }
        recalloc { $($recalloc:ident)* }
        resize_or_null { $($resize_or_null:ident)* }
        heap_calloc { $($heap_calloc:ident)* }
        heap_realloc { $($heap_realloc:ident)* }
        heap_destroy { $($heap_destroy:ident)* }
        heap_delete { $($heap_delete:ident)* }
        control { $($control:ident)* }
        control_by_mib { $($control_by_mib:ident)* }
        name_to_mib { $($name_to_mib:ident)* }
    ) => {
        foreign! {
            new { $($new: $nothrow)* }
            free { $($free)* }
            call {
                |size, _, _, _, real, all, caller| run_alloc(real, all, size, caller) => $($alloc)*;
                |size, flags, _, _, real, all, caller| arenas::run_alloc_in(real, all, size, flags, caller) => $($alloc_flags)*;
                |p, size, flags, _, real, all, caller| arenas::run_realloc_in(real, all, (p, size), flags, caller) => $($realloc_flags)*;
                |p, size, _, _, real, all, caller| run_realloc(real, all, p, size, caller) => $($realloc)*;
                |_, size, _, _, real, all, caller| run_resize(real, all, size, caller, |done| done >= size) => $($resize_to_size)*;
                |n, size, _, _, real, all, caller| run_alloc(real, all, n.saturating_mul(size), caller) => $($calloc)*;
                |_, size, _, _, real, all, caller| run_alloc(real, all, size, caller) => $($memalign)*;
                |heap, size, _, _, real, all, caller| arenas::run_alloc_in(real, all, size, heap, caller) => $($heap_alloc)*;
                |_, _, _, _, real, all, caller| run_posix(real, all, caller) => $($posix_memalign)*;
                |_, _, _, _, real, all, caller| run_string(real, all, caller) => $($string)*;
                |heap, _, _, _, real, all, caller| {
                    let text = run_string(real, all, caller);
                    arenas::join(text, heap, caller);
                    text
                } => $($heap_string)*;
                |p, n, size, _, real, all, caller| run_realloc(real, all, p, n.saturating_mul(size), caller) => $($recalloc)*;
                |_, size, _, _, real, all, caller| run_resize(real, all, size, caller, |block| block != 0) => $($resize_or_null)*;
                |heap, n, size, _, real, all, caller| arenas::run_alloc_in(real, all, n.saturating_mul(size), heap, caller) => $($heap_calloc)*;
                |heap, p, size, _, real, all, caller| arenas::run_realloc_in(real, all, (p, size), heap, caller) => $($heap_realloc)*;
            }
            note {
                $($heap_destroy: arenas::before_destroy;)*
                $($heap_delete: arenas::before_delete;)*
                $($control: arenas::before_control;)*
                $($control_by_mib: arenas::before_control_by_mib;)*
                $($name_to_mib: arenas::before_name_to_mib;)*
            }
        }
    };
}

heapr_known::for_all_library_functions!(library_functions);
