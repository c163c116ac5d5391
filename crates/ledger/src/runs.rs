//! Short runs of numbers that grow and shrink in place of arrays with a place for everything.
//!
//! ```text
//! entry (bits: which of up to 64 places are taken)      words
//!   .1...11..1  first, class -------------------------> [n0 n1 n2 n3 . .]     the taken places' numbers, in order
//! ```
//!
//! The number of a place lies behind those of the taken places before it. Runs have a few capacities, so that one that is given
//! back fits the next that is asked for.

/// Numbers that a run of each class has room for.
const CAPACITIES: [u8; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
/// No run: nothing is taken.
const NO_CLASS: u32 = CAPACITIES.len() as u32;

/// Which places are taken, and where their numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) taken: u64,
    first: u32,
    class: u32,
}

impl Run {
    pub(crate) const EMPTY: Self = Self { taken: 0, first: 0, class: NO_CLASS };

    #[inline(always)]
    fn rank(&self, place: usize) -> usize {
        (self.taken & ((1 << place) - 1)).count_ones() as usize
    }

    #[inline(always)]
    pub(crate) fn has(&self, place: usize) -> bool {
        self.taken >> place & 1 != 0
    }
}

/// All runs.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    words: Vec<u32>,
    free: [Vec<u32>; CAPACITIES.len()],
}

impl Runs {
    /// The number of a place.
    #[inline(always)]
    pub(crate) fn get(&self, run: &Run, place: usize) -> Option<u32> {
        if !run.has(place) {
            return None;
        }
        self.words.get(run.first as usize + run.rank(place)).copied()
    }

    /// Takes a place that is not taken.
    #[inline]
    pub(crate) fn insert(&mut self, run: &mut Run, place: usize, number: u32) {
        let count = run.taken.count_ones() as usize;
        if run.class == NO_CLASS || count == usize::from(CAPACITIES[run.class as usize]) {
            self.resize(run, count, if run.class == NO_CLASS { 0 } else { run.class + 1 });
        }
        let (first, rank) = (run.first as usize, run.rank(place));
        self.words.copy_within(first + rank..first + count, first + rank + 1);
        self.words[first + rank] = number;
        run.taken |= 1 << place;
    }

    /// Gives back a place; the number that it had.
    #[inline]
    pub(crate) fn remove(&mut self, run: &mut Run, place: usize) -> Option<u32> {
        let number = self.get(run, place)?;
        let (first, rank, count) = (run.first as usize, run.rank(place), run.taken.count_ones() as usize);
        self.words.copy_within(first + rank + 1..first + count, first + rank);
        run.taken &= !(1 << place);
        match count - 1 {
            0 => self.clear(run),
            // Far below, so that one that goes up and down by a few stays as it is.
            left if left * 3 < usize::from(CAPACITIES[run.class as usize]) && run.class > 1 => {
                let class = CAPACITIES.iter().position(|&capacity| usize::from(capacity) > left).unwrap_or(0);
                self.resize(run, left, class as u32);
            }
            _ => {}
        }
        Some(number)
    }

    /// Gives back all places.
    pub(crate) fn clear(&mut self, run: &mut Run) {
        if run.class != NO_CLASS {
            self.free[run.class as usize].push(run.first);
        }
        *run = Run::EMPTY;
    }

    /// The numbers of the taken places, in order.
    pub(crate) fn numbers(&self, run: &Run) -> &[u32] {
        let first = run.first as usize;
        self.words.get(first..first + run.taken.count_ones() as usize).unwrap_or_default()
    }

    fn resize(&mut self, run: &mut Run, count: usize, class: u32) {
        let old = run.first as usize;
        let first = match self.free[class as usize].pop() {
            Some(first) => first as usize,
            None => {
                let first = self.words.len();
                self.words.resize(first + usize::from(CAPACITIES[class as usize]), 0);
                first
            }
        };
        self.words.copy_within(old..old + count, first);
        if run.class != NO_CLASS {
            self.free[run.class as usize].push(run.first);
        }
        (run.first, run.class) = (first as u32, class);
    }
}

/// The places whose bits are set, in order.
pub(crate) fn places(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (place < 64).then_some(place)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_hold_what_arrays_hold(steps in prop::collection::vec((0_usize..5, 0_usize..64, any::<bool>()), 0..400)) {
            let mut runs = Runs::default();
            let mut entries = [Run::EMPTY; 5];
            let mut arrays = [[None; 64]; 5];
            for (number, (entry, place, is_insert)) in steps.into_iter().enumerate() {
                if !is_insert {
                    prop_assert_eq!(runs.remove(&mut entries[entry], place), arrays[entry][place].take());
                } else if arrays[entry][place].is_none() {
                    runs.insert(&mut entries[entry], place, number as u32);
                    arrays[entry][place] = Some(number as u32);
                }
                if number % 150 == 149 {
                    runs.clear(&mut entries[entry]);
                    arrays[entry] = [None; 64];
                }
                for (run, array) in entries.iter().zip(&arrays) {
                    for (place, expected) in array.iter().enumerate() {
                        prop_assert_eq!(runs.get(run, place), *expected);
                    }
                    let taken: Vec<u32> = places(run.taken).filter_map(|place| array[place]).collect();
                    prop_assert_eq!(runs.numbers(run), &taken[..]);
                }
            }
        }
    }
}
