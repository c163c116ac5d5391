//! Numbers of all strings that meet a condition. Nodes can then be tested by name without comparing
//! text each time.

use crate::Strings;

/// Set of string numbers.
#[derive(Debug)]
pub(crate) struct NameSet {
    is_in: Vec<bool>,
}

impl NameSet {
    pub(crate) fn of(strings: &Strings, mut is_wanted: impl FnMut(&[u8]) -> bool) -> Self {
        Self { is_in: (0..strings.count()).map(|number| is_wanted(strings.get(number))).collect() }
    }

    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.is_in.get(number as usize).copied().unwrap_or(false)
    }
}
