//! Iterators over the live blocks.

use heapr_trace::{Block, ProcessIndex};

use super::{BlockTable, Place, address};
use crate::block_record::is_of;
use crate::group::Group;
use crate::runs::Run;

impl BlockTable {
    /// All live blocks, unordered.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Block> + '_ {
        // Iterates by group instead of by directory, because groups and records lie in the order of
        // first use.
        self.groups.iter().flat_map(|group| self.blocks_of_group(group))
    }

    /// The blocks of a process, unordered. (Searched by directory: there are far fewer regions than
    /// groups, and most belong to other processes.)
    pub(crate) fn blocks_of(&self, process: ProcessIndex) -> Vec<Block> {
        let regions = self.directory.iter().filter(|place| place.owner != 0 && is_of(place.owner, process));
        regions.flat_map(|place| self.blocks_in(place.groups)).collect()
    }

    fn blocks_of_group(&self, group: &Group) -> impl Iterator<Item = Block> + '_ {
        let (owner, key) = self.home(group);
        self.rooms
            .entries(*group)
            .map(move |(slot, number)| self.records[number as usize].block(owner, address(key, slot)))
    }

    fn blocks_in(&self, region: Run) -> impl Iterator<Item = Block> + '_ {
        let groups = self.region_runs.entries(region);
        groups.flat_map(|(_, group)| self.blocks_of_group(&self.groups[group as usize]))
    }

    /// All live blocks in order of process, heap and address.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = Block> + '_ {
        let mut places: Vec<Place> =
            self.directory.iter().filter(|place| place.owner != 0).copied().collect();
        // Ordered by address range first, and by alignment (one of sixteen) last.
        places.sort_unstable_by_key(|place| (place.owner, place.key));
        let mut next = 0;
        let stretches = std::iter::from_fn(move || {
            let first = *places.get(next)?;
            let is_same = |place: &&Place| place.owner == first.owner && place.key >> 4 == first.key >> 4;
            let stretch = &places[next..next + places[next..].iter().take_while(is_same).count()];
            next += stretch.len();
            // A range has several regions only if blocks of several alignments are mixed, which no
            // allocator does.
            let mut mixed = Vec::new();
            if stretch.len() > 1 {
                mixed.extend(stretch.iter().flat_map(|place| self.blocks_in(place.groups)));
                mixed.sort_unstable_by_key(|block| block.address_avma);
            }
            let plain = (stretch.len() == 1).then(|| self.blocks_in(first.groups));
            Some(mixed.into_iter().chain(plain.into_iter().flatten()))
        });
        stretches.flatten()
    }
}
