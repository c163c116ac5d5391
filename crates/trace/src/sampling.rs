//! Weights of allocations in recordings in which only some are recorded.
//!
//! A sampling agent runs a Poisson process over the requested bytes. It records a call for `s`
//! bytes with probability `p = 1 - exp(-(s + 1) / mean)`, independent of all others. So a recorded
//! one stands for `1 / p` allocations, and for `s / p` bytes (Horvitz and Thompson). The weights
//! are computed block by block and then added: scaling the sum would be wrong where sizes differ.
//!
//! The variance of such a sum is estimated by the sum of `y * y * (1 - p) / (p * p)`.

use crate::{Amounts, Block, HeapId, ProcessIndex, Untold, Variances};

/// Sampling of a process from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplingPeriod {
    /// The process. [`SamplingPeriod::EVERY_PROCESS`] means all processes without an earlier entry
    /// of their own.
    pub process: ProcessIndex,
    /// Time from which the entry holds.
    pub from_ns: u64,
    /// Mean distance of two samples in bytes; or [`SamplingPeriod::ALL_BYTES`], or
    /// [`SamplingPeriod::NOTHING_BYTES`].
    pub mean_bytes: u64,
}

impl SamplingPeriod {
    /// Stands for every process.
    pub const EVERY_PROCESS: ProcessIndex = ProcessIndex(u32::MAX);
    /// Bit that marks a process number as standing for the process's [`HeapId::RUNTIME`].
    const OF_RUNTIME: u32 = 1 << 31;
    /// Stands for a mean: every allocation is recorded.
    pub const ALL_BYTES: u64 = 0;
    /// Stands for a mean: no allocation is recorded.
    pub const NOTHING_BYTES: u64 = u64::MAX;

    /// The number that stands for the heap of the process's language runtime.
    #[must_use]
    pub const fn of_runtime(process: ProcessIndex) -> ProcessIndex {
        ProcessIndex(process.0 | Self::OF_RUNTIME)
    }

    /// The process whose runtime heap the entry describes; `None` for an entry of a process.
    #[must_use]
    pub fn runtime_of(&self) -> Option<ProcessIndex> {
        let is_one = self.process != Self::EVERY_PROCESS && self.process.0 & Self::OF_RUNTIME != 0;
        is_one.then_some(ProcessIndex(self.process.0 & !Self::OF_RUNTIME))
    }
}

/// Number of allocations and bytes that a recorded allocation stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    /// Number of allocations.
    pub count: u64,
    /// Bytes of these allocations.
    pub bytes: u64,
    /// Part in the variance of a sum of counts.
    pub count_variance: u64,
    /// Part in the variance of a sum of bytes, in KiB squared.
    pub bytes_variance_kib2: u64,
}

/// One KiB squared in bytes squared: the unit of variances of bytes.
const KIB2: f64 = 1024.0 * 1024.0;

impl Weight {
    /// The weight of an allocation that stands for itself.
    #[must_use]
    pub const fn exact(size_bytes: u64) -> Self {
        Self { count: 1, bytes: size_bytes, count_variance: 0, bytes_variance_kib2: 0 }
    }

    /// The weight of a sample drawn every `mean_bytes`. `salt` is a number specific to the sample.
    /// A count has no fractions, so that `1 / p` is rounded up with the probability of its
    /// fraction. (Rounding to the nearest would be a bias: a block of twice the mean stands for
    /// 1.16.)
    #[must_use]
    pub fn of_sample(size_bytes: u64, mean_bytes: u64, salt: u64) -> Self {
        Self::of_drawn(size_bytes, size_bytes as f64 + 1.0, mean_bytes, salt)
    }

    /// Variant of `of_sample` for Go's runtime: p = 1 - exp(-s / mean), without the + 1.
    #[must_use]
    pub fn of_runtime_sample(size_bytes: u64, mean_bytes: u64, salt: u64) -> Self {
        Self::of_drawn(size_bytes, size_bytes as f64, mean_bytes, salt)
    }

