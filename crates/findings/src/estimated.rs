//! Amounts in sentences. In a sampled recording, each has half of its 95 % interval.

use heapr_table::quantity::{bytes_within, count_within, plural_within};
use heapr_trace::{EqualBlocks, Sampling};

use crate::site::Held;

/// Formatter of amounts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Estimated(EqualBlocks);

impl Estimated {
    pub(crate) fn of(sampling: &Sampling) -> Self {
        Self(EqualBlocks::of(sampling))
    }

    /// Half of the interval of `bytes` in `count` blocks.
    pub(crate) fn half_of_bytes(self, bytes: u64, count: u64) -> u64 {
        self.0.half_of_bytes(bytes, count)
    }

    /// Formats bytes in `count` blocks: `34.1 MiB ± 2.80 MiB`.
    pub(crate) fn bytes(self, bytes: u64, count: u64) -> String {
        bytes_within(bytes, self.half_of_bytes(bytes, count))
    }

    /// Formats a number of blocks of `bytes` in all: `1,234 ± 99`.
    pub(crate) fn count(self, count: u64, bytes: u64) -> String {
        count_within(count, self.0.half_of_count(count, bytes))
    }

    /// Formats a number of blocks of `bytes` in all, with the noun: `1,234 blocks ± 99`.
    pub(crate) fn blocks(self, count: u64, bytes: u64) -> String {
        plural_within(count, self.0.half_of_count(count, bytes), "block")
    }

    /// Formats the bytes beside blocks, such as the allocator's overhead: `count` blocks, of
    /// `bytes` in all, have `beside_bytes` beside them.
    pub(crate) fn beside(self, beside_bytes: u64, count: u64, bytes: u64) -> String {
        let half = u128::from(beside_bytes) * u128::from(self.0.half_of_count(count, bytes));
        let half = half / u128::from(count.max(1));
        bytes_within(beside_bytes, u64::try_from(half).unwrap_or(u64::MAX))
    }

    /// Half of the interval of the change from `before` to `after`. If `is_kept`, all of `before`
    /// is still live, so that only the blocks added since are uncertain.
    pub(crate) fn half_of_change(self, before: Held, after: Held, is_kept: bool) -> u64 {
        if is_kept {
            let (bytes, count) =
                (after.bytes.saturating_sub(before.bytes), after.count.saturating_sub(before.count));
            return self.half_of_bytes(bytes, count);
        }
        let [before, after] = [before, after].map(|held| self.half_of_bytes(held.bytes, held.count) as f64);
        before.hypot(after) as u64
    }

    /// Whether the number of blocks is known.
    pub(crate) fn tells_counts(self) -> bool {
        self.0.tells_counts()
    }

    /// Formats an amount: `34.1 MiB ± 2.80 MiB in 1,234 blocks ± 99`, or only its bytes if the
    /// number of blocks is unknown.
    pub(crate) fn held(self, held: Held) -> String {
        if !self.tells_counts() {
            return self.bytes(held.bytes, held.count);
        }
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
        let sampled = Estimated(EqualBlocks::every(1 << 20));
        // 1.96 * sqrt(100 MiB * 1 MiB), less what is always seen of blocks of 100 KiB.
        assert_eq!(sampled.held(held), "100.0 MiB ± 19.1 MiB in 1,000 blocks ± 191");
        // Half of it is new. Blocks that stay add no uncertainty; exchanged blocks do.
        let before = Held { bytes: 50 << 20, count: 500, ..Held::default() };
        let kept = sampled.half_of_change(before, held, true);
        assert_eq!(kept, sampled.half_of_bytes(50 << 20, 500));
        let exchanged = sampled.half_of_change(before, held, false);
        let both = (sampled.half_of_bytes(50 << 20, 500), sampled.half_of_bytes(100 << 20, 1000));
        assert!(exchanged > both.1 && exchanged < both.0 + both.1, "{exchanged} of {both:?}");
        assert_eq!(sampled.beside(16_000, 1000, 100 << 20), "15.6 KiB ± 2.98 KiB");
    }
}
