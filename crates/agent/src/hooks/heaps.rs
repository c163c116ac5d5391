//! Heaps that the program defines itself: pools and arenas that report their allocations and frees
//! (`heapr_heap.h`).
//!
//! A program reaches these functions through weak symbols: without the agent they are absent, and
//! its calls cost a comparison. A heap's number (2 to 238) is in each of its events; 0 and 1 are
//! malloc and mmap.
//!
//! ```text
//! handle = generation:56 number:8
//! generation: raised when a heap gets the number, and when it is destroyed; odd in between
//! ```
//! Thus the handle of a destroyed heap is recognised, and calls with it do nothing. A new heap gets
//! the number that one of the same name had before, if that is free. So arenas that come and go
//! under one name stay together in reports.

use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicU64, Ordering::*};

use heapr_wire::{FLAG_STACK_ALLOC, FLAG_STACK_CREATE, FLAG_STACK_DESTROY, FLAG_STACK_REALLOC, called};

use crate::arch::entries::heap_entries;
use crate::arch::entry::Entry;
use crate::hooks::{Caller, stack_for};
use crate::record::events;
use crate::record::thread::Scope;
use crate::state::AGENT;

/// First number of a heap that the program defines.
const FIRST: usize = 2;
/// Number of heaps that can exist at once.
const HEAP_COUNT: usize = heapr_wire::RUNTIME_HEAP - FIRST;
/// Largest number of bytes of a name that are stored: four records of sixteen.
const NAME_BYTES_MAX: usize = 64;

/// Number of times that each number was given or freed; odd: its heap exists.
static GENERATIONS: [AtomicU64; HEAP_COUNT] = [const { AtomicU64::new(0) }; HEAP_COUNT];
/// Hash of the name that each number had last; 0: no name yet.
static NAMES: [AtomicU64; HEAP_COUNT] = [const { AtomicU64::new(0) }; HEAP_COUNT];

/// The program's handle of a heap.
type Handle = *mut c_void;

/// Returns the heap's number, if the heap exists.
fn number_of(handle: Handle) -> Option<u8> {
    let word = handle as usize as u64;
    let number = word as u8;
    let place = usize::from(number).checked_sub(FIRST)?;
    let generation = GENERATIONS.get(place)?.load(Relaxed);
    (generation & 1 == 1 && generation == word >> 8).then_some(number)
}

/// Takes a free number: one that the same name had, else one that no name had, else any. Returns
/// the number with its generation.
fn take_number(name_hash: u64) -> Option<(u8, u64)> {
    let wanted = [name_hash, 0];
    for attempt in 0..=wanted.len() {
        for (place, (generation, name)) in GENERATIONS.iter().zip(&NAMES).enumerate() {
            let now = generation.load(Relaxed);
            let fits = wanted.get(attempt).is_none_or(|&wanted| name.load(Relaxed) == wanted);
            if now & 1 == 1 || !fits {
                continue;
            }
            // AcqRel: the name belongs to the thread that made the generation odd.
            if generation.compare_exchange(now, now.wrapping_add(1), AcqRel, Relaxed).is_ok() {
                name.store(name_hash, Relaxed);
                return Some(((place.wrapping_add(FIRST)) as u8, now.wrapping_add(1)));
            }
        }
    }
    None
}

/// Returns the stored bytes of a name.
fn bytes_of(name: *const c_char) -> ([u8; NAME_BYTES_MAX], usize) {
    let mut bytes = [0; NAME_BYTES_MAX];
    let mut length = 0;
    if name.is_null() {
        return (bytes, length);
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: the caller passes a zero-terminated string; no byte after its end is read.
        let found = unsafe { *name.cast::<u8>().add(place) };
        if found == 0 {
            break;
        }
        *byte = found;
        length = place.wrapping_add(1);
    }
    (bytes, length)
}

/// Returns the FNV-1a hash; never 0, which means no name.
fn hash_of(bytes: &[u8]) -> u64 {
    let mixed = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    mixed | 1
}

/// `heapr_heap_create`.
pub(crate) unsafe extern "C" fn create(name: *const c_char, entry: Entry, bp: usize) -> Handle {
    let none = core::ptr::null_mut();
    let caller = Caller::new(entry, bp, const { called("heapr_heap_create") });
    if !AGENT.is_active() {
        return none;
    }
    let Some(mut scope) = Scope::enter(caller.sp()) else { return none };
    let (bytes, length) = bytes_of(name);
    let name = bytes.get(..length).unwrap_or_default();
    let Some((number, generation)) = take_number(hash_of(name)) else { return none };
    let handle = generation << 8 | u64::from(number);
    let stack = stack_for(&mut scope, caller, FLAG_STACK_CREATE);
    events::heap_created(&mut scope, number, name, handle, stack);
    handle as usize as Handle
}

