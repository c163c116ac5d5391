//! The rule cache: from a frame's return address to its unwind rule; shared by all threads.
//!
//! ```text
//! entries (8 bytes)                         distinct rules (8 bytes)
//! [return address:48 | number:16]    -->    [rule]
//! ```
//!
//! A program has some thousand call sites but only some hundred different rules. So an entry needs
//! only eight bytes, and eight entries share a cache line. The cache is insert-only and lock-free
//! like the stack tree, so that an entry never changes under a reader. The entries are discarded as
//! a whole when code was unloaded; the rules stay.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};

use heapr_ring::sys;

use crate::arch::Rule;
use crate::modules;
use crate::state::own_stack;

/// Number of entries of the first table (128 KiB). Growth doubles it.
const FIRST_CAPACITY: usize = 1 << 14;
/// Number of elements for distinct rules: as many as a rule number can name.
const RULES_MAX: usize = 1 << 16;
/// End of the return addresses that are cached, as an entry has 48 bits for them. The kernel hands
/// out higher addresses on request only.
const ADDRESS_MAX: u64 = 1 << 48;

#[derive(Debug)]
#[repr(C, align(64))]
struct Table {
    capacity: u64,
    used: AtomicU32,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(core::ptr::null_mut());
static GROWING: AtomicU32 = AtomicU32::new(0);
/// The distinct rules, one after the other, so that they share few cache lines; 0: free. Number 0
/// is unused, because a free entry names it.
static RULES: [AtomicU64; RULES_MAX] = [const { AtomicU64::new(0) }; RULES_MAX];

impl Table {
    #[inline(always)]
    fn entries(&self) -> &[AtomicU64] {
        // SAFETY: `allocate` maps the head and `capacity` entries after it, zeroed; tables are
        // never unmapped.
        unsafe {
            let first = core::ptr::from_ref(self).add(1).cast::<AtomicU64>();
            core::slice::from_raw_parts(first, self.capacity as usize)
        }
    }

    fn allocate(capacity: usize) -> Option<&'static Self> {
        let bytes = size_of::<Self>().wrapping_add(capacity.checked_mul(size_of::<AtomicU64>())?);
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
pub(crate) fn hash(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

/// Returns the rule for a frame that returns to `return_address`, if it is cached.
#[inline(always)]
pub(crate) fn cached(return_address: u64) -> Option<Rule> {
    of_entry(entry(return_address)?)
}

/// Returns the rule that an entry names.
#[inline(always)]
pub(crate) fn of_entry(entry: u64) -> Option<Rule> {
    Rule::from_bits(RULES.get(entry as usize % RULES_MAX)?.load(Relaxed))
}

/// Returns the entry of a return address, if it is cached.
#[inline(always)]
pub(crate) fn entry(return_address: u64) -> Option<u64> {
    let entries = current()?.entries();
    let mask = entries.len().wrapping_sub(1);
    let mut place = hash(return_address) & mask;
    loop {
        // Acquire: pairs with the Release in `insert`; the rule that the entry names is stored.
        let entry = entries.get(place)?.load(Acquire);
        if entry >> 16 == return_address {
            return Some(entry);
        }
        if entry == 0 {
            return None;
        }
        place = place.wrapping_add(1) & mask;
    }
}

/// Finds the rule in the module's unwind information and caches it. Returns `None` if there is no
/// code at the address.
#[cold]
#[inline(never)]
pub(crate) fn look_up(return_address: u64, recorder: &mut dyn modules::ModuleSink) -> Option<Rule> {
    own_stack::run(|| look_up_anew(return_address, recorder))
}

fn look_up_anew(return_address: u64, recorder: &mut dyn modules::ModuleSink) -> Option<Rule> {
    let rule = modules::rule_for(return_address, recorder)?;
    if return_address < ADDRESS_MAX
        && let Some(number) = number_of(rule.bits())
        && let Some(table) = table_with_room()
    {
        insert(table, return_address << 16 | number as u64);
    }
    Some(rule)
}

/// Returns the number of a rule, which gets the next free one if it is new. Returns `None` if there
/// are too many.
fn number_of(rule: u64) -> Option<usize> {
    for (number, place) in RULES.iter().enumerate().skip(1) {
        let mut known = place.load(Relaxed);
        if known == 0 {
            known = place.compare_exchange(0, rule, Relaxed, Relaxed).map_or_else(|known| known, |_| rule);
        }
        if known == rule {
            return Some(number);
        }
    }
    None
}

fn insert(table: &Table, entry: u64) {
    let entries = table.entries();
    let mask = entries.len().wrapping_sub(1);
    let mut place = hash(entry >> 16) & mask;
    for _ in 0..entries.len() {
        let Some(slot) = entries.get(place) else { return };
        // Release: pairs with the Acquire in `entry`; two threads store the same entry.
        match slot.compare_exchange(0, entry, Release, Relaxed) {
            Ok(_) => {
                table.used.fetch_add(1, Relaxed);
                return;
            }
            Err(known) if known >> 16 == entry >> 16 => return,
            Err(_) => place = place.wrapping_add(1) & mask,
        }
    }
}

fn table_with_room() -> Option<&'static Table> {
    let table = current();
    let is_full = |table: Option<&Table>| {
        table.is_none_or(|table| u64::from(table.used.load(Relaxed)) * 2 >= table.capacity)
    };
    if !is_full(table) || GROWING.swap(1, Acquire) != 0 {
        // At most half full, or being copied: a little above half does no harm, a full table would.
        return table.filter(|table| u64::from(table.used.load(Relaxed)) * 8 < table.capacity * 7);
    }
    let table = current();
    let mut answer = table;
    if is_full(table) {
        let capacity = table.map_or(FIRST_CAPACITY, |table| (table.capacity as usize).wrapping_mul(2));
        answer = Table::allocate(capacity);
        if let Some(larger) = answer {
            for entry in table.map_or(&[][..], Table::entries) {
                let entry = entry.load(Acquire);
                if entry != 0 {
                    insert(larger, entry);
                }
            }
            // Release: pairs with the Acquire in `current`.
            TABLE.store(core::ptr::from_ref(larger).cast_mut(), Release);
        }
    }
    GROWING.store(0, Release);
    answer
}

/// Discarded tables, to be used again. Otherwise a program that unloads code all the time would
/// accumulate them.
static RETIRED: [AtomicPtr<Table>; RETIRED_COUNT] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; RETIRED_COUNT];
static RETIRED_NEXT: AtomicU32 = AtomicU32::new(0);

/// Number of tables that must have been discarded before a table is cleared for its next use. By
/// then a lookup that was under way in it has long ended. If a thread sleeps longer in the middle
/// of a lookup, one step of one stack may be unwound by another address's rule. The stack's bounds
/// keep that from doing harm.
const RETIRED_COUNT: usize = 8;

/// Forgets all rules, because code was unloaded or replaced.
pub(crate) fn forget_all() {
    let number = RETIRED_NEXT.fetch_add(1, Relaxed) as usize % RETIRED_COUNT;
    let Some(place) = RETIRED.get(number) else { return };
    let old = TABLE.load(Acquire);
    // SAFETY: null, or a table of ours, which is never unmapped.
    let reused = unsafe { place.swap(old, AcqRel).as_ref() };
    if let Some(table) = reused {
        for entry in table.entries() {
            entry.store(0, Relaxed);
        }
        table.used.store(0, Relaxed);
    }
    let next = reused.map_or(core::ptr::null_mut(), |table| core::ptr::from_ref(table).cast_mut());
    TABLE.store(next, Release);
}
