//! Short runs of numbers that grow and shrink in place of arrays with a place for everything.
//!
//! ```text
//! entry (bits: which of up to 64 places are taken)      words
//!   .1...11..1  first, class -------------------------> [n0 n1 n2 n3 . . . .]   few: the taken places' numbers, in order
//!                                                       [. n0 . . . n1 n2 . . n3 ...]   many: each at its place
//! ```
//!
//! While there are few, the number of a place lies behind those of the taken places before it. Runs have a few capacities, so
//! that one that is given back fits the next that is asked for, and one that fills is not moved often. A single number has no
//! words: it stands in place of `first`.

/// Which places are taken, and where their numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run<B> {
    pub(crate) taken: B,
    /// The first of its words; of a run of [`SINGLE`] class its number itself.
    first: u32,
    /// Of the capacities; 0: no run.
    class: u8,
}

/// The class of runs of one number.
const SINGLE: u8 = 1;

/// The bits of as many places as a run may have.
pub(crate) trait Places: Copy + Default + Eq {
    /// Numbers that runs of the classes have room for: the last holds each place.
    const CAPACITIES: &'static [u8];
    /// As one type.
    fn bits(self) -> u64;
    /// Back from it.
    fn from_bits(bits: u64) -> Self;
}

/// Up to 32 slots of a group.
impl Places for u32 {
    const CAPACITIES: &'static [u8] = &[1, 3, 8, 32];

    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits as u32
    }
}

/// Up to 64 groups of a region.
impl Places for u64 {
    const CAPACITIES: &'static [u8] = &[1, 8, 32, 64];

    #[inline(always)]
    fn bits(self) -> u64 {
        self
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits
    }
}

impl<B: Places> Run<B> {
    const DIRECT: u8 = B::CAPACITIES.len() as u8;

    /// Nothing is taken.
    pub(crate) fn empty() -> Self {
        Self { taken: B::default(), first: 0, class: 0 }
    }

    /// The word of a place, from the run's first on.
    #[inline(always)]
    fn index(&self, place: usize) -> usize {
        if self.class == Self::DIRECT {
            return place;
        }
        (self.taken.bits() & ((1 << place) - 1)).count_ones() as usize
    }

    fn capacity(class: u8) -> usize {
        B::CAPACITIES.get(usize::from(class).wrapping_sub(1)).map_or(0, |&capacity| usize::from(capacity))
    }

    pub(crate) fn count(&self) -> usize {
        self.taken.bits().count_ones() as usize
    }
}

/// All runs of one kind.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    words: Vec<u32>,
    free: [Vec<u32>; 5],
}

impl Runs {
    /// The number of a place.
    #[inline(always)]
    pub(crate) fn get<B: Places>(&self, run: &Run<B>, place: usize) -> Option<u32> {
        if run.taken.bits() >> place & 1 == 0 {
            return None;
        }
        if run.class == SINGLE {
            return Some(run.first);
        }
        self.words.get(run.first as usize + run.index(place)).copied()
    }

    /// Takes a place that is not taken.
    #[inline]
    pub(crate) fn insert<B: Places>(&mut self, run: &mut Run<B>, place: usize, number: u32) {
        if run.class == 0 {
            *run = Run { taken: B::from_bits(1 << place), first: number, class: SINGLE };
            return;
        }
        if run.class != Run::<B>::DIRECT {
            let count = run.count();
            if count == Run::<B>::capacity(run.class) {
                self.resize(run, run.class + 1);
            }
            if run.class != Run::<B>::DIRECT {
                let (first, rank) = (run.first as usize, run.index(place));
                // Mostly the one behind the last.
                if rank != count {
                    self.words.copy_within(first + rank..first + count, first + rank + 1);
                }
            }
        }
        let index = run.index(place);
        self.words[run.first as usize + index] = number;
        run.taken = B::from_bits(run.taken.bits() | 1 << place);
    }

