//! Steadiness of an amount's growth over snapshots of any kind of heap. ([`crate::Trend`] judges
//! the certainty of growth from its times.)

/// Growth of an amount from the first to the last of a series, and its steadiness.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyGrowth {
    /// Last amount minus the first.
    pub growth: i64,
    /// Steadiness from 0 (no growth) to 1 (each step goes up). Product of two shares: that of the
    /// steps that go up, and that of the growth in the sum of all steps up and down. So one large
    /// step in ten is not steady, and neither is an amount that comes and goes.
    pub steadiness: f64,
}

impl SteadyGrowth {
    /// For amounts in order of time.
    #[must_use]
    pub fn of(amounts: &[u64]) -> Self {
        let difference = |from: u64, to: u64| {
            i64::try_from(i128::from(to) - i128::from(from)).unwrap_or(if to > from {
                i64::MAX
            } else {
                i64::MIN
            })
        };
        let (Some(&first), Some(&last)) = (amounts.first(), amounts.last()) else {
            return Self { growth: 0, steadiness: 0.0 };
        };
        let growth = difference(first, last);
        let steps = amounts.windows(2).map(|pair| difference(pair[0], pair[1]));
        let (mut rising, mut way, mut count) = (0_u32, 0.0, 0_u32);
        for step in steps {
            rising += u32::from(step > 0);
            way += step.unsigned_abs() as f64;
            count += 1;
        }
        let steadiness =
            if growth > 0 { f64::from(rising) / f64::from(count) * growth as f64 / way } else { 0.0 };
        Self { growth, steadiness }
    }

    /// Sort key of lists: growth times steadiness; amounts that shrank come last.
    #[must_use]
    pub fn rank(&self) -> f64 {
        if self.growth > 0 { self.growth as f64 * self.steadiness } else { self.growth as f64 }
    }
}

/// The course of an amount in words.
#[must_use]
pub fn course_in_words(amounts: &[u64]) -> &'static str {
    let never_falls = amounts.is_sorted();
    match SteadyGrowth::of(amounts) {
        SteadyGrowth { steadiness: 1.0, .. } => "grows each time",
        _ if never_falls => "grows",
        _ if amounts.iter().rev().is_sorted() => "shrinks",
        _ => "varies",
    }
}

/// An integer with the same order as the value.
#[must_use]
pub fn ordered(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(amounts: &[u64]) -> (i64, f64) {
        let SteadyGrowth { growth, steadiness } = SteadyGrowth::of(amounts);
        (growth, (steadiness * 1000.0).round() / 1000.0)
    }

    #[test]
    fn every_step_up_is_steady_and_one_leap_is_not() {
        assert_eq!(of(&[1, 2, 3, 4, 5]), (4, 1.0));
        assert_eq!(of(&[10, 20]), (10, 1.0));
        assert_eq!(of(&[0, 0, 400, 400, 400]), (400, 0.25));
        // Up 10, down 4, up 10: 16 of steps of 24 in all, in two of three steps.
        assert_eq!(of(&[0, 10, 6, 16]), (16, 0.444));
    }

    #[test]
    fn numbers_have_the_order_of_their_values() {
        let values = [f64::MIN, -2.5, -1.0, 0.0, 1e-9, 3.0, 1e300];
        assert!(values.windows(2).all(|pair| ordered(pair[0]) < ordered(pair[1])));
    }

    #[test]
    fn what_shrinks_or_stays_is_not_steady_and_comes_last() {
        assert_eq!(of(&[5, 9, 5]), (0, 0.0));
        assert_eq!(of(&[9, 5]), (-4, 0.0));
        assert_eq!(of(&[]), (0, 0.0));
        assert_eq!(of(&[7]), (0, 0.0));
        assert_eq!(of(&[0, u64::MAX]).0, i64::MAX);
        let rank = |amounts: &[u64]| SteadyGrowth::of(amounts).rank();
        assert!(rank(&[0, 50, 100]) > rank(&[0, 150, 150]), "steps before a leap");
        assert!(rank(&[3, 3]) > rank(&[3, 2]));
    }

    #[test]
    fn a_course_has_a_word() {
        let words = [&[1, 2, 3][..], &[1, 1, 3], &[3, 3, 1], &[1, 3, 2]].map(course_in_words);
        assert_eq!(words, ["grows each time", "grows", "shrinks", "varies"]);
    }
}
