//! The hooks of mmap and mremap, whose trampolines call the real functions themselves: the actions
//! before and after. (munmap, mprotect, sbrk and brk are hooked like any other function.)

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

use heapr_wire::{
    FLAG_STACK_ALLOC, FLAG_STACK_REALLOC, HEAP_MMAP, PROTECT_MAP, PROTECT_RESERVE, PROTECT_USE, called,
};

use crate::arch::entry::Entry;
use crate::arch::mapping_entries::{mapping_entries, mapping_hooks, mmap64_entry};
use crate::hooks::real::{MMAP, MREMAP, REAL};
use crate::hooks::start_for_mapping;
use crate::hooks::{Caller, Pointer, SLOTS, SlotIndex, stack_for};
use crate::languages;
use crate::record::events;
use crate::record::thread::Scope;

/// Result of mmap and mremap on failure.
const MAP_FAILED: usize = usize::MAX;

/// Protection of a mapping that cannot be used.
const PROT_NONE: usize = 0;
/// Protection of a mapping that can be read.
const PROT_READ: usize = 1;
/// Flag of a mapping that replaces the mappings at its address.
const MAP_FIXED: usize = 0x10;
/// Flag of a mapping for which no memory is reserved: address space, until its protection is
/// changed.
const MAP_NORESERVE: usize = 0x4000;

/// Flags of a mapping that the program makes for itself: private, without a file.
const MAP_PRIVATE_ANONYMOUS: usize = 0x22;

/// Whether mappings are recorded as a heap. If not, only the stacks of mappings are recorded, for
/// their memory at the end.
static IS_HEAP: AtomicBool = AtomicBool::new(false);

/// Records an mmap; called by its trampoline afterwards.
pub(crate) unsafe extern "C" fn after_mmap(
    mapping: usize,
    size: usize,
    entry: Entry,
    bp: usize,
    protection: usize,
    flags: usize,
) {
    if flags & MAP_FIXED != 0 && mapping != MAP_FAILED {
        languages::memory_goes(mapping, size);
    }
    let caller = Caller::new(entry, bp, const { called("mmap") });
    let Some(mut scope) = Scope::enter(caller.sp()) else { return };
    if !IS_HEAP.load(Relaxed) {
        if mapping == MAP_FAILED {
            return;
        }
        if flags & MAP_PRIVATE_ANONYMOUS != MAP_PRIVATE_ANONYMOUS {
            events::unmap(&mut scope, HEAP_MMAP, mapping, size);
            return;
        }
    }
    let stack = stack_for(&mut scope, caller, FLAG_STACK_ALLOC);
    if mapping == MAP_FAILED {
        events::failed(&mut scope, size, stack);
    } else if protection as u32 as usize == PROT_NONE || flags & MAP_NORESERVE != 0 {
        events::protect(&mut scope, PROTECT_MAP, mapping, size, stack);
    } else {
        events::alloc(scope.handle(), HEAP_MMAP, mapping, size, stack);
    }
}

/// Hook of mprotect: memory that was only reserved can be used from here on, or the reverse.
pub(crate) unsafe extern "C" fn mprotect(
    address: Pointer,
    size: usize,
    protection: c_int,
    entry: Entry,
    bp: usize,
) -> c_int {
    let hides = protection as usize & PROT_READ == 0;
    if hides {
        languages::memory_goes(address as usize, size);
    }
    let status = REAL.mprotect(address, size, protection);
    if hides {
        // Another thread may have found the memory readable in between.
        languages::memory_goes(address as usize, size);
    }
    let caller = Caller::new(entry, bp, const { called("mprotect") });
    if status == 0
        && IS_HEAP.load(Relaxed)
        && let Some(mut scope) = Scope::enter(caller.sp())
    {
        let what = if protection as usize == PROT_NONE { PROTECT_RESERVE } else { PROTECT_USE };
        let stack = stack_for(&mut scope, caller, FLAG_STACK_ALLOC);
        events::protect(&mut scope, what, address as usize, size, stack);
    }
    status
}

/// Hook of sbrk, which moves the end of the program's data: the new part is recorded as the
/// caller's. (The C library's allocator moves the end without this function.)
pub(crate) unsafe extern "C" fn sbrk(moved: isize, entry: Entry, bp: usize) -> Pointer {
    let before = REAL.sbrk(moved);
    if before as usize != MAP_FAILED {
        note_moved_end(before as usize, moved, Caller::new(entry, bp, const { called("sbrk") }));
    }
    before
}