    /// Gives back a place; the number that it had.
    #[inline]
    pub(crate) fn remove<B: Places>(&mut self, run: &mut Run<B>, place: usize) -> Option<u32> {
        let number = self.get(run, place)?;
        if run.class == SINGLE {
            *run = Run::empty();
            return Some(number);
        }
        if run.class != Run::<B>::DIRECT {
            let (first, rank, count) = (run.first as usize, run.index(place), run.count());
            if rank + 1 != count {
                self.words.copy_within(first + rank + 1..first + count, first + rank);
            }
        }
        run.taken = B::from_bits(run.taken.bits() & !(1 << place));
        let left = run.count();
        if left == 0 {
            self.clear(run);
        } else if left * 2 <= Run::<B>::capacity(run.class - 1) {
            // Half of what the smaller one holds: one that goes up and down by a few stays as it is.
            self.resize(run, run.class - 1);
        }
        Some(number)
    }

    /// Gives back all places.
    pub(crate) fn clear<B: Places>(&mut self, run: &mut Run<B>) {
        if run.class > SINGLE {
            self.free[usize::from(run.class)].push(run.first);
        }
        *run = Run::empty();
    }

    /// The taken places with their numbers, in order.
    #[inline]
    pub(crate) fn entries<B: Places>(&self, run: Run<B>) -> impl Iterator<Item = (usize, u32)> + '_ {
        let is_direct = run.class == Run::<B>::DIRECT;
        places(run.taken.bits()).enumerate().map(move |(rank, place)| {
            if run.class == SINGLE {
                return (place, run.first);
            }
            let index = if is_direct { place } else { rank };
            (place, self.words.get(run.first as usize + index).copied().unwrap_or_default())
        })
    }

    #[cold]
    fn resize<B: Places>(&mut self, run: &mut Run<B>, class: u8) {
        let first = match self.free[usize::from(class)].pop() {
            Some(first) => first,
            None => {
                let first = self.words.len();
                self.words.resize(first + Run::<B>::capacity(class), 0);
                first as u32
            }
        };
        let new = Run { taken: run.taken, first, class };
        if run.class == SINGLE {
            // The next class is none that holds each number at its place.
            self.words[first as usize] = run.first;
            *run = new;
            return;
        }
        for (rank, place) in places(run.taken.bits()).enumerate() {
            let of =
                |run: &Run<B>| run.first as usize + if run.class == Run::<B>::DIRECT { place } else { rank };
            self.words[of(&new)] = self.words[of(run)];
        }
        self.free[usize::from(run.class)].push(run.first);
        *run = new;
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

    fn check<B: Places + std::fmt::Debug>(
        width: usize,
        steps: &[(usize, usize, bool)],
    ) -> Result<(), TestCaseError> {
        let mut runs = Runs::default();
        let mut entries = [Run::<B>::empty(); 3];
        let mut arrays = [[None; 64]; 3];
        for (number, &(entry, place, is_insert)) in steps.iter().enumerate() {
            let place = place % width;
            if !is_insert {
                prop_assert_eq!(runs.remove(&mut entries[entry], place), arrays[entry][place].take());
            } else if arrays[entry][place].is_none() {
                runs.insert(&mut entries[entry], place, number as u32);
                arrays[entry][place] = Some(number as u32);
            }
            if number % 350 == 349 {
                runs.clear(&mut entries[entry]);
                arrays[entry] = [None; 64];
            }
            for (run, array) in entries.iter().zip(&arrays) {
                let expected: Vec<(usize, u32)> =
                    (0..64).filter_map(|place| Some((place, array[place]?))).collect();
                prop_assert_eq!(&runs.entries(*run).collect::<Vec<_>>(), &expected);
                prop_assert_eq!(runs.get(run, place), array[place]);
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn runs_hold_what_arrays_hold(
            // Phases that mostly fill, and phases that mostly empty.
            steps in prop::collection::vec((0_usize..3, 0_usize..64, 0_u32..100), 0..900),
        ) {
            let steps: Vec<(usize, usize, bool)> = steps
                .into_iter()
                .enumerate()
                .map(|(step, (entry, place, chance))| {
                    (entry, place, chance < if step / 300 % 2 == 0 { 75 } else { 25 })
                })
                .collect();
            check::<u32>(32, &steps)?;
            check::<u64>(64, &steps)?;
        }
    }
}