    fn of_drawn(size_bytes: u64, drawn_bytes: f64, mean_bytes: u64, salt: u64) -> Self {
        if mean_bytes == SamplingPeriod::ALL_BYTES {
            return Self::exact(size_bytes);
        }
        let size = size_bytes as f64;
        // 1 - exp(-x), exact for small x, too.
        let chance = -(-drawn_bytes / mean_bytes as f64).exp_m1();
        if chance <= 0.0 {
            return Self::exact(size_bytes);
        }
        let (count, bytes) = (1.0 / chance, size / chance);
        let fraction = count.fract();
        let draw = (mixed(salt) >> 11) as f64 / (1_u64 << 53) as f64;
        let rounding = fraction * (1.0 - fraction);
        Self {
            count: (count as u64).saturating_add(u64::from(draw < fraction)),
            bytes: bytes.round() as u64,
            count_variance: (count * count * (1.0 - chance) + rounding).round() as u64,
            bytes_variance_kib2: (bytes * bytes * (1.0 - chance) / KIB2).ceil() as u64,
        }
    }
}

impl Variances {
    /// Approximate variances of estimates of which only the sums are known, computed as if all
    /// blocks had one size.
    #[must_use]
    pub(crate) fn of_equal_blocks(amounts: &Amounts, mean_bytes: u64) -> Self {
        let of = |count: u64, bytes: u64| {
            if count == 0 {
                return (0, 0);
            }
            let size = bytes as f64 / count as f64;
            let chance = -(-(size + 1.0) / mean_bytes as f64).exp_m1();
            let each = if chance > 0.0 { (1.0 - chance) / chance } else { 0.0 };
            let of_count = count as f64 * each;
            (of_count.ceil() as u64, (of_count * size * size / KIB2).ceil() as u64)
        };
        let (total_count, total_bytes) = of(amounts.total_count, amounts.total_bytes);
        let (outstanding_count, outstanding_bytes) = of(amounts.outstanding_count, amounts.outstanding_bytes);
        let (peak_count, peak_bytes) = of(amounts.peak_count, amounts.peak_bytes);
        let realloc_bytes =
            (amounts.total_bytes / amounts.total_count.max(1)).saturating_mul(amounts.realloc_count);
        let (realloc_count, _) = of(amounts.realloc_count, realloc_bytes);
        Self {
            total_count,
            total_bytes,
            realloc_count,
            outstanding_count,
            outstanding_bytes,
            peak_count,
            peak_bytes,
            ..Self::default()
        }
    }
}

/// A pseudo-random number: each bit of `number` flips about half of its bits (the last step of
/// SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// Sampling of the processes of a recording, over time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sampling {
    /// Entries in order of process and time.
    periods: Vec<SamplingPeriod>,
    /// Amounts that the file does not tell.
    untold: Untold,
}

impl Sampling {
    /// Sampling with entries in any order. Of two entries of one process and time the later counts.
    #[must_use]
    pub fn new(mut periods: Vec<SamplingPeriod>) -> Self {
        periods.sort_by_key(|period| (period.process, period.from_ns));
        Self { periods, untold: Untold::default() }
    }

    /// Adds an entry.
    pub fn add(&mut self, period: SamplingPeriod) {
        let key = (period.process, period.from_ns);
        let place = self.periods.partition_point(|known| (known.process, known.from_ns) <= key);
        self.periods.insert(place, period);
    }

    /// The amounts that the file does not tell.
    #[must_use]
    pub fn untold(&self) -> Untold {
        self.untold
    }

    /// A copy with other amounts marked as not told.
    #[must_use]
    pub fn with_untold(self, untold: Untold) -> Self {
        Self { untold, ..self }
    }

    /// The entries, by process and time.
    #[must_use]
    pub fn periods(&self) -> &[SamplingPeriod] {
        &self.periods
    }

