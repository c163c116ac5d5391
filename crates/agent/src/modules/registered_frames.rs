//! Unwind tables that a program registers for JIT code (`__register_frame`: LLVM's run-time
//! compilers, and thus PostgreSQL, Julia, Numba).
//!
//! The program's call continues to the compiler's runtime library, which has a list of its own that
//! other code cannot read.
//!
//! ```text
//! begin --> | CIE | FDE | FDE | … | 0 |       a whole section, as libgcc takes it
//! begin --> | FDE |                           one function, as LLVM's libunwind takes it, too
//! ```

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};

use heapr_ring::sys;

use crate::unwind::UnwindTables;

/// Largest number of sections that are known at a time. Frames of any further ones are assumed to
/// have frame pointers. The table lies in memory that is touched as it is used.
const SECTIONS_MAX: usize = 1 << 16;

/// A registered section, and the code that it describes. All zero if it is free.
struct Section {
    /// 0: free. Written last.
    begin: AtomicUsize,
    end: AtomicUsize,
    /// Key by which the program deregisters the section.
    key: AtomicUsize,
    code_low: AtomicUsize,
    code_high: AtomicUsize,
}

static SECTIONS: AtomicPtr<Section> = AtomicPtr::new(core::ptr::null_mut());
/// Number of entries at the beginning of the table that have ever been used.
static SECTION_COUNT: AtomicU32 = AtomicU32::new(0);

fn all() -> &'static [Section] {
    let sections = SECTIONS.load(Acquire);
    if sections.is_null() {
        return &[];
    }
    // SAFETY: mapped in `table` for SECTIONS_MAX zeroed sections, never unmapped; atomics are valid
    // for any bits.
    unsafe { core::slice::from_raw_parts(sections, (SECTION_COUNT.load(Acquire) as usize).min(SECTIONS_MAX)) }
}

fn table() -> Option<&'static [Section]> {
    if SECTIONS.load(Acquire).is_null() {
        let bytes = SECTIONS_MAX.wrapping_mul(size_of::<Section>());
        let memory = sys::map_anonymous(bytes, false).ok()?;
        let is_first =
            SECTIONS.compare_exchange(core::ptr::null_mut(), memory.cast(), AcqRel, Acquire).is_ok();
        if !is_first {
            // SAFETY: the mapping just made, which no other thread has seen.
            unsafe { sys::unmap(memory, bytes) };
        }
    }
    // SAFETY: as in `all`.
    Some(unsafe { core::slice::from_raw_parts(SECTIONS.load(Acquire), SECTIONS_MAX) })
}

/// Enters the section at `begin`, which the program has registered; it is complete, and `key`
/// deregisters it.
pub(crate) fn register(begin: usize, key: usize) {
    /// Value of `begin` while an entry is being filled in: no section begins there.
    const TAKEN: usize = 1;
    if all().iter().any(|section| section.begin.load(Relaxed) == begin) {
        return;
    }
    let Some((end, code)) = UnwindTables::registered_bounds(begin) else { return };
    let Some(sections) = table() else { return };
    let is_taken = |section: &Section| {
        section.begin.load(Relaxed) == 0 && section.begin.compare_exchange(0, TAKEN, AcqRel, Relaxed).is_ok()
    };
    let Some(number) = sections.iter().position(is_taken) else { return };
    let Some(section) = sections.get(number) else { return };
    section.end.store(end, Relaxed);
    section.key.store(key, Relaxed);
    section.code_low.store(code.start, Relaxed);
    section.code_high.store(code.end, Relaxed);
    // Release: pairs with the Acquire in `tables`; the section is complete.
    section.begin.store(begin, Release);
    SECTION_COUNT.fetch_max((number as u32).wrapping_add(1), AcqRel);
}

/// Forgets what the program has registered by `key`. Returns true if a section was known.
pub(crate) fn deregister(key: usize) -> bool {
    let mut is_known = false;
    for section in all().iter().filter(|section| section.key.load(Relaxed) == key) {
        // Cleared first, so that the section is found only by threads that are already reading it.
        section.code_high.store(0, Relaxed);
        section.key.store(0, Relaxed);
        is_known |= section.begin.swap(0, AcqRel) != 0;
    }
    is_known
}

/// Returns the tables that describe the code at an address. (They are read while a frame of that
/// code is on a stack, so the code is not freed in the meantime.)
pub(crate) fn tables(address_avma: usize) -> Option<UnwindTables> {
    let holds = |section: &&Section| {
        section.begin.load(Acquire) > 1
            && address_avma >= section.code_low.load(Relaxed)
            && address_avma < section.code_high.load(Relaxed)
    };
    let of_section = |section: &Section| {
        let tables = UnwindTables::of_registered(section.begin.load(Relaxed), section.end.load(Relaxed));
        tables.describes(address_avma).then_some(tables)
    };
    all().iter().filter(holds).find_map(of_section)
}
