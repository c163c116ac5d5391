//! Intervals of estimates of which only the sums are known, computed as if all blocks had one size.

use crate::{Amounts, Course, HeapId, LiveVariances, Sampling, Summary, Untold, Variances};

/// Estimates variances from sums alone, as if all blocks had one size. For a recording in which
/// everything was counted, all variances are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EqualBlocks {
    /// Mean distance of two samples in bytes; `None` if everything was counted.
    mean_bytes: Option<u64>,
    untold: Untold,
}

impl EqualBlocks {
    /// For the allocations of a recording.
    pub(crate) fn of(sampling: &Sampling) -> Self {
        Self {
            mean_bytes: sampling.largest_mean_bytes().filter(|_| !sampling.is_exact()),
            untold: sampling.untold(),
        }
    }

    /// Sets the variances of a heap's amounts. Mappings, and heaps that the program registers
    /// itself, are always counted.
    pub(crate) fn estimate(self, heap: HeapId, amounts: &mut Amounts) {
        if let Some(mean_bytes) = self.mean_bytes.filter(|_| heap == HeapId::MALLOC) {
            amounts.variances = Variances::of_equal_blocks(amounts, mean_bytes);
        }
        self.untold.mark(&mut amounts.variances);
    }

    /// Sets the variances of a summary's totals.
    pub(crate) fn estimate_summary(self, summary: &mut Summary) {
        if self == Self::default() {
            return;
        }
        let mut sum = Variances::default();
        for (_, heap, totals) in &mut summary.by_heap {
            let mut amounts = totals.amounts();
            self.estimate(*heap, &mut amounts);
            totals.variances = amounts.variances;
            sum += &amounts.variances;
        }
        if summary.by_heap.is_empty() {
            let mut amounts = summary.totals.amounts();
            self.estimate(HeapId::MALLOC, &mut amounts);
            sum = amounts.variances;
        }
        summary.totals.variances = sum;
    }

    /// Sets the variances of a course.
    pub(crate) fn estimate_course(self, course: &mut Course) {
        if self == Self::default() {
            return;
        }
        for moment in &mut course.moments {
            moment.variances = self.live_variances(moment.live_bytes, moment.live_count);
            for row in &mut moment.rows {
                row.variances = self.live_variances(row.live_bytes, row.live_count);
            }
        }
    }

    fn live_variances(self, bytes: u64, count: u64) -> LiveVariances {
        let variances = self.variances(bytes, count);
        LiveVariances { bytes_kib2: variances.outstanding_bytes, count: variances.outstanding_count }
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
    use crate::{ProcessIndex, SamplingPeriod, half_interval};

    #[test]
    fn what_was_counted_has_no_interval_and_samples_have_one() {
        let counted = EqualBlocks::of(&Sampling::default());
        assert_eq!(counted.live_variances(100 << 20, 1000), LiveVariances::default());
        let period = SamplingPeriod { process: ProcessIndex(0), from_ns: 0, mean_bytes: 1 << 20 };
        let sampled = EqualBlocks::of(&Sampling::new(vec![period]));
        // 1.96 * sqrt(100 MiB * 1 MiB), less the part of blocks of 100 KiB that is always seen.
        let variances = sampled.live_variances(100 << 20, 1000);
        assert_eq!(half_interval(true, variances.bytes_kib2) >> 20, 19);
        assert_eq!(half_interval(false, variances.count), 191);
        let mut mapped = Amounts { outstanding_bytes: 100 << 20, ..Amounts::default() };
        sampled.estimate(HeapId::MMAP, &mut mapped);
        assert_eq!(mapped.variances, Variances::default());
    }
}
