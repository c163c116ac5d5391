//! A sorted index of a section of unwind tables that has none: where functions begin, and where their FDEs are.

use super::byte_reader::{Reader, SEGMENTS_MAX, Segments};
use super::call_frame::{Form, for_each_fde};

/// One function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub(crate) struct Entry {
    start_avma: usize,
    fde: usize,
}

/// An index in memory that is never unmapped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameIndex {
    entries: *const Entry,
    count: usize,
}

/// The section `begin..end` and the segments that its entries may point into.
pub(crate) struct ToIndex<'a> {
    pub(crate) begin: usize,
    pub(crate) end: usize,
    pub(crate) form: Form,
    pub(crate) segments: &'a [(usize, usize); SEGMENTS_MAX],
}

impl ToIndex<'_> {
    fn for_each(&self, visit: &mut dyn FnMut(usize, usize)) {
        let section = Reader { position: self.begin, end: self.end };
        for_each_fde(&Segments(*self.segments), self.form, section, &mut |fde, start, _| {
            visit(fde, start);
            false
        });
    }

    /// Bytes that its index takes.
    pub(crate) fn index_bytes(&self) -> usize {
        let mut count = 0_usize;
        self.for_each(&mut |_, _| count = count.wrapping_add(1));
        count.wrapping_mul(size_of::<Entry>())
    }

    /// Makes the index in memory of so many bytes.
    ///
    /// # Safety
    /// 1. `memory..memory + bytes` is mapped for this alone, aligned as an entry, and never unmapped.
    pub(crate) unsafe fn index_in(&self, memory: *mut u8, bytes: usize) -> FrameIndex {
        // SAFETY: (1); any bits are an entry.
        let entries =
            unsafe { core::slice::from_raw_parts_mut(memory.cast::<Entry>(), bytes / size_of::<Entry>()) };
        let mut count = 0_usize;
        self.for_each(&mut |fde, start_avma| {
            if let Some(place) = entries.get_mut(count) {
                *place = Entry { start_avma, fde };
                count = count.wrapping_add(1);
            }
        });
        sort(entries.get_mut(..count).unwrap_or_default());
        FrameIndex { entries: entries.as_ptr(), count }
    }
}

impl FrameIndex {
    /// The FDE of the last function that begins at an address or before.
    pub(crate) fn find(self, lookup_avma: usize) -> Option<usize> {
        // SAFETY: as many entries were made, and are never unmapped.
        let entries = unsafe { core::slice::from_raw_parts(self.entries, self.count) };
        let behind = entries.partition_point(|entry| entry.start_avma <= lookup_avma);
        Some(entries.get(behind.checked_sub(1)?)?.fde)
    }
}

/// Heap sort: the standard library's may panic, which the agent must not link, and this is done once for a module.
fn sort(entries: &mut [Entry]) {
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
