//! The groups of each region: short runs of numbers that grow and shrink, in place of arrays with
//! an entry for every index.
//!
//! ```text
//! entry (bits: which of up to 64 places are taken)      words
//!   .1...11..1  first, class -------------------------> [n0 n1 n2 n3 . . . .]   few: the taken places' numbers, in order
//!                                                       [. n0 . . . n1 n2 . . n3 ...]   many: each at its place
//! ```
//!
//! In a short run, the number of a place lies behind those of the occupied places before it. Runs
//! have a few capacities, so that a freed run fits the next request, and a full one is rarely
//! moved. A single number has no words: it is stored in `first`.

/// Occupied places, and the location of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) taken: u64,
    /// Index of the first word; in a run of class [`SINGLE`] the number itself.
    first: u32,
    /// Class of the capacity; 0: no run.
    class: u8,
}

/// Class of runs of one number.
const SINGLE: u8 = 1;

/// Capacities of the classes; the last has a word for each place. (Without 40, half of the regions
/// with blocks of 1,000 bytes, of which 32 or 33 fit one, take 256 bytes instead of 160.)
const CAPACITIES: [usize; 5] = [1, 8, 32, 40, 64];
const DIRECT: u8 = CAPACITIES.len() as u8;

impl Run {
    /// A run without numbers.
    pub(crate) const EMPTY: Self = Self { taken: 0, first: 0, class: 0 };

    /// Index of a place's word, from the run's first word.
    #[inline(always)]
    fn index(&self, place: usize) -> usize {
        if self.class == DIRECT {
            return place;
        }
        (self.taken & ((1 << place) - 1)).count_ones() as usize
    }

    fn capacity(class: u8) -> usize {
        CAPACITIES.get(usize::from(class).wrapping_sub(1)).copied().unwrap_or_default()
    }

    pub(crate) fn count(&self) -> usize {
        self.taken.count_ones() as usize
    }
}

/// All runs of one kind.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    words: Vec<u32>,
    /// First words of free runs, by class.
    free: [Vec<u32>; CAPACITIES.len() + 1],
}

impl Runs {
    /// The number of a place.
    #[inline(always)]
    pub(crate) fn get(&self, run: &Run, place: usize) -> Option<u32> {
        if run.taken >> place & 1 == 0 {
            return None;
        }
        if run.class == SINGLE {
            return Some(run.first);
        }
        self.words.get(run.first as usize + run.index(place)).copied()
    }

    /// Stores a number at a free place.
    #[inline]
    pub(crate) fn insert(&mut self, run: &mut Run, place: usize, number: u32) {
        if run.class == 0 {
            *run = Run { taken: 1 << place, first: number, class: SINGLE };
            return;
        }
        if run.class != DIRECT {
            let count = run.count();
            if count == Run::capacity(run.class) {
                self.resize(run, run.class + 1);
            }
            if run.class != DIRECT {
                let (first, rank) = (run.first as usize, run.index(place));
                // Usually the new place lies behind the last one.
                if rank != count {
                    self.words.copy_within(first + rank..first + count, first + rank + 1);
                }
            }
        }
        let index = run.index(place);
        self.words[run.first as usize + index] = number;
        run.taken |= 1 << place;
    }

    /// Frees a place; returns its number.
    #[inline]
    pub(crate) fn remove(&mut self, run: &mut Run, place: usize) -> Option<u32> {
        let number = self.get(run, place)?;
        if run.class == SINGLE {
            *run = Run::EMPTY;
            return Some(number);
        }
        if run.class != DIRECT {
            let (first, rank, count) = (run.first as usize, run.index(place), run.count());
            if rank + 1 != count {
                self.words.copy_within(first + rank + 1..first + count, first + rank);
            }
        }
        run.taken &= !(1 << place);
        let left = run.count();
        if left == 0 {
            self.clear(run);
        } else if left * 2 <= Run::capacity(run.class - 1) {
            // Shrinks at half the capacity of the smaller class, so that a run that varies by a few
            // is not moved.
            self.resize(run, run.class - 1);
        }
        Some(number)
    }

    /// Frees all places.
    pub(crate) fn clear(&mut self, run: &mut Run) {
        if run.class > SINGLE {
            self.free[usize::from(run.class)].push(run.first);
        }
        *run = Run::EMPTY;
    }

    /// The occupied places with their numbers, in order.
    #[inline]
    pub(crate) fn entries(&self, run: Run) -> impl Iterator<Item = (usize, u32)> + '_ {
        let is_direct = run.class == DIRECT;
        places(run.taken).enumerate().map(move |(rank, place)| {
            if run.class == SINGLE {
                return (place, run.first);
            }
            let index = if is_direct { place } else { rank };
            (place, self.words.get(run.first as usize + index).copied().unwrap_or_default())
        })
    }

    #[cold]
    fn resize(&mut self, run: &mut Run, class: u8) {
        let first = match self.free[usize::from(class)].pop() {
            Some(first) => first,
            None => {
                let first = self.words.len();
                self.words.resize(first + Run::capacity(class), 0);
                first as u32
            }
        };
        let new = Run { taken: run.taken, first, class };
        if run.class == SINGLE {
            // The next class is not the direct one, so that the number comes first.
            self.words[first as usize] = run.first;
            *run = new;
            return;
        }
        for (rank, place) in places(run.taken).enumerate() {
            let of = |run: &Run| run.first as usize + if run.class == DIRECT { place } else { rank };
            self.words[of(&new)] = self.words[of(run)];
        }
        self.free[usize::from(run.class)].push(run.first);
        *run = new;
    }
}

/// Indices of the bits that are set, in order.
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

    fn check(steps: &[(usize, usize, bool)]) -> Result<(), TestCaseError> {
        let mut runs = Runs::default();
        let mut entries = [Run::EMPTY; 3];
        let mut arrays = [[None; 64]; 3];
        for (number, &(entry, place, is_insert)) in steps.iter().enumerate() {
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
            // Phases of mostly insertions, and phases of mostly removals.
            steps in prop::collection::vec((0_usize..3, 0_usize..64, 0_u32..100), 0..900),
        ) {
            let steps: Vec<(usize, usize, bool)> = steps
                .into_iter()
                .enumerate()
                .map(|(step, (entry, place, chance))| {
                    (entry, place, chance < if step / 300 % 2 == 0 { 75 } else { 25 })
                })
                .collect();
            check(&steps)?;
        }
    }
}
