//! Amount of a metric with its variance. Sums of estimates are estimates.

use heapr_query::Metric;
use heapr_trace::Amounts;

/// Amount with its variance; in a recording in which everything was counted, the variance is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Estimate {
    /// The amount.
    pub amount: u64,
    variance: u64,
}

impl Estimate {
    pub(crate) fn of(metric: Metric, amounts: &Amounts) -> Self {
        Self { amount: metric.of(amounts), variance: metric.variance(amounts) }
    }

    /// Returns the rest without a part.
    pub(crate) fn without(self, part: Self) -> Self {
        Self {
            amount: self.amount.saturating_sub(part.amount),
            variance: self.variance.saturating_sub(part.variance),
        }
    }

    /// Half of the 95 % interval for a metric; 0 if the amount was counted.
    #[must_use]
    pub fn plus_minus(self, metric: Metric) -> u64 {
        metric.half_interval(self.variance)
    }

    /// Half of the 95 % interval of the difference to an independent estimate.
    #[must_use]
    pub fn plus_minus_of_difference(self, other: Self, metric: Metric) -> u64 {
        metric.half_interval(self.variance.saturating_add(other.variance))
    }
}

impl std::ops::AddAssign for Estimate {
    fn add_assign(&mut self, more: Self) {
        self.amount = self.amount.saturating_add(more.amount);
        self.variance = self.variance.saturating_add(more.variance);
    }
}
