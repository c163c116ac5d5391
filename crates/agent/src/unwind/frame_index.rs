//! A sorted index, made by the agent, of a section of unwind tables without one: start addresses of
//! functions, and their FDEs.

/// One function's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub(crate) struct Entry {
    pub(super) start_avma: usize,
    pub(super) fde: usize,
}

/// An index in memory that is never unmapped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameIndex {
    pub(super) entries: *const Entry,
    pub(super) count: usize,
}

impl FrameIndex {
    /// Returns the FDE of the last function that begins at an address or before.
    pub(crate) fn find(self, lookup_avma: usize) -> Option<usize> {
        // SAFETY: `count` entries were made, and are never unmapped.
        let entries = unsafe { core::slice::from_raw_parts(self.entries, self.count) };
        let behind = entries.partition_point(|entry| entry.start_avma <= lookup_avma);
        Some(entries.get(behind.checked_sub(1)?)?.fde)
    }
}

/// Heap sort. The standard library's sort may panic, which the agent must not link, and this sort
/// runs once per module.
pub(super) fn sort(entries: &mut [Entry]) {
    let sift = |entries: &mut [Entry], mut parent: usize, end: usize| {
        loop {
            let left = parent.wrapping_mul(2).wrapping_add(1);
            let right = left.wrapping_add(1);
            let at = |place: usize| entries.get(place).copied().filter(|_| place < end);
            let Some(mut largest) = at(left) else { return };
            let mut place = left;
            if let Some(other) = at(right).filter(|other| *other > largest) {
                (largest, place) = (other, right);
            }
            let Some(own) = at(parent).filter(|own| *own < largest) else { return };
            if let Some(slot) = entries.get_mut(parent) {
                *slot = largest;
            }
            if let Some(slot) = entries.get_mut(place) {
                *slot = own;
            }
            parent = place;
        }
    };
    let count = entries.len();
    for parent in (0..count / 2).rev() {
        sift(entries, parent, count);
    }
    for end in (1..count).rev() {
        let (Some(&first), Some(&last)) = (entries.first(), entries.get(end)) else { return };
        if let Some(slot) = entries.first_mut() {
            *slot = last;
        }
        if let Some(slot) = entries.get_mut(end) {
            *slot = first;
        }
        sift(entries, 0, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_and_the_one_before_an_address_is_found() {
        for count in 0..60_usize {
            let mut entries: Vec<Entry> =
                (0..count).map(|number| Entry { start_avma: number * 37 % 61 * 10, fde: number }).collect();
            let mut expected = entries.clone();
            expected.sort();
            sort(&mut entries);
            assert_eq!(entries, expected);
            let index = FrameIndex { entries: entries.as_ptr(), count };
            for address in 0..620 {
                let before = expected.iter().rev().find(|entry| entry.start_avma <= address);
                assert_eq!(index.find(address), before.map(|entry| entry.fde));
            }
        }
    }
}
