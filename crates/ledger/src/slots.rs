//! The numbers of a group's blocks: three in the group's own entry, or an array with a place for each slot.
//!
//! ```text
//! entry   count 0..3 | slots s0 s1 s2 | numbers n0 n1 n2            few blocks: large ones, or the last of a group
//!         MANY       |  -             | array, block count, -  -->  [n of slot 0, n of slot 1, ... 31]   (0: none)
//! ```
//! Groups of small blocks are nearly full and looked up most: they have arrays. With arrays for all, a block of 200 bytes took 85 bytes
//! of the recorder; with runs of numbers that grow and shrink instead, each event took 10 to 15 ns more.

/// Slots of a group.
pub(crate) const SLOT_COUNT: usize = 32;
/// Numbers in an entry.
const FEW: usize = 3;
/// In `count`: the numbers are in an array.
const MANY: u8 = u8::MAX;

/// What an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slots {
    numbers: [u32; FEW],
    slots: [u8; FEW],
    count: u8,
}

impl Slots {
    pub(crate) const EMPTY: Self = Self { numbers: [0; FEW], slots: [0; FEW], count: 0 };

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline(always)]
    fn place(&self, slot: usize) -> Option<usize> {
        (0..usize::from(self.count).min(FEW)).find(|&place| usize::from(self.slots[place]) == slot)
    }
}

/// All arrays: record numbers + 1; 0: no block.
#[derive(Debug, Default)]
pub(crate) struct Arrays {
    arrays: Vec<[u32; SLOT_COUNT]>,
    free: Vec<u32>,
}

impl Arrays {
    /// The number of a slot.
    #[inline(always)]
    pub(crate) fn get(&self, slots: &Slots, slot: usize) -> Option<u32> {
        if slots.count == MANY {
            return self.arrays.get(slots.numbers[0] as usize)?[slot].checked_sub(1);
        }
        slots.place(slot).map(|place| slots.numbers[place])
    }

    /// Gives a number to a slot that has none.
    #[inline(always)]
    pub(crate) fn insert(&mut self, slots: &mut Slots, slot: usize, number: u32) {
        if usize::from(slots.count) == FEW {
            self.make_many(slots);
        }
        if slots.count == MANY {
            self.arrays[slots.numbers[0] as usize][slot] = number + 1;
            slots.numbers[1] += 1;
            return;
        }
        let count = usize::from(slots.count);
        // In the order of slots: blocks come out by address.
        let at = slots.slots[..count].iter().take_while(|&&other| usize::from(other) < slot).count();
        slots.slots.copy_within(at..count, at + 1);
        slots.numbers.copy_within(at..count, at + 1);
        slots.slots[at] = slot as u8;
        slots.numbers[at] = number;
        slots.count += 1;
    }

    #[cold]
    fn make_many(&mut self, slots: &mut Slots) {
        let mut array = [0; SLOT_COUNT];
        for (&slot, &number) in slots.slots.iter().zip(&slots.numbers) {
            array[usize::from(slot)] = number + 1;
        }
        let index = match self.free.pop() {
            Some(index) => {
                self.arrays[index as usize] = array;
                index
            }
            None => {
                self.arrays.push(array);
                (self.arrays.len() - 1) as u32
            }
        };
        *slots = Slots { numbers: [index, FEW as u32, 0], slots: [0; FEW], count: MANY };
    }

    /// Takes the number of a slot out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slots: &mut Slots, slot: usize) -> Option<u32> {
        if slots.count == MANY {
            let number = std::mem::take(&mut self.arrays[slots.numbers[0] as usize][slot]).checked_sub(1)?;
            slots.numbers[1] -= 1;
            if slots.numbers[1] == 0 {
                self.clear(slots);
            }
            return Some(number);
        }
        let place = slots.place(slot)?;
        let number = slots.numbers[place];
        slots.slots.copy_within(place + 1.., place);
        slots.numbers.copy_within(place + 1.., place);
        slots.count -= 1;
        Some(number)
    }

    /// Takes all numbers out.
    pub(crate) fn clear(&mut self, slots: &mut Slots) {
        if slots.count == MANY {
            self.free.push(slots.numbers[0]);
        }
        *slots = Slots::EMPTY;
    }

    /// Puts the numbers of an array that has become nearly empty back into the entry.
    pub(crate) fn shrink(&mut self, slots: &mut Slots) {
        if slots.count != MANY || slots.numbers[1] as usize > FEW {
            return;
        }
        let mut few = Slots::EMPTY;
        for (place, (slot, number)) in self.iter(slots).enumerate() {
            few.slots[place] = slot as u8;
            few.numbers[place] = number;
            few.count += 1;
        }
        self.clear(slots);
        *slots = few;
    }

    /// The slots that have numbers, in order, with these.
    pub(crate) fn iter(&self, slots: &Slots) -> impl Iterator<Item = (usize, u32)> + use<'_> {
        let slots = *slots;
        let array = (slots.count == MANY).then(|| self.arrays.get(slots.numbers[0] as usize)).flatten();
        let many = array.into_iter().flatten().enumerate();
        let many = many.filter_map(|(slot, &number)| Some((slot, number.checked_sub(1)?)));
        let few = if slots.count == MANY { 0 } else { usize::from(slots.count) };
        many.chain((0..few).map(move |place| (usize::from(slots.slots[place]), slots.numbers[place])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries that grow into arrays and shrink again, against plain arrays.
    #[test]
    fn it_holds_what_plain_arrays_hold() {
        let mut arrays = Arrays::default();
        let mut entries = [Slots::EMPTY; 5];
        let mut model = [[None; SLOT_COUNT]; 5];
        let mut random = 3_u64;
        for step in 0..200_000_u32 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let (entry, slot) = (random as usize % 5, (random >> 20) as usize % SLOT_COUNT);
            // Each entry has times of many blocks and times of few.
            let fills = (random >> 40) % 10 < if (step >> 9).is_multiple_of(2) { 8 } else { 2 };
            if fills && model[entry][slot].is_none() {
                arrays.insert(&mut entries[entry], slot, step);
                model[entry][slot] = Some(step);
            } else if !fills {
                assert_eq!(arrays.remove(&mut entries[entry], slot), model[entry][slot].take());
            }
            if step % 1_000 == 0 {
                entries.iter_mut().for_each(|entry| arrays.shrink(entry));
            }
            assert_eq!(arrays.get(&entries[entry], slot), model[entry][slot]);
            assert_eq!(entries[entry].is_empty(), model[entry].iter().all(Option::is_none));
        }
        for (entry, model) in entries.iter_mut().zip(model) {
            let expected = model.iter().enumerate().filter_map(|(slot, number)| Some((slot, (*number)?)));
            assert!(arrays.iter(entry).eq(expected));
            arrays.clear(entry);
        }
        assert_eq!(arrays.free.len(), arrays.arrays.len());
    }
}
