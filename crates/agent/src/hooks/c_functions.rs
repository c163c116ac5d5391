//! The hooks of the C library's functions.

use core::ffi::c_int;

use heapr_wire::{HEAP_MMAP, called};

use super::caller::{Caller, NO_STACK};
use super::real::REAL;
use super::recording::{
    about_to_free, aligned_block, allocated, allocated_by_malloc, free_plainly, freed, new_block, reallocated,
};
use super::{Pointer, look_inside};
use crate::arch::entry::Entry;
use crate::languages;
use crate::modules;
use crate::record::events;
use crate::record::thread::Scope;
use crate::record::writing::Records;

pub(crate) unsafe extern "C" fn malloc<const NESTS: bool>(size: usize, entry: Entry, bp: usize) -> Pointer {
    let caller = Caller::new(entry, bp, const { called("malloc") });
    new_block::<NESTS>(caller, || REAL.malloc(size), |block| allocated_by_malloc(block, size, caller))
}

pub(crate) unsafe extern "C" fn free<const NESTS: bool>(block: Pointer, entry: Entry, bp: usize) {
    if NESTS {
        let caller = Caller::new(entry, bp, const { called("free") });
        return freed::<true, _>(block, caller, || REAL.free(block));
    }
    // Both paths end in a jump. So nearly all frees need no frame of the agent, and save two
    // registers instead of six.
    if let Some(real) = REAL.free.known_free()
        && free_plainly(block, entry)
    {
        // SAFETY: the C library's function of this name, with the program's argument.
        return unsafe { real(block) };
    }
    free_in_general(block, entry, bp);
}

#[cold]
#[inline(never)]
extern "C" fn free_in_general(block: Pointer, entry: Entry, bp: usize) {
    about_to_free(block, Caller::new(entry, bp, const { called("free") }));
    REAL.free(block);
}

pub(crate) unsafe extern "C" fn calloc<const NESTS: bool>(
    count: usize,
    size: usize,
    entry: Entry,
    bp: usize,
) -> Pointer {
    let caller = Caller::new(entry, bp, const { called("calloc") });
    // A product that overflows has failed; the requested size does not fit in a number.
    let record = |block| allocated(block, count.saturating_mul(size), caller);
    new_block::<NESTS>(caller, || REAL.calloc(count, size), record)
}

pub(crate) unsafe extern "C" fn realloc<const NESTS: bool>(
    block: Pointer,
    size: usize,
    entry: Entry,
    bp: usize,
) -> Pointer {
    let caller = Caller::new(entry, bp, const { called("realloc") });
    reallocated::<NESTS>(block, size, caller, || REAL.realloc(block, size))
}

pub(crate) unsafe extern "C" fn reallocarray<const NESTS: bool>(
    block: Pointer,
    count: usize,
    size: usize,
    entry: Entry,
    bp: usize,
) -> Pointer {
    let caller = Caller::new(entry, bp, const { called("reallocarray") });
    // glibc's function calls realloc, which is hooked; others do the work themselves. As the
    // product may overflow, only the caller's words are passed on, and the agent's own realloc hook
    // does the recording.
    let Some(bytes) = count.checked_mul(size) else {
        let new = REAL.reallocarray(block, count, size);
        if new.is_null()
            && let Some(mut scope) = Scope::enter(caller.sp())
        {
            events::failed(&mut scope, usize::MAX, NO_STACK);
        }
        return new;
    };
    reallocated::<NESTS>(block, bytes, caller, || REAL.realloc(block, bytes))
}

pub(crate) unsafe extern "C" fn posix_memalign<const NESTS: bool>(
    answer: *mut Pointer,
    alignment: usize,
    size: usize,
    entry: Entry,
    bp: usize,
) -> c_int {
    let caller = Caller::new(entry, bp, const { called("posix_memalign") });
    aligned_block::<NESTS>(answer, size, caller, || REAL.posix_memalign(answer, alignment, size))
}

macro_rules! aligned_hooks {
    ($($name:ident)*) => {$(
        pub(crate) unsafe extern "C" fn $name<const NESTS: bool>(
            alignment: usize,
            size: usize,
            entry: Entry,
            bp: usize,
        ) -> Pointer {
            let caller = Caller::new(entry, bp, const { called(stringify!($name)) });
            new_block::<NESTS>(caller, || REAL.$name(alignment, size), |block| allocated(block, size, caller))
        }
    )*};
}