/// Hook of brk, which sets the end of the program's data.
pub(crate) unsafe extern "C" fn brk(end: Pointer, entry: Entry, bp: usize) -> c_int {
    let before = REAL.sbrk(0) as usize;
    let status = REAL.brk(end);
    if status == 0 && before != MAP_FAILED {
        let moved = (end as usize).wrapping_sub(before).cast_signed();
        note_moved_end(before, moved, Caller::new(entry, bp, const { called("brk") }));
    }
    status
}

fn note_moved_end(before: usize, moved: isize, caller: Caller) {
    if moved == 0 {
        return;
    }
    if moved < 0 {
        languages::memory_goes(before.wrapping_add_signed(moved), moved.unsigned_abs());
    }
    let Some(mut scope) = Scope::enter(caller.sp()) else { return };
    if moved < 0 {
        events::unmap(&mut scope, HEAP_MMAP, before.wrapping_add_signed(moved), moved.unsigned_abs());
    } else {
        let stack = stack_for(&mut scope, caller, FLAG_STACK_ALLOC);
        events::alloc(scope.handle(), HEAP_MMAP, before, moved.unsigned_abs(), stack);
    }
}

/// Records the old address before an mremap.
pub(crate) unsafe extern "C" fn before_mremap(old: usize, entry: Entry) {
    languages::any_memory_goes();
    if let Some(mut scope) = Scope::enter(entry.sp()) {
        events::realloc_prepare(&mut scope, HEAP_MMAP, old);
    }
}

/// Records the result after an mremap.
pub(crate) unsafe extern "C" fn after_mremap(
    mapping: usize,
    old: usize,
    size: usize,
    entry: Entry,
    bp: usize,
) {
    // Another thread may have found the memory readable in between.
    languages::any_memory_goes();
    let caller = Caller::new(entry, bp, const { called("mremap") });
    let Some(mut scope) = Scope::enter(caller.sp()) else { return };
    if mapping == MAP_FAILED {
        events::realloc_abort(&mut scope, HEAP_MMAP, old, size);
    } else {
        let stack = stack_for(&mut scope, caller, FLAG_STACK_REALLOC);
        events::realloc_commit(&mut scope, HEAP_MMAP, mapping, size, stack);
    }
}

/// Chooses the hooks of mmap and mremap once the session is known.
pub(crate) fn arm(is_heap: bool) {
    IS_HEAP.store(is_heap, Relaxed);
    MAPPING_SLOTS.mmap.store(mmap_hook as *mut (), Relaxed);
    MAPPING_SLOTS.mremap.store(mremap_hook as *mut (), Relaxed);
}

/// Leaves calls that map memory unrecorded, for good.
pub(crate) fn disarm() {
    IS_HEAP.store(false, Relaxed);
    bypass();
}

/// Points the trampolines of all functions that map memory at the real functions.
pub(crate) fn bypass() {
    let pairs = [
        (Some(&MAPPING_SLOTS.mmap), MMAP.address()),
        (Some(&MAPPING_SLOTS.mremap), MREMAP.address()),
        (SLOTS.get(SlotIndex::munmap as usize), REAL.munmap.address()),
        (SLOTS.get(SlotIndex::mprotect as usize), REAL.mprotect.address()),
        (SLOTS.get(SlotIndex::sbrk as usize), REAL.sbrk.address()),
        (SLOTS.get(SlotIndex::brk as usize), REAL.brk.address()),
    ];
    for (slot, address) in pairs {
        if address != 0
            && let Some(slot) = slot
        {
            slot.store(address as *mut (), Relaxed);
        }
    }
}

/// The slots of mmap and mremap; until the agent has started they lead to its start.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct MappingSlots {
    pub(crate) mmap: AtomicPtr<()>,
    pub(crate) mremap: AtomicPtr<()>,
}

/// See [`MappingSlots`].
pub(crate) static MAPPING_SLOTS: MappingSlots = MappingSlots {
    mmap: AtomicPtr::new(mmap_first as *mut ()),
    mremap: AtomicPtr::new(mremap_first as *mut ()),
};

mapping_hooks! { MMAP, after_mmap; MREMAP, before_mremap, after_mremap }

mapping_entries! { MAPPING_SLOTS, start_for_mapping;
    mmap mmap_first "0"
    mremap mremap_first "8"
}

mmap64_entry! { MAPPING_SLOTS }
