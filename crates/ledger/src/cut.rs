//! A consistent cut through the live blocks, exported in slices while the blocks change.
//!
//! ```text
//! groups   0 ...... from ............................ end          added later
//!          exported |   still to be exported         |            born after the cut
//!                   +--> moves on, slice by slice
//! ```
//! Beginning a cut copies nothing. A slot that is still to be exported is marked before its first
//! change, and its block is saved. Its later contents are newer than the cut. So an event costs one
//! copied block at most, and otherwise a comparison. The saved blocks and those found by the walk
//! are together exactly the blocks that were live at the cut.

use heapr_trace::Block;

/// State of a cut. Without a cut, `left` is 0 and no slot is watched.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// First group that is still to be exported.
    pub(crate) from: u32,
    /// Number of groups still to be exported.
    pub(crate) left: u32,
    /// Slots that have changed since the cut: a bit per slot, by group.
    pub(crate) changed: Vec<u32>,
    /// Blocks that these slots held at the cut.
    pub(crate) put_aside: Vec<Block>,
}

impl Cut {
    /// Whether a group is still to be exported.
    #[inline(always)]
    pub(crate) fn watches(&self, group: usize) -> bool {
        (group as u32).wrapping_sub(self.from) < self.left
    }

    /// Begins a cut through all groups.
    pub(crate) fn begin(&mut self, group_count: usize) {
        *self = Self {
            from: 0,
            left: group_count as u32,
            // Zeroed pages: none is touched before a slot changes.
            changed: vec![0; group_count],
            put_aside: Vec::new(),
        };
    }

    /// Marks a slot as changed; returns whether this is the first change.
    pub(crate) fn mark(&mut self, group: usize, slot: usize) -> bool {
        let Some(changed) = self.changed.get_mut(group) else { return false };
        let is_first = *changed & 1 << slot == 0;
        *changed |= 1 << slot;
        is_first
    }

    /// Whether the cut is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.left == 0 && self.put_aside.is_empty()
    }
}