    /// Whether everything is recorded, and always was.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.periods.iter().all(|period| period.mean_bytes == SamplingPeriod::ALL_BYTES)
    }

    /// Whether only runtimes sampled, each its own heap.
    #[must_use]
    pub fn is_by_runtimes(&self) -> bool {
        self.periods.iter().all(|period| period.runtime_of().is_some())
    }

    /// The last entry of a process at a time.
    fn last_of(&self, process: ProcessIndex, time_ns: u64) -> Option<&SamplingPeriod> {
        let end = self.periods.partition_point(|known| (known.process, known.from_ns) <= (process, time_ns));
        self.periods[..end].last().filter(|found| found.process == process)
    }

    /// The mean distance of a process's samples at a time, in bytes.
    #[must_use]
    pub fn mean_bytes(&self, process: ProcessIndex, time_ns: u64) -> u64 {
        let found = self.last_of(process, time_ns);
        let found = found.or_else(|| self.last_of(SamplingPeriod::EVERY_PROCESS, time_ns));
        found.map_or(SamplingPeriod::ALL_BYTES, |found| found.mean_bytes)
    }

    /// The last mean distance of the samples of a process's runtime heap, in bytes.
    #[must_use]
    pub fn mean_of_runtime(&self, process: ProcessIndex) -> Option<u64> {
        self.last_of(SamplingPeriod::of_runtime(process), u64::MAX).map(|found| found.mean_bytes)
    }

    /// All means that occur, smallest first, including [`SamplingPeriod::ALL_BYTES`] and
    /// [`SamplingPeriod::NOTHING_BYTES`].
    #[must_use]
    pub fn means(&self) -> Vec<u64> {
        let mut means: Vec<u64> = self.periods.iter().map(|period| period.mean_bytes).collect();
        means.sort_unstable();
        means.dedup();
        means
    }

    /// The largest mean by which samples were drawn; it bounds the precision of a report. `None` if
    /// nothing was sampled.
    #[must_use]
    pub fn largest_mean_bytes(&self) -> Option<u64> {
        let means = self.periods.iter().map(|period| period.mean_bytes);
        means.filter(|mean| ![SamplingPeriod::ALL_BYTES, SamplingPeriod::NOTHING_BYTES].contains(mean)).max()
    }

    /// The mean by which a block was sampled. Mappings, and blocks of heaps that a program
    /// registers itself, are always recorded. A runtime that samples by itself has its own mean.
    fn mean_of(&self, block: &Block) -> u64 {
        match block.heap {
            HeapId::MALLOC => self.mean_bytes(block.process, block.alloc_ns),
            HeapId::RUNTIME => {
                let whose = SamplingPeriod::of_runtime(block.process);
                let found = self.last_of(whose, block.alloc_ns);
                found.map_or(SamplingPeriod::ALL_BYTES, |found| found.mean_bytes)
            }
            _ => SamplingPeriod::ALL_BYTES,
        }
    }

    /// Whether a recorded block is a sample, which may stand for others.
    #[must_use]
    pub fn is_sample(&self, block: &Block) -> bool {
        self.mean_of(block) != SamplingPeriod::ALL_BYTES
    }

    /// Whether frees of unrecorded blocks are expected in a process, because its allocations are
    /// sampled.
    #[must_use]
    pub fn is_in_doubt(&self, process: ProcessIndex) -> bool {
        let is_of_it = |period: &&SamplingPeriod| {
            period.process == process || period.process == SamplingPeriod::EVERY_PROCESS
        };
        self.periods.iter().filter(is_of_it).any(|period| period.mean_bytes != SamplingPeriod::ALL_BYTES)
    }

    /// The weight of a recorded block.
    #[must_use]
    pub fn weight(&self, block: &Block) -> Weight {
        let mean_bytes = self.mean_of(block);
        if mean_bytes == SamplingPeriod::NOTHING_BYTES {
            return Weight::exact(block.size_bytes);
        }
        let salt = block.alloc_ns ^ block.address_avma.rotate_left(32) ^ u64::from(block.process.0) << 48;
        match block.heap {
            HeapId::RUNTIME => Weight::of_runtime_sample(block.size_bytes, mean_bytes, salt),
            _ => Weight::of_sample(block.size_bytes, mean_bytes, salt),
        }
    }
}

#[cfg(test)]
mod tests;