aligned_hooks! { aligned_alloc memalign }

macro_rules! page_hooks {
    ($($name:ident)*) => {$(
        pub(crate) unsafe extern "C" fn $name<const NESTS: bool>(
            size: usize,
            entry: Entry,
            bp: usize,
        ) -> Pointer {
            let caller = Caller::new(entry, bp, const { called(stringify!($name)) });
            new_block::<NESTS>(caller, || REAL.$name(size), |block| allocated(block, size, caller))
        }
    )*};
}

page_hooks! { valloc pvalloc }

// The C library's own three functions are the same as its `free`, and may call it by name.

pub(crate) unsafe extern "C" fn cfree<const NESTS: bool>(block: Pointer, entry: Entry, bp: usize) {
    let caller = Caller::new(entry, bp, const { called("cfree") });
    freed::<NESTS, _>(block, caller, || if NESTS { REAL.cfree(block) } else { REAL.free(block) });
}

pub(crate) unsafe extern "C" fn free_sized<const NESTS: bool>(
    block: Pointer,
    size: usize,
    entry: Entry,
    bp: usize,
) {
    let caller = Caller::new(entry, bp, const { called("free_sized") });
    freed::<NESTS, _>(block, caller, || if NESTS { REAL.free_sized(block, size) } else { REAL.free(block) });
}

pub(crate) unsafe extern "C" fn free_aligned_sized<const NESTS: bool>(
    block: Pointer,
    alignment: usize,
    size: usize,
    entry: Entry,
    bp: usize,
) {
    let caller = Caller::new(entry, bp, const { called("free_aligned_sized") });
    freed::<NESTS, _>(block, caller, || {
        if NESTS { REAL.free_aligned_sized(block, alignment, size) } else { REAL.free(block) }
    });
}

// glibc's own names of its functions, for programs that bypass replacements of the usual names.

page_hooks! { __libc_malloc __libc_valloc __libc_pvalloc }
aligned_hooks! { __libc_memalign }

pub(crate) unsafe extern "C" fn __libc_free<const NESTS: bool>(block: Pointer, entry: Entry, bp: usize) {
    let caller = Caller::new(entry, bp, const { called("__libc_free") });
    freed::<NESTS, _>(block, caller, || REAL.__libc_free(block));
}

pub(crate) unsafe extern "C" fn __libc_calloc<const NESTS: bool>(
    count: usize,
    size: usize,
    entry: Entry,
    bp: usize,
) -> Pointer {
    let caller = Caller::new(entry, bp, const { called("__libc_calloc") });
    let record = |block| allocated(block, count.saturating_mul(size), caller);
    new_block::<NESTS>(caller, || REAL.__libc_calloc(count, size), record)
}

pub(crate) unsafe extern "C" fn __libc_realloc<const NESTS: bool>(
    block: Pointer,
    size: usize,
    entry: Entry,
    bp: usize,
) -> Pointer {
    let caller = Caller::new(entry, bp, const { called("__libc_realloc") });
    reallocated::<NESTS>(block, size, caller, || REAL.__libc_realloc(block, size))
}

/// Hook of dlclose: the addresses of an unloaded library are forgotten.
pub(crate) unsafe extern "C" fn dlclose(handle: Pointer, entry: Entry, _bp: usize) -> c_int {
    let status = REAL.dlclose(handle);
    if let Some(mut scope) = Scope::enter(entry.sp()) {
        modules::forget_unloaded(&mut Records { scope: &mut scope });
    }
    status
}

pub(crate) unsafe extern "C" fn munmap(address: Pointer, size: usize, entry: Entry, _bp: usize) -> c_int {
    // (An allocator's own unmapping inside a recorded call does not count.)
    if look_inside::is_large(size) && Scope::enter(entry.sp()).is_some() {
        look_inside::before_unmapping();
    }
    if let Some(mut scope) = Scope::enter(entry.sp()) {
        events::unmap(&mut scope, HEAP_MMAP, address as usize, size);
    }
    languages::memory_goes(address as usize, size);
    let status = REAL.munmap(address, size);
    // Another thread may have found the memory readable in between.
    languages::memory_goes(address as usize, size);
    status
}
