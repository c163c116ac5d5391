//! Reads the buckets in which Go's runtime counts its samples. The content is untrusted: the
//! process keeps running, and its memory may hold anything.
//!
//! ```text
//!  0 next    8 bucket made before    16 kind   24 hash   32 size   40 frames
//! 48 return addresses, innermost first
//! ..  published: allocations, frees, bytes of each
//! ..  the same for each of the last three collections, by their number
//! ```
//! Layout of `runtime/mprof.go`, from Go 1.11 on. The published counts describe one moment: the end
//! of a collection. A bucket never moves, and new ones are linked before it.

use heapr_glibc_heap::HeapMemory;

/// Bytes of a bucket before its stack.
const HEAD_BYTES: usize = 48;
const KIND_OF_MEMORY: u64 = 1;
/// Largest number of frames of a bucket: more than any runtime stores.
const FRAMES_MAX: u64 = 1024;
/// Largest number of buckets that are followed.
const BUCKETS_MAX: usize = 1 << 18;
const SIZE_MAX: u64 = 1 << 46;
/// Words of the published counts, and of each of the three cycles after them.
const CYCLE_WORDS: usize = 4;
const CYCLES: usize = 3;
/// Bytes of all counts of a bucket.
pub(super) const RECORD_BYTES: usize = (1 + CYCLES) * CYCLE_WORDS * 8;

/// Bucket without its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bucket {
    /// Address of the bucket's counts.
    pub(super) record_avma: u64,
    pub(super) size_bytes: u64,
    /// Return addresses, innermost first.
    pub(super) stack: Vec<u64>,
}

/// Counts of a bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) allocs: u64,
    pub(super) frees: u64,
}

/// Error: the memory holds no list of buckets in the known layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoBuckets;

/// Reads the buckets from `head_avma` on that come before `known_avma`, newest first.
pub(super) fn read_new(
    memory: &impl HeapMemory,
    head_avma: u64,
    known_avma: u64,
    known_count: usize,
) -> Result<Vec<Bucket>, NoBuckets> {
    let mut found = Vec::new();
    let mut at_avma = head_avma;
    while at_avma != 0 && at_avma != known_avma {
        if known_count + found.len() >= BUCKETS_MAX {
            break;
        }
        let mut head = [0; HEAD_BYTES];
        if memory.read(at_avma, &mut head) != HEAD_BYTES {
            return Err(NoBuckets);
        }
        let word =
            |place: usize| head.as_chunks::<8>().0.get(place).map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (kind, size_bytes, frame_count) = (word(2), word(4), word(5));
        if kind != KIND_OF_MEMORY || frame_count > FRAMES_MAX || size_bytes > SIZE_MAX {
            return Err(NoBuckets);
        }
        let stack_avma = at_avma.checked_add(HEAD_BYTES as u64).ok_or(NoBuckets)?;
        let mut stack = vec![0; frame_count as usize * 8];
        if memory.read(stack_avma, &mut stack) != stack.len() {
            return Err(NoBuckets);
        }
        found.push(Bucket {
            record_avma: stack_avma.checked_add(stack.len() as u64).ok_or(NoBuckets)?,
            size_bytes,
            stack: stack.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(),
        });
        at_avma = word(1);
    }
    Ok(found)
}

/// Reads the counts of buckets. `cycle`: word with the number of the collection, if it is known.
pub(super) fn counts(
    memory: &impl HeapMemory,
    records_avma: impl Iterator<Item = u64>,
    cycle: Option<u32>,
) -> Vec<Counts> {
    let ranges: Vec<_> = records_avma.map(|avma| avma..avma.saturating_add(RECORD_BYTES as u64)).collect();
    let mut bytes = vec![0; ranges.len() * RECORD_BYTES];
    let read = memory.read_ranges(&ranges, &mut bytes);
    let records = bytes.as_chunks::<RECORD_BYTES>().0.iter().zip(read);
    let records: Vec<Option<Record>> =
        records.map(|(bytes, read)| (read == RECORD_BYTES).then(|| Record::of(bytes))).collect();
    // Before the first collection nothing is published, so all cycles are summed.
    let is_any = records.iter().flatten().any(|record| record.published() != Counts::default());
    let due = cycle.filter(|word| word & 1 == 0).map(|word| (word >> 1) as usize % CYCLES);
    let count = |record: Record| match (is_any, due) {
        (false, _) => record.sum(0..=CYCLES),
        (true, Some(due)) => record.sum([0, due + 1]),
        (true, None) => record.published(),
    };
    records.into_iter().map(|record| record.map(count).unwrap_or_default()).collect()
}

/// Published counts, and those of the three collections after them.
struct Record([Counts; 1 + CYCLES]);

