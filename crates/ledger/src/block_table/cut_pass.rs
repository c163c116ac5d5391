//! A cut through the live blocks: the blocks of one moment, read in slices while events continue.

use heapr_trace::Block;

use super::{BlockTable, address};
use crate::cut::Cut;

impl BlockTable {
    /// Begins a cut and abandons a cut that is under way.
    pub(crate) fn begin_cut(&mut self) {
        self.cut.begin(self.groups.len());
    }

    /// Abandons the cut.
    pub(crate) fn abandon_cut(&mut self) {
        self.cut = Cut::default();
    }

    /// Whether saved blocks wait to be read.
    #[inline(always)]
    pub(crate) fn has_put_aside(&self) -> bool {
        !self.cut.put_aside.is_empty()
    }

    /// Passes further blocks of the cut to `visit`: the saved ones, and those of the next
    /// `group_count` groups. Returns whether the cut is complete.
    pub(crate) fn cut_slice(&mut self, group_count: usize, mut visit: impl FnMut(&Block)) -> bool {
        self.cut.put_aside.iter().for_each(&mut visit);
        self.cut.put_aside.clear();
        let from = self.cut.from as usize;
        let taken = group_count.min(self.cut.left as usize);
        for number in from..from + taken {
            let group = self.groups[number];
            let changed = self.cut.changed[number];
            let (owner, key) = self.home(&group);
            for (slot, record) in self.rooms.entries(group) {
                if changed >> slot & 1 == 0 {
                    visit(&self.records[record as usize].block(owner, address(key, slot)));
                }
            }
        }
        self.cut.from += taken as u32;
        self.cut.left -= taken as u32;
        let is_done = self.cut.is_done();
        if is_done {
            self.abandon_cut();
        }
        is_done
    }
}
