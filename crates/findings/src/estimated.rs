//! Amounts in sentences: of a recording of samples each with half of its 95 % interval.

use heapr_query::Metric;
use heapr_table::quantity::{bytes_within, plural_within};
use heapr_trace::{Amounts, Sampling, Variances};

use crate::site::Held;

/// How amounts are said.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Estimated {
    /// Of samples, how far they lie apart; `None`: all was counted.
    mean_bytes: Option<u64>,
}

impl Estimated {
    pub(crate) fn of(sampling: &Sampling) -> Self {
        Self { mean_bytes: sampling.largest_mean_bytes().filter(|_| !sampling.is_exact()) }
    }

    /// What is held, whose sums alone are known: as if all its blocks were of one size.
    fn amounts(self, bytes: u64, count: u64) -> Amounts {
        let mut amounts =
            Amounts { outstanding_bytes: bytes, outstanding_count: count, ..Amounts::default() };
        if let Some(mean_bytes) = self.mean_bytes {
            amounts.variances = Variances::of_equal_blocks(&amounts, mean_bytes);
        }
        amounts
    }

    /// `34.1 MiB ± 2.80 MiB` in so many blocks.
    pub(crate) fn bytes(self, bytes: u64, count: u64) -> String {
        bytes_within(bytes, Metric::OutstandingBytes.plus_minus(&self.amounts(bytes, count)))
    }

    /// `1,234 blocks ± 99` of so many bytes.
    pub(crate) fn blocks(self, count: u64, bytes: u64) -> String {
        let plus_minus = Metric::OutstandingCount.plus_minus(&self.amounts(bytes, count));
        plural_within(count, plus_minus, "block")
    }

    /// `34.1 MiB ± 2.80 MiB in 1,234 blocks ± 99`.
    pub(crate) fn held(self, held: Held) -> String {
        format!("{} in {}", self.bytes(held.bytes, held.count), self.blocks(held.count, held.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_has_no_interval_and_samples_have_one() {
        let held = Held { bytes: 100 << 20, count: 1000, ..Held::default() };
        assert_eq!(Estimated::default().held(held), "100.0 MiB in 1,000 blocks");
        let sampled = Estimated { mean_bytes: Some(1 << 20) };
        // 1.96 * sqrt(100 MiB * 1 MiB), less what is always seen of blocks of 100 KiB.
        assert_eq!(sampled.held(held), "100.0 MiB ± 19.1 MiB in 1,000 blocks ± 191");
    }
}
