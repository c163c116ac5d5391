//! A group: its occupied slots of 32, and the numbers of their records.
//!
//! ```text
//! group (24 bytes)
//!   home  slots        numbers
//!   ..    7 2 - 11     n7 n2 . n11                     few: in the group itself, unordered
//!   ..    SOME         room, -, 7 2 11 4 | 9 - - -     some: n7 n2 n11 n4 n9 . . .         in a room of eight, likewise
//!   ..    MANY         room, taken                     many: . . n2 . n4 . . n7 . n9 ...   in a room of 32, each at its slot
//! ```
//!
//! Up to four numbers lie in the group itself: this suffices for most groups of most programs.
//! Their slots are compared as the bytes of one word, all at once. No branch depends on the
//! position of a slot, and entries are never moved. (A sorted layout in runs of 1, 3, 8 and 32
//! words, moved by memmove, was slower. On programs whose live blocks fit the caches, the table
//! took a third more time.) Rooms of eight only save memory: each page costs a fault.

use crate::runs::places;

/// Number of slots of a group.
pub(crate) const SLOT_COUNT: usize = 32;
/// Number of entries that a group holds itself.
const FEW: usize = 4;
/// Number of entries of a room of some.
const SOME: usize = 8;
/// Number of entries at which a sweep replaces a room by the next smaller size, which is then half
/// full. (Shrinking on removal took 4 ns of Node's 41 per event: new blocks soon follow freed
/// ones.)
const FEW_AGAIN: usize = FEW / 2;
const SOME_AGAIN: usize = SOME / 2;

/// Stands for a free entry in a byte of slots.
const NO_SLOT: u8 = 0xff;
/// Stands for the slots of a group with a room of some. Differs from all slots and from
/// [`NO_SLOT`].
const IS_SOME: u32 = 0x4040_4040;
/// Stands for the slots of a group with a room of many.
const IS_MANY: u32 = 0x8080_8080;

/// A group of slots with the numbers of their records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Group {
    /// Region of the group, and its index in the region.
    pub(crate) home: u32,
    /// Slot of each number, a byte each.
    slots: u32,
    /// The numbers. In a group with a room, the words are used as in the drawing above.
    numbers: [u32; FEW],
}

const _: () = assert!(size_of::<Group>() == 24);

/// A word of bytes, each of which holds a slot.
trait Slots: Copy {
    /// Index of the first byte with a value.
    fn place_of(self, byte: u8) -> Option<usize>;
    /// Replaces the byte at an index.
    fn with(self, place: usize, byte: u8) -> Self;
}

impl Slots for u32 {
    #[inline(always)]
    fn place_of(self, byte: u8) -> Option<usize> {
        let differing = self ^ (0x0101_0101 * u32::from(byte));
        // The lowest zero byte causes a borrow; the bytes above it do not matter.
        let found = differing.wrapping_sub(0x0101_0101) & !differing & 0x8080_8080;
        (found != 0).then_some(found.trailing_zeros() as usize / 8)
    }

    #[inline(always)]
    fn with(self, place: usize, byte: u8) -> Self {
        self & !(0xff << (place * 8)) | u32::from(byte) << (place * 8)
    }
}

impl Slots for u64 {
    #[inline(always)]
    fn place_of(self, byte: u8) -> Option<usize> {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let differing = self ^ (ONES * u64::from(byte));
        let found = differing.wrapping_sub(ONES) & !differing & ONES << 7;
        (found != 0).then_some(found.trailing_zeros() as usize / 8)
    }

    #[inline(always)]
    fn with(self, place: usize, byte: u8) -> Self {
        self & !(0xff << (place * 8)) | u64::from(byte) << (place * 8)
    }
}

impl Group {
    pub(crate) fn new(home: u32) -> Self {
        Self { home, slots: u32::MAX, numbers: [0; FEW] }
    }

    #[inline(always)]
    fn has_room_of_some(&self) -> bool {
        self.slots == IS_SOME
    }

    #[inline(always)]
    fn has_room_of_many(&self) -> bool {
        self.slots == IS_MANY
    }

    #[inline(always)]
    fn room(&self) -> usize {
        self.numbers[0] as usize
    }

    /// Slots of a group with a room of some.
    #[inline(always)]
    fn some_slots(&self) -> u64 {
        u64::from(self.numbers[2]) | u64::from(self.numbers[3]) << 32
    }

