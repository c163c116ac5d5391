//! Amounts in sentences. In a sampled recording, each has half of its 95 % interval.

use heapr_table::quantity::{bytes_within, count_within, plural_within};
use heapr_trace::{BlockEstimate, Estimate, Sampling, Totals, half_interval};

use crate::site::Held;

/// Formatter of amounts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Estimated {
    /// Variance in KiB squared of each byte at the peak, for sums of unknown blocks.
    variance_per_byte: f64,
    is_without_counts: bool,
}

impl Estimated {
    pub(crate) fn of(sampling: &Sampling, totals: &Totals) -> Self {
        let peak = totals.amounts().at_peak().bytes;
        let is_estimate = !sampling.is_exact() && !sampling.untold().peak;
        let variance_per_byte =
            if is_estimate { peak.variance as f64 / peak.value.max(1) as f64 } else { 0.0 };
        Self { variance_per_byte, is_without_counts: sampling.untold().counts }
    }

    /// Half of the interval of bytes in unknown blocks, as if their sizes were those at the peak.
    pub(crate) fn half_of_bytes(self, bytes: u64) -> u64 {
        half_interval(true, (bytes as f64 * self.variance_per_byte).ceil() as u64)
    }

    /// Formats bytes in unknown blocks: `34.1 MiB ± 2.80 MiB`.
    pub(crate) fn bytes(self, bytes: u64) -> String {
        bytes_within(bytes, self.half_of_bytes(bytes))
    }

    /// Formats the bytes of blocks: `34.1 MiB ± 2.80 MiB`.
    pub(crate) fn bytes_of(self, blocks: BlockEstimate) -> String {
        blocks.bytes_in_words()
    }

    /// Formats a number of blocks: `1,234 ± 99`.
    pub(crate) fn count(self, count: Estimate) -> String {
        count_within(count.value, half_interval(false, count.variance))
    }

    /// Formats a number of blocks with the noun: `1,234 blocks ± 99`.
    pub(crate) fn blocks(self, count: Estimate) -> String {
        plural_within(count.value, half_interval(false, count.variance), "block")
    }

    /// Formats the bytes beside blocks, such as the allocator's overhead.
    pub(crate) fn beside(self, beside_bytes: u64, blocks: BlockEstimate) -> String {
        let half = u128::from(beside_bytes) * u128::from(blocks.count_plus_minus());
        let half = half / u128::from(blocks.count.value.max(1));
        bytes_within(beside_bytes, u64::try_from(half).unwrap_or(u64::MAX))
    }

    /// Half of the interval of the change from `before` to `after`. If `is_kept`, all of `before`
    /// is still live, so that only the blocks added since are uncertain.
    pub(crate) fn half_of_change(self, before: Held, after: Held, is_kept: bool) -> u64 {
        let (before, after) = (before.live(), after.live());
        match is_kept {
            true => after.without(before).bytes_plus_minus(),
            false => half_interval(true, before.bytes.variance.saturating_add(after.bytes.variance)),
        }
    }

    /// Whether the number of blocks is known.
    pub(crate) fn tells_counts(self) -> bool {
        !self.is_without_counts
    }

    /// Formats blocks: `34.1 MiB ± 2.80 MiB in 1,234 blocks ± 99`, or only their bytes if their
    /// number is unknown.
    pub(crate) fn held(self, blocks: BlockEstimate) -> String {
        if !self.tells_counts() {
            return self.bytes_of(blocks);
        }
        format!("{} in {}", self.bytes_of(blocks), self.blocks(blocks.count))
    }
}

/// A number of blocks like those of an estimate, of which the variance is known.
pub(crate) fn as_many_as(count: u64, like: Estimate) -> Estimate {
    let variance = like.variance as f64 * count as f64 / like.value.max(1) as f64;
    Estimate::new(count, variance.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use heapr_trace::LiveVariances;

    use super::*;

    #[test]
    fn what_was_counted_has_no_interval_and_samples_have_one() {
        let said = Estimated::default();
        let held = Held { bytes: 100 << 20, count: 1000, ..Held::default() };
        assert_eq!(said.held(held.live()), "100.0 MiB in 1,000 blocks");
        let variances = LiveVariances { bytes_kib2: 100 << 20, count: 10_000 };
        let sampled = Held { variances, ..held };
        // 1.96 * 10 MiB, and 1.96 * 100.
        assert_eq!(said.held(sampled.live()), "100.0 MiB ± 19.6 MiB in 1,000 blocks ± 196");
        // Half of it is new. Blocks that stay add no uncertainty; exchanged blocks do.
        let half = LiveVariances { bytes_kib2: 50 << 20, count: 5_000 };
        let before = Held { bytes: 50 << 20, count: 500, variances: half, ..Held::default() };
        let kept = said.half_of_change(before, sampled, true);
        assert_eq!(kept, before.live().bytes_plus_minus());
        let exchanged = said.half_of_change(before, sampled, false);
        let both = (before.live().bytes_plus_minus(), sampled.live().bytes_plus_minus());
        assert!(exchanged > both.1 && exchanged < both.0 + both.1, "{exchanged} of {both:?}");
        assert_eq!(said.beside(16_000, sampled.live()), "15.6 KiB ± 3.06 KiB");
        assert_eq!(as_many_as(2000, sampled.live().count), Estimate::new(2000, 20_000));
    }
}
