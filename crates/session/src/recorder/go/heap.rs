//! Finds what has changed in Go's account of its heap since the last reading.

use std::collections::HashMap;

use heapr_glibc_heap::HeapMemory;
use heapr_trace::{StackIndex, ThreadIndex};

use crate::recorder::go::buckets::{self, Bucket, Counts, NoBuckets};
use crate::recorder::go::target::GoTarget;

/// Largest number of events per reading; further ones come with the next.
const EVENTS_MAX: u64 = 1 << 16;
/// Largest mean period in bytes that is believed to be Go's.
const MEAN_MAX: u64 = 1 << 40;

/// Go's heap in a process.
#[derive(Debug)]
pub(crate) struct GoHeap {
    pub(crate) target: GoTarget,
    /// Mean period of samples in bytes; 0: the runtime takes no samples.
    pub(crate) mean_bytes: u64,
    /// True if the account was read at least once.
    pub(crate) is_read: bool,
    /// Readings in a row that failed.
    pub(crate) failed_looks: u32,
    /// Earliest time of the next reading.
    pub(crate) next_look_ns: u64,
    /// Earliest time of the next search for processes that the program started.
    pub(crate) next_children_ns: u64,
    /// Programs that the file already mentions as not recorded.
    pub(crate) untraced_children: Vec<String>,
    /// Thread of the file to which the heap's events are attributed.
    pub(crate) thread: Option<ThreadIndex>,
    /// Stacks of the heap in the file, by caller and return address.
    pub(crate) nodes: HashMap<(StackIndex, u64), StackIndex>,
    /// Buckets, oldest first.
    known: Vec<Known>,
    newest_avma: u64,
}

#[derive(Debug)]
struct Known {
    bucket: Bucket,
    stack: Option<StackIndex>,
    told: Counts,
}

/// Change of a bucket since the last reading: numbers of new and of freed blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// Index of the bucket.
    pub(crate) number: usize,
    pub(crate) size_bytes: u64,
    /// Numbers of new blocks, and in `gone` of freed ones: the oldest block of a bucket is freed
    /// first.
    pub(crate) new: std::ops::Range<u64>,
    pub(crate) gone: std::ops::Range<u64>,
}

impl GoHeap {
    pub(crate) fn new(target: GoTarget) -> Self {
        Self {
            target,
            mean_bytes: 0,
            is_read: false,
            failed_looks: 0,
            next_look_ns: 0,
            next_children_ns: 0,
            untraced_children: Vec::new(),
            thread: None,
            nodes: HashMap::new(),
            known: Vec::new(),
            newest_avma: 0,
        }
    }

    /// Returns the changes since the last reading. `Err`: the account is not in the known layout.
    pub(crate) fn look(&mut self, memory: &impl HeapMemory) -> Result<Vec<Change>, NoBuckets> {
        let Some(places) = self.target.places else { return Err(NoBuckets) };
        let at = |svma: u64| self.target.bias_avma.wrapping_add(svma);
        let mut words = [None; 3];
        memory.read_words(&[at(places.buckets_svma), at(places.rate_svma)], &mut words[..2]);
        if places.cycle_svma != 0 {
            memory.read_words(&[at(places.cycle_svma) & !7], &mut words[2..]);
        }
        let [Some(head_avma), Some(mean_bytes), cycle] = words else { return Err(NoBuckets) };
        if mean_bytes > MEAN_MAX {
            return Err(NoBuckets);
        }
        let shift = (at(places.cycle_svma) & 4) * 8;
        let cycle = cycle.map(|word| (word >> shift) as u32);
        self.mean_bytes = mean_bytes;
        let new = buckets::read_new(memory, head_avma, self.newest_avma, self.known.len())?;
        self.newest_avma = head_avma;
        let oldest_first = new.into_iter().rev();
        self.known.extend(oldest_first.map(|bucket| Known { bucket, stack: None, told: Counts::default() }));
        let records = self.known.iter().map(|known| known.bucket.record_avma);
        let counts = buckets::counts(memory, records, cycle);
        self.is_read = true;
        Ok(self.changes(&counts))
    }