    #[inline(always)]
    fn set_some_slots(&mut self, slots: u64) {
        (self.numbers[2], self.numbers[3]) = (slots as u32, (slots >> 32) as u32);
    }

    /// Whether every slot is free.
    pub(crate) fn is_empty(&self) -> bool {
        match self.slots {
            IS_SOME => self.some_slots() == u64::MAX,
            IS_MANY => self.numbers[1] == 0,
            few => few == u32::MAX,
        }
    }

    /// A bit for each occupied slot.
    pub(crate) fn taken(&self) -> u32 {
        let of_bytes = |bytes: &[u8]| {
            let bit = |slot: u8| u32::from(slot != NO_SLOT) << (slot % SLOT_COUNT as u8);
            bytes.iter().fold(0, |taken, &slot| taken | bit(slot))
        };
        match self.slots {
            IS_SOME => of_bytes(&self.some_slots().to_le_bytes()),
            IS_MANY => self.numbers[1],
            few => of_bytes(&few.to_le_bytes()),
        }
    }
}

/// Rooms of one size.
#[derive(Debug, Default)]
struct RoomsOf<T> {
    rooms: Vec<T>,
    free: Vec<u32>,
}

impl<T> RoomsOf<T> {
    fn count(&self) -> usize {
        self.rooms.len() - self.free.len()
    }

    fn add(&mut self, room: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.rooms[place as usize] = room;
            return place;
        }
        self.rooms.push(room);
        (self.rooms.len() - 1) as u32
    }
}

/// Rooms for the numbers of groups with more than [`FEW`] entries.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    some: RoomsOf<[u32; SOME]>,
    many: RoomsOf<[u32; SLOT_COUNT]>,
}

