//! The rule cache: from the address that a frame returns to, to how it is unwound; shared by all threads.
//!
//! Insert-only and lock-free like the stack tree, so that an entry never changes under a reader. It is thrown away as a
//! whole when code was unloaded.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};

use heapr_ring::sys;

use crate::modules;
use crate::x86_64::Rule;

/// Entries of the first table (256 KiB). Growth doubles it.
const FIRST_CAPACITY: usize = 1 << 14;

#[derive(Debug)]
#[repr(C, align(16))]
struct Entry {
    /// The return address; claimed with compare-exchange from 0.
    return_address: AtomicU64,
    /// The rule; 0 until it is stored, once.
    rule: AtomicU64,
}

#[derive(Debug)]
#[repr(C, align(64))]
struct Table {
    capacity: u64,
    used: AtomicU32,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(core::ptr::null_mut());
static GROWING: AtomicU32 = AtomicU32::new(0);

impl Table {
    #[inline(always)]
    fn entries(&self) -> &[Entry] {
        // SAFETY: `allocate` maps the head and `capacity` entries behind it, zeroed; tables are never unmapped.
        unsafe {
            let first = core::ptr::from_ref(self).add(1).cast::<Entry>();
            core::slice::from_raw_parts(first, self.capacity as usize)
        }
    }

    fn allocate(capacity: usize) -> Option<&'static Self> {
        let bytes = size_of::<Self>().wrapping_add(capacity.checked_mul(size_of::<Entry>())?);
        let table = sys::map_anonymous(bytes, false).ok()?.cast::<Self>();
        // SAFETY: a fresh mapping of at least one head, never unmapped.
        unsafe {
            (*table).capacity = capacity as u64;
            Some(&*table)
        }
    }
}

fn current() -> Option<&'static Table> {
    // SAFETY: null, or a table published here, which is never unmapped.
    unsafe { TABLE.load(Acquire).as_ref() }
}

#[inline(always)]
fn hash(return_address: u64) -> usize {
    (return_address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

/// The rule for a frame that returns to `return_address`, if it is cached.
#[inline(always)]
pub(crate) fn cached(return_address: u64) -> Option<Rule> {
    let table = current()?;
    let entries = table.entries();
    let mask = entries.len().wrapping_sub(1);
    let mut place = hash(return_address) & mask;
    loop {
        let entry = entries.get(place)?;
        let found = entry.return_address.load(Acquire);
        if found == return_address {
            return Rule::from_bits(entry.rule.load(Acquire));
        }
        if found == 0 {
            return None;
        }
        place = place.wrapping_add(1) & mask;
    }
}

/// Finds the rule in the module's unwind information and caches it.
#[cold]
#[inline(never)]
pub(crate) fn look_up(return_address: u64, recorder: &mut dyn modules::ModuleSink) -> Rule {
    let rule = modules::rule_for(return_address, recorder);
    if let Some(table) = table_with_room() {
        insert(table, return_address, rule.bits());
    }
    rule
}

fn insert(table: &Table, return_address: u64, rule: u64) {
    let entries = table.entries();
    let mask = entries.len().wrapping_sub(1);
    let mut place = hash(return_address) & mask;
    for _ in 0..entries.len() {
        let Some(entry) = entries.get(place) else { return };
        let found = match entry.return_address.compare_exchange(0, return_address, AcqRel, Acquire) {
            Ok(_) => {
                table.used.fetch_add(1, Relaxed);
                return_address
            }
            Err(found) => found,
        };
        if found == return_address {
            // Release: pairs with the Acquire in `cached`. Two threads store the same rule.
            entry.rule.store(rule, Release);
            return;
        }
        place = place.wrapping_add(1) & mask;
    }
}

fn table_with_room() -> Option<&'static Table> {
    let table = current();
    let is_full = |table: Option<&Table>| {
        table.is_none_or(|table| u64::from(table.used.load(Relaxed)) * 2 >= table.capacity)
    };
    if !is_full(table) || GROWING.swap(1, Acquire) != 0 {
        // At most half full, or being copied: a little above half does no harm, a full one would.
        return table.filter(|table| u64::from(table.used.load(Relaxed)) * 8 < table.capacity * 7);
    }
    let table = current();
    let mut answer = table;
    if is_full(table) {
        let capacity = table.map_or(FIRST_CAPACITY, |table| (table.capacity as usize).wrapping_mul(2));
        answer = Table::allocate(capacity);
        if let Some(larger) = answer {
            for entry in table.map_or(&[][..], Table::entries) {
                let (address, rule) = (entry.return_address.load(Acquire), entry.rule.load(Acquire));
                if address != 0 && rule != 0 {
                    insert(larger, address, rule);
                }
            }
            // Release: pairs with the Acquire in `current`.
            TABLE.store(core::ptr::from_ref(larger).cast_mut(), Release);
        }
    }
    GROWING.store(0, Release);
    answer
}

/// Tables that were thrown away, to be used again: a program that unloads code all the time must not collect them.
static RETIRED: [AtomicPtr<Table>; RETIRED_COUNT] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; RETIRED_COUNT];
static RETIRED_NEXT: AtomicU32 = AtomicU32::new(0);

/// A table is cleared for its next use only after this many others have been thrown away, so that a lookup that was
/// under way in it has long ended; should a thread sleep for longer in the middle of a lookup, one step of one stack may be
/// unwound by another address's rule, which the stack's bounds keep from doing harm.
const RETIRED_COUNT: usize = 8;

/// Forgets all rules: code was unloaded or replaced.
pub(crate) fn forget_all() {
    let number = RETIRED_NEXT.fetch_add(1, Relaxed) as usize % RETIRED_COUNT;
    let Some(place) = RETIRED.get(number) else { return };
    let old = TABLE.load(Acquire);
    // SAFETY: null, or a table of ours, which is never unmapped.
    let reused = unsafe { place.swap(old, AcqRel).as_ref() };
    if let Some(table) = reused {
        for entry in table.entries() {
            entry.return_address.store(0, Relaxed);
            entry.rule.store(0, Relaxed);
        }
        table.used.store(0, Relaxed);
    }
    let next = reused.map_or(core::ptr::null_mut(), |table| core::ptr::from_ref(table).cast_mut());
    TABLE.store(next, Release);
}
