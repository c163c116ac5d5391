//! The rules that a thread has used recently, as a cache in front of the shared table
//! ([`crate::modules::rules`]).
//!
//! A large program has tens of thousands of call sites, and a lookup in the shared table touches a
//! cache line for each. Here eight entries share a line, so that rules in constant use stay in the
//! near caches beside the program's own data. (Of the time for capturing clang's stacks the lookups
//! took 29 %.)

use crate::arch::Rule;
use crate::modules::rules;

/// Number of entries: 32 KiB, of which only the used part is touched.
const ENTRIES: usize = 1 << 12;

/// A thread's rules. All zero: empty.
#[repr(C, align(64))]
pub(crate) struct KnownRules {
    /// Entries like those of the shared table; 0: free.
    entries: [u64; ENTRIES],
}

impl KnownRules {
    /// Returns the rule for a frame that returns to `return_address`, if the shared table has it.
    /// The remembered rules belong to the cached stack's epoch, and the caller has checked that
    /// this is the present one.
    #[inline(always)]
    pub(crate) fn cached(&mut self, return_address: u64) -> Option<Rule> {
        let known = self.entries.get_mut(rules::hash(return_address) % ENTRIES)?;
        if *known >> 16 != return_address {
            *known = rules::entry(return_address)?;
        }
        rules::of_entry(*known)
    }

    /// Forgets all rules, because code was unloaded or replaced and the cached stack begins another
    /// epoch.
    #[cold]
    #[inline(never)]
    pub(crate) fn forget(&mut self) {
        self.entries.fill(0);
    }
}
