//! Growth of a series of amounts: its rate and its certainty.
//!
//! *Rate*: the median of the slopes between all pairs of points (Theil and Sen). Up to three of ten
//! points may be outliers without moving it far. *Chance*: the probability that amounts without a
//! trend come in an order that rises at least as much (Mann and Kendall). It is exact up to ten
//! points, and uses the normal distribution beyond.

/// Largest number of points for which the chance is exact.
const EXACT_MAX: usize = 10;

/// Trend of a series of amounts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Robust rate of growth per hour.
    pub per_hour: f64,
    /// Share of the steps that go up.
    pub rising_share: f64,
    /// Probability of such an order without a trend.
    pub chance: f64,
    /// Last amount minus the first.
    pub growth: i128,
}

impl Trend {
    /// The trend of (time in ns, amount), in order of time; `None` for fewer than two points.
    #[must_use]
    pub fn of(points: &[(u64, u64)]) -> Option<Self> {
        let (&(_, first), &(_, last)) = (points.first()?, points.last()?);
        if points.len() < 2 {
            return None;
        }
        let (mut slopes, mut score, mut ties) = (Vec::new(), 0_i64, false);
        for (place, &(later_ns, later)) in points.iter().enumerate() {
            for &(earlier_ns, earlier) in &points[..place] {
                let difference = later as f64 - earlier as f64;
                if later_ns > earlier_ns {
                    slopes.push(difference / (later_ns - earlier_ns) as f64);
                }
                score += i64::from(later > earlier) - i64::from(later < earlier);
                ties |= later == earlier;
            }
        }
        slopes.sort_by(f64::total_cmp);
        let rising = points.windows(2).filter(|pair| pair[1].1 > pair[0].1).count();
        Some(Self {
            per_hour: median(&slopes) * 3.6e12,
            rising_share: rising as f64 / (points.len() - 1) as f64,
            chance: if ties || points.len() > EXACT_MAX {
                normal_chance(points, score)
            } else {
                exact_chance(points.len(), score)
            },
            growth: i128::from(last) - i128::from(first),
        })
    }
}

fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => sorted[length / 2],
        length => f64::midpoint(sorted[length / 2 - 1], sorted[length / 2]),
    }
}

/// Share of the orders of `count` different amounts whose score is at least `score`, counted by
/// inversions.
fn exact_chance(count: usize, score: i64) -> f64 {
    let pairs = count * (count - 1) / 2;
    // Number of orders by number of falling pairs.
    let mut orders = vec![0_u64; pairs + 1];
    orders[0] = 1;
    for length in 2..=count {
        let shorter = orders.clone();
        for (falls, order) in orders.iter_mut().enumerate() {
            *order = (0..length.min(falls + 1)).map(|new| shorter[falls - new]).sum();
        }
    }
    let falls_max = (pairs as i64 - score) / 2;
    let at_least: u64 = orders.iter().take(usize::try_from(falls_max + 1).unwrap_or(0)).sum();
    at_least as f64 / orders.iter().sum::<u64>() as f64
}

fn normal_chance(points: &[(u64, u64)], score: i64) -> f64 {
    let spread = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let mut amounts: Vec<u64> = points.iter().map(|&(_, amount)| amount).collect();
    amounts.sort_unstable();
    let tied: f64 = amounts.chunk_by(|one, other| one == other).map(|tie| spread(tie.len() as f64)).sum();
    let variance = (spread(points.len() as f64) - tied) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    // Continuity correction: the score is a whole number, the distribution is continuous.
    let deviation = (score as f64 - score.signum() as f64) / variance.sqrt();
    upper_tail(deviation)
}

/// Probability of more than `deviation` standard deviations (Abramowitz and Stegun 7.1.26: within
/// 1.5e-7).
fn upper_tail(deviation: f64) -> f64 {
    let x = deviation.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let polynomial = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let tail = polynomial * (-x * x).exp() / 2.0;
    if deviation >= 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trend(amounts: &[u64]) -> Trend {
        let points: Vec<(u64, u64)> = amounts
            .iter()
            .enumerate()
            .map(|(place, &amount)| (place as u64 * 3_600_000_000_000, amount))
            .collect();
        Trend::of(&points).unwrap()
    }

    #[test]
    fn the_chance_of_rising_all_the_way_is_one_in_all_orders() {
        for (amounts, orders) in [(&[1, 2][..], 2.0), (&[1, 2, 5], 6.0), (&[1, 2, 3, 9, 10], 120.0)] {
            let trend = trend(amounts);
            assert!((trend.chance - 1.0 / orders).abs() < 1e-12, "{trend:?}");
            assert_eq!(trend.rising_share, 1.0);
        }
        assert_eq!(trend(&[9, 5, 1]).chance, 1.0);
    }

    #[test]
    fn the_exact_chance_is_what_counting_all_orders_gives() {
        // All 24 orders of four amounts.
        let mut at_least = 0;
        let score = |order: &[u64]| {
            let pairs = (0..order.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
            pairs.map(|(i, j)| if order[j] > order[i] { 1_i64 } else { -1 }).sum::<i64>()
        };
        for number in 0..256_u64 {
            let order = [number & 3, number >> 2 & 3, number >> 4 & 3, number >> 6];
            let is_order = (0..4).all(|amount| order.contains(&amount));
            at_least += u64::from(is_order && score(&order) >= 4);
        }
        assert!((exact_chance(4, 4) - at_least as f64 / 24.0).abs() < 1e-12);
    }

    #[test]
    fn an_outlier_does_not_move_the_rate() {
        assert_eq!(trend(&[100, 200, 300, 400, 500]).per_hour, 100.0);
        let disturbed = trend(&[100, 200, 90_000, 400, 500, 600, 700, 800]);
        assert!((disturbed.per_hour - 100.0).abs() < 1.0, "{disturbed:?}");
    }

    #[test]
    fn the_normal_chance_is_near_the_exact_one_and_ties_are_no_rise() {
        let points: Vec<(u64, u64)> =
            [1, 3, 2, 5, 4, 7, 6, 9].iter().enumerate().map(|(t, &a)| (t as u64, a)).collect();
        let score = 28 - 2 * 3;
        assert!((normal_chance(&points, score) - exact_chance(8, score)).abs() < 0.01);
        assert_eq!(trend(&[5, 5, 5, 5]).chance, 1.0);
        assert_eq!(trend(&[5, 5, 5, 5]).rising_share, 0.0);
        assert!(trend(&[10, 11, 11, 12, 13, 14]).chance < 0.02);
    }
}
