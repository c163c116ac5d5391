//! Confidence interval of a number that was measured in several rounds.

use std::fmt;

/// Median, and the range that contains the true one in nineteen of twenty such measurements,
/// whatever the noise looks like. Each value is above or below the true median like a coin toss. So
/// the range is given by the values at ranks n/2 ± 0.98 √n. With five values it is their whole
/// range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    /// Computes the spread of the values of all rounds; 0 without values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let count = values.len();
        let margin = 0.98 * (count as f64).sqrt();
        let rank = ((count as f64 / 2.0 - margin).floor().max(0.0)) as usize;
        let at = |rank: usize| values.get(rank).copied().unwrap_or(0.0);
        let (below, above) = (at(count.saturating_sub(1) / 2), at(count / 2));
        Self { median: (below + above) / 2.0, low: at(rank), high: at(count.saturating_sub(rank + 1)) }
    }

    /// Returns the range as text.
    pub(crate) fn range(self, digits: usize) -> String {
        format!("{:.digits$} to {:.digits$}", self.low, self.high)
    }
}

/// Mean of the fastest quarter of the values, at least one; 0 without values. Disturbances make a
/// run slower. A program may also have two speeds, depending on where its memory happens to lie;
/// then its faster runs are compared.
pub(crate) fn fastest_quarter(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let count = values.len().div_ceil(4);
    values.iter().take(count).sum::<f64>() / count.max(1) as f64
}

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = formatter.precision().unwrap_or(2);
        write!(formatter, "{:.digits$} ({})", self.median, self.range(digits))
    }
}

#[test]
fn a_median_lies_between_the_ranks_of_a_fair_coin() {
    let spread = |count: u32| Spread::of((1..=count).rev().map(f64::from));
    assert_eq!(spread(0), Spread { median: 0.0, low: 0.0, high: 0.0 });
    assert_eq!(spread(5), Spread { median: 3.0, low: 1.0, high: 5.0 });
    assert_eq!(spread(16), Spread { median: 8.5, low: 5.0, high: 12.0 });
    assert_eq!(format!("{:.1}", spread(25)), "13.0 (8.0 to 18.0)");
}

#[test]
fn the_fastest_quarter_is_of_at_least_one_value() {
    assert_eq!(fastest_quarter([]), 0.0);
    assert_eq!(fastest_quarter([3.0]), 3.0);
    assert_eq!(fastest_quarter([9.0, 1.0, 8.0, 2.0, 7.0]), 1.5);
}
