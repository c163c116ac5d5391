//! A consistent cut through the live blocks, taken out in slices while they change.
//!
//! ```text
//! groups   0 ...... from ............................ end          made later
//!          exported |   still to be exported         |            born after the cut
//!                   +--> moves on, slice by slice
//! ```
//! At the cut nothing is copied. Before a slot that is still to be exported changes for the first
//! time, what it holds is put aside, and the slot is marked: whatever it holds from then on is of
//! after the cut. So an event costs one block at most and a comparison at least, and the blocks
//! that come out, those put aside and those found by the walk, are exactly those that were live at
//! the cut.

use heapr_trace::Block;

/// State of a cut; idle, `left` is 0 and no slot is watched.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// First group that is still to be exported.
    pub(crate) from: u32,
    /// Groups still to be exported.
    pub(crate) left: u32,
    /// By group: a bit for each slot that has changed since the cut.
    pub(crate) changed: Vec<u32>,
    /// What those slots held.
    pub(crate) put_aside: Vec<Block>,
}

impl Cut {
    /// Whether a group is still to be exported.
    #[inline(always)]
    pub(crate) fn watches(&self, group: usize) -> bool {
        (group as u32).wrapping_sub(self.from) < self.left
    }

    /// Begins with all groups.
    pub(crate) fn begin(&mut self, group_count: usize) {
        *self = Self {
            from: 0,
            left: group_count as u32,
            // Zeroed pages: nothing is touched before a slot changes.
            changed: vec![0; group_count],
            put_aside: Vec::new(),
        };
    }

    /// Marks a slot as changed; tells whether it was not marked before.
    pub(crate) fn mark(&mut self, group: usize, slot: usize) -> bool {
        let Some(changed) = self.changed.get_mut(group) else { return false };
        let is_first = *changed & 1 << slot == 0;
        *changed |= 1 << slot;
        is_first
    }

    /// Whether everything is out.
    pub(crate) fn is_done(&self) -> bool {
        self.left == 0 && self.put_aside.is_empty()
    }
}