impl Rooms {
    /// Number of rooms in use.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.some.count() + self.many.count()
    }

    /// The number stored for a slot.
    #[inline(always)]
    pub(crate) fn get(&self, group: &Group, slot: usize) -> Option<u32> {
        if let Some(place) = group.slots.place_of(slot as u8) {
            return Some(group.numbers[place % FEW]);
        }
        if group.has_room_of_many() {
            let is_taken = group.numbers[1] >> slot & 1 != 0;
            return self
                .many
                .rooms
                .get(group.room())
                .filter(|_| is_taken)
                .map(|room| room[slot % SLOT_COUNT]);
        }
        if group.has_room_of_some() {
            let place = group.some_slots().place_of(slot as u8)?;
            return self.some.rooms.get(group.room()).map(|room| room[place % SOME]);
        }
        None
    }

    /// Stores a number for a free slot.
    #[inline(always)]
    pub(crate) fn insert(&mut self, group: &mut Group, slot: usize, number: u32) {
        if let Some(place) = group.slots.place_of(NO_SLOT) {
            group.slots = group.slots.with(place, slot as u8);
            group.numbers[place % FEW] = number;
        } else {
            self.insert_into_room(group, slot, number);
        }
    }

    #[inline]
    fn insert_into_room(&mut self, group: &mut Group, slot: usize, number: u32) {
        if group.has_room_of_some() {
            let slots = group.some_slots();
            if let Some(place) = slots.place_of(NO_SLOT) {
                group.set_some_slots(slots.with(place, slot as u8));
                self.some.rooms[group.room()][place % SOME] = number;
                return;
            }
        }
        if !group.has_room_of_many() {
            let wanted = if group.has_room_of_some() { SLOT_COUNT } else { SOME };
            self.resize(group, wanted);
            return self.insert_into_room(group, slot, number);
        }
        group.numbers[1] |= 1 << slot;
        self.many.rooms[group.room()][slot % SLOT_COUNT] = number;
    }

    /// Frees a slot; returns its number.
    #[inline(always)]
    pub(crate) fn remove(&mut self, group: &mut Group, slot: usize) -> Option<u32> {
        if let Some(place) = group.slots.place_of(slot as u8) {
            group.slots = group.slots.with(place, NO_SLOT);
            return Some(group.numbers[place % FEW]);
        }
        self.remove_from_room(group, slot)
    }

    #[inline]
    fn remove_from_room(&mut self, group: &mut Group, slot: usize) -> Option<u32> {
        let number = self.get(group, slot)?;
        if group.has_room_of_many() {
            group.numbers[1] &= !(1 << slot);
        } else {
            let slots = group.some_slots();
            group.set_some_slots(slots.with(slots.place_of(slot as u8)?, NO_SLOT));
        }
        Some(number)
    }

    /// Replaces a room that is too large for its contents.
    pub(crate) fn shrink(&mut self, group: &mut Group) {
        let taken_count = group.taken().count_ones() as usize;
        if group.has_room_of_many() && taken_count <= SOME_AGAIN
            || group.has_room_of_some() && taken_count <= FEW_AGAIN
        {
            self.resize(group, if taken_count <= FEW_AGAIN { FEW } else { SOME });
        }
    }

    /// Frees all slots.
    pub(crate) fn clear(&mut self, group: &mut Group) {
        self.give_back(group);
        *group = Group::new(group.home);
    }

    fn give_back(&mut self, group: &Group) {
        if group.has_room_of_many() {
            self.many.free.push(group.room() as u32);
        } else if group.has_room_of_some() {
            self.some.free.push(group.room() as u32);
        }
    }

    /// The occupied slots with their numbers, in order.
    #[inline]
    pub(crate) fn entries(&self, group: Group) -> impl Iterator<Item = (usize, u32)> + '_ {
        // Only a room of many has each number at the index of its slot. Otherwise the bytes of
        // slots map numbers to slots.
        let (numbers, bytes): (&[u32], _) = match group.slots {
            IS_MANY => (self.many.rooms.get(group.room()).map_or(&[], |room| room), 0),
            IS_SOME => (self.some.rooms.get(group.room()).map_or(&[], |room| room), group.some_slots()),
            few => (&[], u64::from(few) | u64::from(u32::MAX) << 32),
        };
        places(u64::from(group.taken())).filter_map(move |slot| {
            let place = if group.has_room_of_many() { slot } else { bytes.place_of(slot as u8)? };
            let number = if numbers.is_empty() { group.numbers.get(place) } else { numbers.get(place) };
            Some((slot, *number?))
        })
    }

    /// Moves a group's numbers to the layout for `count` entries.
    #[cold]
    fn resize(&mut self, group: &mut Group, count: usize) {
        let old = *group;
        let mut entries = [(0, 0); SLOT_COUNT];
        let entry_count =
            entries.iter_mut().zip(self.entries(old)).map(|(place, entry)| *place = entry).count();
        self.give_back(&old);
        *group = Group::new(old.home);
        if count == SOME {
            group.slots = IS_SOME;
            group.numbers[0] = self.some.add([0; SOME]);
            group.set_some_slots(u64::MAX);
        } else if count == SLOT_COUNT {
            group.slots = IS_MANY;
            group.numbers[0] = self.many.add([0; SLOT_COUNT]);
        }
        for &(slot, number) in entries.iter().take(entry_count) {
            self.insert(group, slot, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn groups_hold_what_arrays_hold(
            // Phases of mostly insertions, and phases of mostly removals; numbers may be 0.
            steps in prop::collection::vec((0_usize..3, 0_usize..SLOT_COUNT, 0_u32..100), 0..900),
        ) {
            let mut rooms = Rooms::default();
            let mut groups = [Group::new(1); 3];
            let mut arrays = [[None; SLOT_COUNT]; 3];
            for (step, (number, slot, chance)) in steps.into_iter().enumerate() {
                let is_insert = chance < if step / 300 % 2 == 0 { 75 } else { 25 };
                if !is_insert {
                    prop_assert_eq!(rooms.remove(&mut groups[number], slot), arrays[number][slot].take());
                } else if arrays[number][slot].is_none() {
                    rooms.insert(&mut groups[number], slot, chance % 3);
                    arrays[number][slot] = Some(chance % 3);
                }
                if step % 40 == 39 {
                    rooms.shrink(&mut groups[number]);
                }
                if step % 350 == 349 {
                    rooms.clear(&mut groups[number]);
                    arrays[number] = [None; SLOT_COUNT];
                }
                let has_room = |group: &&Group| group.has_room_of_some() || group.has_room_of_many();
                prop_assert_eq!(rooms.count(), groups.iter().filter(has_room).count());
                for (group, array) in groups.iter().zip(&arrays) {
                    let expected: Vec<(usize, u32)> =
                        (0..SLOT_COUNT).filter_map(|slot| Some((slot, array[slot]?))).collect();
                    prop_assert_eq!(&rooms.entries(*group).collect::<Vec<_>>(), &expected);
                    prop_assert_eq!(rooms.get(group, slot), array[slot]);
                    prop_assert_eq!(group.is_empty(), expected.is_empty());
                }
            }
        }
    }
}
