//! An amount of a metric with how uncertain it is: sums of estimates are estimates.

use heapr_query::Metric;
use heapr_trace::Amounts;

/// See the module. Of a recording in which all was counted none is uncertain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Estimate {
    /// How much.
    pub amount: u64,
    variance: u64,
}

impl Estimate {
    pub(crate) fn of(metric: Metric, amounts: &Amounts) -> Self {
        Self { amount: metric.of(amounts), variance: metric.variance(amounts) }
    }

    /// What is left without a part of it.
    pub(crate) fn without(self, part: Self) -> Self {
        Self {
            amount: self.amount.saturating_sub(part.amount),
            variance: self.variance.saturating_sub(part.variance),
        }
    }

    /// Half of the 95 % interval of so much of a metric; 0: it was counted.
    #[must_use]
    pub fn plus_minus(self, metric: Metric) -> u64 {
        metric.half_interval(self.variance)
    }

    /// The same of its difference to one that was estimated on its own.
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