/// `heapr_heap_destroy`.
pub(crate) unsafe extern "C" fn destroy(heap: Handle, entry: Entry, bp: usize) {
    let Some(number) = number_of(heap) else { return };
    let caller = Caller::new(entry, bp, const { called("heapr_heap_destroy") });
    if AGENT.is_active()
        && let Some(mut scope) = Scope::enter(caller.sp())
    {
        let stack = stack_for(&mut scope, caller, FLAG_STACK_DESTROY);
        events::heap_destroyed(&mut scope, number, heap as usize as u64, stack);
    }
    // After the record: the number's next heap must have later events.
    if let Some(generation) = GENERATIONS.get(usize::from(number).wrapping_sub(FIRST)) {
        let now = heap as usize as u64 >> 8;
        let _ = generation.compare_exchange(now, now.wrapping_add(1), AcqRel, Relaxed);
    }
}

/// `heapr_heap_alloc`.
pub(crate) unsafe extern "C" fn alloc(
    heap: Handle,
    block: *const c_void,
    size: usize,
    entry: Entry,
    bp: usize,
) {
    let Some(number) = number_of(heap) else { return };
    let caller = Caller::new(entry, bp, const { called("heapr_heap_alloc") });
    if block.is_null() || !AGENT.is_active() {
        return;
    }
    let Some(mut scope) = Scope::enter(caller.sp()) else { return };
    let stack = stack_for(&mut scope, caller, FLAG_STACK_ALLOC);
    events::alloc(scope.handle(), number, block as usize, size, stack);
}

/// `heapr_heap_free`.
pub(crate) unsafe extern "C" fn free(heap: Handle, block: *const c_void, entry: Entry, _bp: usize) {
    let Some(number) = number_of(heap) else { return };
    if block.is_null() || !AGENT.is_active() {
        return;
    }
    if let Some(mut scope) = Scope::enter(entry.sp()) {
        events::free(&mut scope, number, block as usize);
    }
}

/// `heapr_heap_resize`.
pub(crate) unsafe extern "C" fn resize(
    heap: Handle,
    old: *const c_void,
    block: *const c_void,
    size: usize,
    entry: Entry,
    bp: usize,
) {
    let Some(number) = number_of(heap) else { return };
    let caller = Caller::new(entry, bp, const { called("heapr_heap_resize") });
    if old.is_null() || block.is_null() || !AGENT.is_active() {
        return;
    }
    let Some(mut scope) = Scope::enter(caller.sp()) else { return };
    let stack = stack_for(&mut scope, caller, FLAG_STACK_REALLOC);
    if events::realloc_prepare(&mut scope, number, old as usize) {
        events::realloc_commit(&mut scope, number, block as usize, size, stack);
    }
}

heap_entries! {
    heapr_heap_create 1 create;
    heapr_heap_destroy 1 destroy;
    heapr_heap_alloc 3 alloc;
    heapr_heap_free 2 free;
    heapr_heap_resize 4 resize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_goes_to_the_name_that_had_it_and_an_old_handle_names_nothing() {
        let (one, other) = (hash_of(b"one"), hash_of(b"other"));
        let handle =
            |(number, generation): (u8, u64)| (generation << 8 | u64::from(number)) as usize as Handle;
        let first = take_number(one).unwrap();
        let second = take_number(other).unwrap();
        assert_ne!(first.0, second.0);
        assert_eq!(number_of(handle(first)), Some(first.0));
        GENERATIONS[usize::from(first.0) - FIRST].fetch_add(1, Relaxed);
        assert_eq!(number_of(handle(first)), None, "it is gone");
        let third = take_number(hash_of(b"third")).unwrap();
        assert_ne!(third.0, first.0, "a number without a name comes first");
        let again = take_number(one).unwrap();
        assert_eq!(again.0, first.0);
        assert_ne!(handle(again), handle(first));
        assert_eq!(number_of(core::ptr::null_mut()), None);
    }

    #[test]
    fn a_name_is_cut_where_it_ends_or_is_too_long() {
        let bytes = |text: &'static core::ffi::CStr| bytes_of(text.as_ptr()).1;
        assert_eq!(bytes(c"pool"), 4);
        assert_eq!(
            bytes(c"0123456789012345678901234567890123456789012345678901234567890123456789"),
            NAME_BYTES_MAX
        );
        assert_eq!(bytes_of(core::ptr::null()).1, 0);
    }
}