    fn changes(&mut self, counts: &[Counts]) -> Vec<Change> {
        let mut left = EVENTS_MAX;
        let mut changes = Vec::new();
        for (number, (known, now)) in self.known.iter_mut().zip(counts).enumerate() {
            let told = known.told;
            // Counts may have been reported before they were published.
            let allocs = now.allocs.clamp(told.allocs, told.allocs.saturating_add(left));
            left -= allocs - told.allocs;
            let most = told.frees.saturating_add(left).min(allocs);
            let frees = now.frees.clamp(told.frees, most.max(told.frees));
            left -= frees - told.frees;
            if (allocs, frees) != (told.allocs, told.frees) {
                known.told = Counts { allocs, frees };
                let size_bytes = known.bucket.size_bytes;
                changes.push(Change {
                    number,
                    size_bytes,
                    new: told.allocs..allocs,
                    gone: told.frees..frees,
                });
            }
        }
        changes
    }

    /// Returns the stack of a bucket in the file, if it has one, and its return addresses,
    /// innermost first.
    pub(crate) fn stack(&self, number: usize) -> (Option<StackIndex>, &[u64]) {
        let known = self.known.get(number);
        known.map_or((None, &[]), |known| (known.stack, known.bucket.stack.as_slice()))
    }

    pub(crate) fn keep_stack(&mut self, number: usize, stack: StackIndex) {
        if let Some(known) = self.known.get_mut(number) {
            known.stack = Some(stack);
        }
    }

    /// Address for a block that is known only by number, where no program has memory.
    pub(crate) fn address_avma(number: usize, block: u64) -> u64 {
        const NOWHERE: u64 = 1 << 54;
        NOWHERE | (number as u64) << 32 | (block & u64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use heapr_symbols::{GoPlaces, GoProgram};

    use super::*;
    use crate::recorder::go::buckets::tests::{Made, START};

    #[test]
    fn a_look_tells_what_the_last_one_has_not() {
        let mut made = Made(vec![0; 24]);
        let put =
            |made: &mut Made, at: usize, word: u64| made.0[at..at + 8].copy_from_slice(&word.to_le_bytes());
        put(&mut made, 8, 4096);
        let places =
            GoPlaces { buckets_svma: START, rate_svma: START + 8, cycle_svma: START + 16, unwanted_svma: 0 };
        let program = GoProgram { version: String::new(), places: Some(places) };
        let mut heap = GoHeap::new(GoTarget::new(Path::new("/it"), 0, program));
        assert_eq!(heap.look(&made), Ok(Vec::new()));
        let one = made.bucket(0, 64, &[1], [[3, 0]; 4]);
        put(&mut made, 0, one);
        // Published counts, and those of the collection that is over.
        let change = |number, size_bytes, new, gone| Change { number, size_bytes, new, gone };
        assert_eq!(heap.look(&made), Ok(vec![change(0, 64, 0..6, 0..0)]));
        let two = made.bucket(one, 128, &[2], [[2, 9]; 4]);
        put(&mut made, 0, two);
        // More frees than allocations are limited to the allocations.
        assert_eq!(heap.look(&made), Ok(vec![change(1, 128, 0..4, 0..4)]));
        assert_eq!(heap.look(&made), Ok(Vec::new()));
        assert_eq!(heap.mean_bytes, 4096);
        put(&mut made, 8, u64::MAX);
        assert_eq!(heap.look(&made), Err(NoBuckets));
    }

    #[test]
    fn more_than_fits_in_one_look_comes_with_the_next() {
        let mut made = Made(vec![0; 24]);
        let many = EVENTS_MAX + 10;
        let one = made.bucket(0, 64, &[1], [[many, many], [0; 2], [0; 2], [0; 2]]);
        made.0[..8].copy_from_slice(&one.to_le_bytes());
        let places =
            GoPlaces { buckets_svma: START, rate_svma: START + 8, cycle_svma: START + 16, unwanted_svma: 0 };
        let program = GoProgram { version: String::new(), places: Some(places) };
        let mut heap = GoHeap::new(GoTarget::new(Path::new("/it"), 0, program));
        let (mut allocs, mut frees) = (0, 0);
        for _ in 0..4 {
            for change in heap.look(&made).unwrap() {
                allocs += change.new.end - change.new.start;
                frees += change.gone.end - change.gone.start;
            }
        }
        assert_eq!((allocs, frees), (many, many));
    }
}
