//! Estimates: sums of weights of samples, each with its variance.

use std::ops::AddAssign;

use heapr_table::Cell;
use heapr_table::quantity::{DEVIATIONS, bytes_within, plural_within};

use crate::{Amounts, Variances, Weight};

/// Half of the 95 % interval, from the variance of a count or of bytes (in KiB squared). 0 if the
/// amount is unknown.
#[must_use]
pub fn half_interval(is_bytes: bool, variance: u64) -> u64 {
    if variance == Variances::UNKNOWN {
        return 0;
    }
    let unit = if is_bytes { 1024.0 } else { 1.0 };
    ((variance as f64).sqrt() * DEVIATIONS * unit).round() as u64
}

/// A value and its variance; the variance is 0 if the value was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Estimate {
    /// The value: bytes, or a number of blocks.
    pub value: u64,
    /// Variance of the value; of bytes in KiB squared. [`Variances::UNKNOWN`]: the value is
    /// unknown.
    pub variance: u64,
}

impl Estimate {
    /// An estimate with this variance.
    #[must_use]
    pub const fn new(value: u64, variance: u64) -> Self {
        Self { value, variance }
    }

    /// Returns the rest without a part.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self {
            value: self.value.saturating_sub(part.value),
            variance: self.variance.saturating_sub(part.variance),
        }
    }
}

impl AddAssign for Estimate {
    fn add_assign(&mut self, more: Self) {
        self.value = self.value.saturating_add(more.value);
        self.variance = self.variance.saturating_add(more.variance);
    }
}

/// Bytes of some blocks and the number of these blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockEstimate {
    /// Bytes of the blocks.
    pub bytes: Estimate,
    /// Number of blocks.
    pub count: Estimate,
}

impl BlockEstimate {
    /// The blocks that a recorded one stands for.
    #[must_use]
    pub const fn of_weight(weight: Weight) -> Self {
        Self {
            bytes: Estimate::new(weight.bytes, weight.bytes_variance_kib2),
            count: Estimate::new(weight.count, weight.count_variance),
        }
    }

    /// Half of the 95 % interval of the bytes; 0 if they were counted.
    #[must_use]
    pub fn bytes_plus_minus(self) -> u64 {
        half_interval(true, self.bytes.variance)
    }

    /// Half of the 95 % interval of the number of blocks; 0 if they were counted.
    #[must_use]
    pub fn count_plus_minus(self) -> u64 {
        half_interval(false, self.count.variance)
    }

    /// Returns the rest without a part.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self { bytes: self.bytes.without(part.bytes), count: self.count.without(part.count) }
    }

    /// Text of the bytes: `1.50 MiB ± 120.0 KiB`.
    #[must_use]
    pub fn bytes_in_words(self) -> String {
        bytes_within(self.bytes.value, self.bytes_plus_minus())
    }

    /// Text of the blocks: `1.50 MiB ± 120.0 KiB in 1,234 blocks ± 99`.
    #[must_use]
    pub fn in_words(self) -> String {
        let blocks = plural_within(self.count.value, self.count_plus_minus(), "block");
        format!("{} in {blocks}", self.bytes_in_words())
    }

    /// The bytes as a table's cell.
    #[must_use]
    pub fn bytes_cell(self) -> Cell {
        Cell::from(self.bytes.value).within(self.bytes_plus_minus())
    }

    /// The number of blocks as a table's cell.
    #[must_use]
    pub fn count_cell(self) -> Cell {
        Cell::from(self.count.value).within(self.count_plus_minus())
    }
}

impl AddAssign for BlockEstimate {
    fn add_assign(&mut self, more: Self) {
        self.bytes += more.bytes;
        self.count += more.count;
    }
}

impl Amounts {
    /// All allocations.
    #[must_use]
    pub fn allocated(&self) -> BlockEstimate {
        BlockEstimate {
            bytes: Estimate::new(self.total_bytes, self.variances.total_bytes),
            count: Estimate::new(self.total_count, self.variances.total_count),
        }
    }

    /// Blocks that are not freed.
    #[must_use]
    pub fn outstanding(&self) -> BlockEstimate {
        BlockEstimate {
            bytes: Estimate::new(self.outstanding_bytes, self.variances.outstanding_bytes),
            count: Estimate::new(self.outstanding_count, self.variances.outstanding_count),
        }
    }

    /// Blocks that are live at the peak.
    #[must_use]
    pub fn at_peak(&self) -> BlockEstimate {
        BlockEstimate {
            bytes: Estimate::new(self.peak_bytes, self.variances.peak_bytes),
            count: Estimate::new(self.peak_count, self.variances.peak_count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_estimates_have_the_sums_of_their_variances() {
        let mut sum = Estimate::new(100 << 10, 9);
        sum += Estimate::new(50 << 10, 16);
        assert_eq!(sum, Estimate::new(150 << 10, 25));
        // 1.96 * 5 KiB.
        assert_eq!(half_interval(true, sum.variance), 10_035);
        assert_eq!(half_interval(false, 100), 20);
        assert_eq!(sum.without(Estimate::new(100 << 10, 9)), Estimate::new(50 << 10, 16));
        sum += Estimate::new(1, Variances::UNKNOWN);
        assert_eq!(half_interval(true, sum.variance), 0);
    }
}