impl Record {
    fn of(bytes: &[u8; RECORD_BYTES]) -> Self {
        let words = bytes.as_chunks::<8>().0.as_chunks::<CYCLE_WORDS>().0;
        let mut all = [Counts::default(); 1 + CYCLES];
        for (counts, [allocs, frees, ..]) in all.iter_mut().zip(words) {
            *counts = Counts { allocs: u64::from_le_bytes(*allocs), frees: u64::from_le_bytes(*frees) };
        }
        Self(all)
    }

    fn published(&self) -> Counts {
        self.sum([0])
    }

    fn sum(&self, places: impl IntoIterator<Item = usize>) -> Counts {
        let mut sum = Counts::default();
        for counts in places.into_iter().filter_map(|place| self.0.get(place)) {
            sum.allocs = sum.allocs.saturating_add(counts.allocs);
            sum.frees = sum.frees.saturating_add(counts.frees);
        }
        sum
    }
}

#[cfg(test)]
pub(super) mod tests {
    use heapr_glibc_heap::Error;
    use heapr_proc::Mapping;

    use super::*;

    /// Memory from `START` on.
    pub(crate) struct Made(pub(crate) Vec<u8>);

    pub(crate) const START: u64 = 0x1000;

    impl HeapMemory for Made {
        fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
            let from = address_avma.checked_sub(START).and_then(|at| self.0.get(at as usize..));
            let bytes = from.unwrap_or_default();
            let count = bytes.len().min(into.len());
            into[..count].copy_from_slice(&bytes[..count]);
            count
        }

        fn mappings(&self) -> Result<Vec<Mapping>, Error> {
            Ok(Vec::new())
        }

        fn open(&self, _: &str) -> std::io::Result<std::fs::File> {
            Err(std::io::ErrorKind::NotFound.into())
        }
    }

    impl Made {
        /// Adds a bucket before the existing ones and returns its address.
        pub(crate) fn bucket(
            &mut self,
            before_avma: u64,
            size: u64,
            stack: &[u64],
            record: [[u64; 2]; 4],
        ) -> u64 {
            let at = START + self.0.len() as u64;
            let head = [0, before_avma, KIND_OF_MEMORY, 7, size, stack.len() as u64];
            let counts = record.into_iter().flat_map(|[allocs, frees]| [allocs, frees, 0, 0]);
            for word in head.into_iter().chain(stack.iter().copied()).chain(counts) {
                self.0.extend(word.to_le_bytes());
            }
            at
        }
    }

    #[test]
    fn buckets_are_read_up_to_those_that_are_known() {
        let mut made = Made(Vec::new());
        let old = made.bucket(0, 64, &[0x10], [[0; 2]; 4]);
        let new = made.bucket(old, 1 << 20, &[0x20, 0x30], [[5, 1], [7, 0], [0, 2], [9, 9]]);
        let all = read_new(&made, new, 0, 0).unwrap();
        assert_eq!(all.iter().map(|bucket| bucket.size_bytes).collect::<Vec<_>>(), [1 << 20, 64]);
        assert_eq!(all[0].stack, [0x20, 0x30]);
        assert_eq!(read_new(&made, new, old, 1).unwrap().len(), 1);
        let counts = |cycle| counts(&made, all.iter().map(|bucket| bucket.record_avma), cycle)[0];
        assert_eq!(counts(None), Counts { allocs: 5, frees: 1 });
        // The collection of this number is over, and not published yet.
        assert_eq!(counts(Some(4 << 1)), Counts { allocs: 5, frees: 3 });
        assert_eq!(counts(Some(4 << 1 | 1)), Counts { allocs: 5, frees: 1 });
    }

    #[test]
    fn before_the_first_collection_all_counts() {
        let mut made = Made(Vec::new());
        let only = made.bucket(0, 64, &[0x10], [[0, 0], [1, 0], [2, 1], [4, 0]]);
        let found = read_new(&made, only, 0, 0).unwrap();
        let all = counts(&made, found.iter().map(|bucket| bucket.record_avma), None);
        assert_eq!(all, [Counts { allocs: 7, frees: 1 }]);
    }

    #[test]
    fn what_is_no_list_of_buckets_is_none() {
        let mut made = Made(Vec::new());
        let one = made.bucket(0, 64, &[0x10], [[0; 2]; 4]);
        made.0[16] = 9;
        assert_eq!(read_new(&made, one, 0, 0), Err(NoBuckets));
        assert_eq!(read_new(&made, 0x77, 0, 0), Err(NoBuckets));
        // In a circle.
        let mut made = Made(Vec::new());
        let one = made.bucket(START, 64, &[], [[0; 2]; 4]);
        assert_eq!(read_new(&made, one, 0, 0).map(|all| all.len()), Ok(BUCKETS_MAX));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(0_u8..5, 0..400), at in 0_u64..400) {
            let made = Made(bytes);
            if let Ok(found) = read_new(&made, START + at, 0, BUCKETS_MAX - 10) {
                let _ = counts(&made, found.iter().map(|bucket| bucket.record_avma), Some(3));
            }
        }
    }
}
