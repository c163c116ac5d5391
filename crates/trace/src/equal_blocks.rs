//! Intervals of estimates of which only the sums are known, computed as if all blocks had one size.

use crate::{Amounts, HeapId, Sampling, Untold, Variances, half_interval};

/// Estimates variances from sums alone, as if all blocks had one size. For a recording in which
/// everything was counted, all variances are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EqualBlocks {
    /// Mean distance of two samples in bytes; `None` if everything was counted.
    mean_bytes: Option<u64>,
    untold: Untold,
}

const UNTOLD_NOTHING: Untold = Untold {
    counts: false,
    totals: false,
    live: false,
    peak: false,
    reallocs: false,
    temporary: false,
    times: false,
};

impl EqualBlocks {
    /// For the allocations of a recording.
    #[must_use]
    pub fn of(sampling: &Sampling) -> Self {
        Self {
            mean_bytes: sampling.largest_mean_bytes().filter(|_| !sampling.is_exact()),
            untold: sampling.untold(),
        }
    }

    /// For samples at this mean distance.
    #[must_use]
    pub const fn every(mean_bytes: u64) -> Self {
        Self { mean_bytes: Some(mean_bytes), untold: UNTOLD_NOTHING }
    }

    /// Sets the variances of a heap's amounts. Mappings, and heaps that the program registers
    /// itself, are always counted.
    pub fn estimate(self, heap: HeapId, amounts: &mut Amounts) {
        if let Some(mean_bytes) = self.mean_bytes.filter(|_| heap == HeapId::MALLOC) {
            amounts.variances = Variances::of_equal_blocks(amounts, mean_bytes);
        }
        self.untold.mark(&mut amounts.variances);
    }

    /// Whether the file tells the number of blocks.
    #[must_use]
    pub fn tells_counts(self) -> bool {
        !self.untold.counts
    }

    /// Sets the variances of a heap's peak alone, from its bytes and blocks.
    pub fn estimate_peak(
        self,
        heap: HeapId,
        (peak_bytes, peak_count): (u64, u64),
        variances: &mut Variances,
    ) {
        let mut amounts = Amounts { peak_bytes, peak_count, variances: *variances, ..Amounts::default() };
        self.estimate(heap, &mut amounts);
        variances.peak_bytes = amounts.variances.peak_bytes;
        variances.peak_count = amounts.variances.peak_count;
    }

    /// Half of the 95 % interval of `bytes` in `count` blocks; 0 if the blocks were counted.
    #[must_use]
    pub fn half_of_bytes(self, bytes: u64, count: u64) -> u64 {
        half_interval(true, self.variances(bytes, count).outstanding_bytes)
    }

    /// Half of the 95 % interval of `count` blocks with `bytes` in all.
    #[must_use]
    pub fn half_of_count(self, count: u64, bytes: u64) -> u64 {
        half_interval(false, self.variances(bytes, count).outstanding_count)
    }

    fn variances(self, outstanding_bytes: u64, outstanding_count: u64) -> Variances {
        let mut amounts = Amounts { outstanding_bytes, outstanding_count, ..Amounts::default() };
        self.estimate(HeapId::MALLOC, &mut amounts);
        amounts.variances
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProcessIndex, SamplingPeriod};

    #[test]
    fn what_was_counted_has_no_interval_and_samples_have_one() {
        assert_eq!(EqualBlocks::of(&Sampling::default()).half_of_bytes(100 << 20, 1000), 0);
        let period = SamplingPeriod { process: ProcessIndex(0), from_ns: 0, mean_bytes: 1 << 20 };
        let sampled = EqualBlocks::of(&Sampling::new(vec![period]));
        // 1.96 * sqrt(100 MiB * 1 MiB), less the part of blocks of 100 KiB that is always seen.
        assert_eq!(sampled.half_of_bytes(100 << 20, 1000) >> 20, 19);
        assert_eq!(sampled.half_of_count(1000, 100 << 20), 191);
        let mut mapped = Amounts { outstanding_bytes: 100 << 20, ..Amounts::default() };
        sampled.estimate(HeapId::MMAP, &mut mapped);
        assert_eq!(mapped.variances, Variances::default());
    }
}
