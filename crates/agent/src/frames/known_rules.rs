//! The rules that a thread has used lately, in front of the table of all
//! ([`crate::modules::rules`]).
//!
//! A large program has tens of thousands of call sites, and a lookup in the table of all touches a
//! cache line for each. Here eight entries share a line, so that what is unwound all the time stays
//! in the near caches beside the program's own data. (Of what capturing clang's stacks takes, the
//! lookups were 29 %.)

use crate::modules::rules;
use crate::x86_64::Rule;

/// Entries: 32 KiB, of which only what is used is touched.
const ENTRIES: usize = 1 << 12;

/// A thread's rules. All zero: none.
#[repr(C, align(64))]
pub(crate) struct KnownRules {
    /// As those of the table of all; 0: none.
    entries: [u64; ENTRIES],
}

impl KnownRules {
    /// The rule for a frame that returns to `return_address`, if the table of all has it. What is
    /// remembered is of the kept stack's epoch: the caller has seen that this is the present
    /// one.
    #[inline(always)]
    pub(crate) fn cached(&mut self, return_address: u64) -> Option<Rule> {
        let known = self.entries.get_mut(rules::hash(return_address) % ENTRIES)?;
        if *known >> 16 != return_address {
            *known = rules::entry(return_address)?;
        }
        rules::of_entry(*known)
    }

    /// Forgets all rules: the kept stack begins another epoch, since code was unloaded or replaced.
    #[cold]
    #[inline(never)]
    pub(crate) fn forget(&mut self) {
        self.entries.fill(0);
    }
}
