//! Freeing of parts without blocks: groups, rooms, regions, and the blocks of an ended process.

use heapr_trace::ProcessIndex;

use super::{BlockTable, NO_PLACE, PART_BITS, Place, SWEPT_MIN, SWEPT_ROOMS_MIN};
use crate::block_record::is_of;
use crate::group::SLOT_COUNT;
use crate::recent_groups::RecentGroups;
use crate::runs::places;

impl BlockTable {
    /// Frees groups without blocks, regions without groups, and rooms that are too large.
    #[cold]
    pub(super) fn sweep(&mut self) {
        self.recent = RecentGroups::new();
        let mut kept = Vec::with_capacity(self.regions.len() - self.free_regions.len());
        for place in self.directory.iter_mut().filter(|place| place.owner != 0) {
            for part in places(place.groups.taken) {
                let Some(number) = self.region_runs.get(&place.groups, part) else { continue };
                let group = &mut self.groups[number as usize];
                self.rooms.shrink(group);
                if group.is_empty() {
                    self.free_groups.push(number);
                    self.region_runs.remove(&mut place.groups, part);
                }
            }
            if place.groups.taken == 0 {
                self.free_regions.push(place.region);
            } else {
                kept.push(*place);
            }
        }
        self.lay(&kept, self.directory.len());
        // The next sweep is due when the number of groups or rooms has doubled.
        self.sweep_at = SWEPT_MIN.max((self.groups.len() - self.free_groups.len()) * 2);
        self.sweep_at_rooms = SWEPT_ROOMS_MIN.max(self.rooms.count() * 2);
    }

    /// Rebuilds the directory.
    pub(super) fn lay(&mut self, places: &[Place], capacity: usize) {
        self.directory = vec![NO_PLACE; capacity];
        self.directory_shift = 64 - capacity.trailing_zeros();
        for place in places {
            if let Err(free) = self.find(place.owner, place.key) {
                self.directory[free] = *place;
            }
        }
    }

    /// Removes the blocks of a process.
    pub(crate) fn remove_process(&mut self, process: ProcessIndex) {
        if self.cut.left > 0 {
            for group in self.cut.from as usize..(self.cut.from + self.cut.left) as usize {
                if is_of(self.home(&self.groups[group]).0, process) {
                    (0..SLOT_COUNT).for_each(|slot| self.put_aside(group, slot));
                }
            }
        }
        for group in &mut self.groups {
            // (A free group may have any region; it has no blocks.)
            if is_of(self.regions[(group.home >> PART_BITS) as usize].owner, process) {
                self.free_records.extend(self.rooms.entries(*group).map(|(_, number)| number));
                self.rooms.clear(group);
            }
        }
        if self.len() == 0 && self.cut.is_done() {
            *self = Self::new();
        } else {
            self.sweep();
        }
    }
}
