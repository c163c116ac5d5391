//! Makes the index of a section of unwind tables that has no index.

use super::byte_reader::{Reader, SEGMENTS_MAX, Segments};
use super::frame_entry::{Form, for_each_fde};
use super::frame_index::{Entry, FrameIndex, sort};

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

    /// Returns the size of the section's index in bytes.
    pub(crate) fn index_bytes(&self) -> usize {
        let mut count = 0_usize;
        self.for_each(&mut |_, _| count = count.wrapping_add(1));
        count.wrapping_mul(size_of::<Entry>())
    }

    /// Makes the index in memory of `bytes` bytes.
    ///
    /// # Safety
    /// 1. `memory..memory + bytes` is mapped for this index alone, aligned as an entry, and never
    ///    unmapped.
    pub(crate) unsafe fn index_in(&self, memory: *mut u8, bytes: usize) -> FrameIndex {
        // SAFETY: (1); any bits are a valid entry.
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
