//! Memory of a group over time: fine for the last minutes, coarse before, always bounded.

use serde::{Deserialize, Serialize};

/// Memory at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Point {
    /// Wall clock, ns since 1970.
    pub unix_ns: u64,
    /// Bytes that count against the limit.
    pub usage_bytes: u64,
    /// Bytes among them that the kernel cannot take back: all but pages of files.
    pub held_bytes: u64,
}

/// Largest number of points.
const POINTS_MAX: usize = 240;
/// Number of newest points that are never thinned out.
const FINE: usize = 120;
/// Share of a rise by which a point may fall without ending it, in hundredths.
const FALL_PERCENT: u64 = 10;

/// Part of the most before by which a rise is beyond it, and least bytes: the agent itself takes
/// pages as a program goes on.
const BEYOND_PART: u64 = 20;
const BEYOND_BYTES_MIN: u64 = 2 << 20;

/// Points in the order of time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Course {
    points: Vec<Point>,
}

impl Course {
    /// Adds a point. A point before the last one is left out: the clock was set back.
    pub fn add(&mut self, point: Point) {
        if self.points.last().is_some_and(|last| last.unix_ns >= point.unix_ns) {
            return;
        }
        self.points.push(point);
        if self.points.len() > POINTS_MAX {
            let fine_from = self.points.len() - FINE;
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number > fine_from || number % 2 == 1
            });
        }
    }

    /// All points, oldest first.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Bytes a minute by which held memory has changed since `from_unix_ns`, by least squares.
    /// `None`: fewer than four points, or less than two seconds.
    #[must_use]
    pub fn rate(&self, from_unix_ns: u64) -> Option<i64> {
        const LEAST_NS: u64 = 2_000_000_000;
        let points: Vec<&Point> = self.points.iter().filter(|point| point.unix_ns >= from_unix_ns).collect();
        let (first, last) = (points.first()?, points.last()?);
        if points.len() < 4 || last.unix_ns.saturating_sub(first.unix_ns) < LEAST_NS {
            return None;
        }
        let x = |point: &Point| point.unix_ns.saturating_sub(first.unix_ns) as f64 / 60e9;
        let y = |point: &Point| point.held_bytes as f64;
        let count = points.len() as f64;
        let mean =
            |value: &dyn Fn(&Point) -> f64| points.iter().map(|point| value(point)).sum::<f64>() / count;
        let (mean_x, mean_y) = (mean(&x), mean(&y));
        let covariance: f64 = points.iter().map(|point| (x(point) - mean_x) * (y(point) - mean_y)).sum();
        let variance: f64 = points.iter().map(|point| (x(point) - mean_x).powi(2)).sum();
        Some((covariance / variance) as i64)
    }

    /// True if held memory rises beyond what it had before this rise, and beyond `peak_bytes`, by a
    /// twentieth and at least 2 MiB. A collected heap rises again and again to where it was.
    #[must_use]
    pub fn rises_beyond(&self, peak_bytes: u64) -> bool {
        let (Some(last), Some(from)) = (self.points.last(), self.rising_since()) else { return false };
        let before = self.points.iter().take_while(|point| point.unix_ns < from.unix_ns);
        let most = before.map(|point| point.held_bytes).max().unwrap_or(0).max(peak_bytes);
        last.held_bytes > most.saturating_add((most / BEYOND_PART).max(BEYOND_BYTES_MIN))
    }

    /// True if held memory has risen for as long as it takes to rise by `left_bytes` more, at a
    /// rate in bytes a minute.
    #[must_use]
    pub fn has_risen_as_long(&self, rate: i64, left_bytes: u64) -> bool {
        let (Some(last), Some(from)) = (self.points.last(), self.rising_since()) else { return false };
        // Memory may have rested before it rose.
        let begin =
            self.points.iter().rev().find(|point| point.held_bytes <= from.held_bytes).unwrap_or(&from);
        let risen_ns = last.unix_ns.saturating_sub(begin.unix_ns);
        rate > 0 && left_bytes as f64 / rate as f64 * 60e9 <= risen_ns as f64
    }

    /// Time since which held memory rises to its last value, and the value then. Small falls do not
    /// end a rise. `None`: it does not rise.
    #[must_use]
    pub fn rising_since(&self) -> Option<Point> {
        let last = self.points.last()?;
        let mut lowest = *last;
        let mut highest_after = last.held_bytes;
        for point in self.points.iter().rev().skip(1) {
            let rise = last.held_bytes.saturating_sub(lowest.held_bytes.min(point.held_bytes));
            let fall = rise / 100 * FALL_PERCENT;
            // Memory was as high before: what came after is no part of one rise.
            if point.held_bytes > highest_after.saturating_add(fall)
                || point.held_bytes > lowest.held_bytes.saturating_add(fall + (1 << 20))
            {
                break;
            }
            if point.held_bytes <= lowest.held_bytes {
                lowest = *point;
            }
            highest_after = highest_after.max(point.held_bytes);
        }
        (lowest.held_bytes < last.held_bytes).then_some(lowest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const MIB: u64 = 1 << 20;

    fn course(values: impl IntoIterator<Item = u64>) -> Course {
        let mut course = Course::default();
        for (second, mib) in values.into_iter().enumerate() {
            let unix_ns = (second as u64 + 1000) * SECOND_NS;
            course.add(Point { unix_ns, usage_bytes: mib * MIB, held_bytes: mib * MIB });
        }
        course
    }

    #[test]
    fn the_number_of_points_is_bounded_and_the_newest_stay() {
        let course = course(0..100_000);
        let points = course.points();
        assert!(points.len() <= POINTS_MAX);
        assert_eq!(points.first().unwrap().held_bytes, 0);
        let newest: Vec<u64> =
            points.iter().rev().take(FINE - 1).map(|point| point.held_bytes / MIB).collect();
        assert!(newest.windows(2).all(|pair| pair[0] == pair[1] + 1), "{newest:?}");
    }

    #[test]
    fn a_rise_foretells_no_more_time_than_it_has_lasted() {
        // A mebibyte a second for twenty seconds, after a time of rest.
        let rising = course([50; 10].into_iter().chain(50..=70));
        let rate = 60 * MIB as i64;
        assert!(rising.has_risen_as_long(rate, 20 * MIB));
        assert!(!rising.has_risen_as_long(rate, 30 * MIB));
        assert!(!rising.has_risen_as_long(-rate, 0));
        assert!(!course([70, 60, 50]).has_risen_as_long(rate, MIB));
    }

    #[test]
    fn a_rate_is_that_of_the_time_asked_for() {
        let rising = course((0..60).map(|second| 10 + second * 2));
        assert_eq!(rising.rate(0).unwrap() / MIB as i64, 120);
        let late = course((0..60).map(|second| if second < 50 { 10 } else { 10 + (second - 49) * 6 }));
        assert_eq!(late.rate(1051 * SECOND_NS).unwrap() / MIB as i64, 360);
        assert_eq!(course([1, 2, 3]).rate(0), None);
    }

    #[test]
    fn a_rise_begins_where_memory_was_lowest_and_small_falls_do_not_end_it() {
        let since = |values: &[u64]| {
            course(values.iter().copied()).rising_since().map(|point| point.unix_ns / SECOND_NS - 1000)
        };
        assert_eq!(since(&[50, 10, 20, 30, 29, 40, 60]), Some(1));
        assert_eq!(since(&[5, 60, 60, 60]), Some(0));
        assert_eq!(since(&[60, 60, 60]), None);
        assert_eq!(since(&[60, 50, 40]), None);
    }

    #[test]
    fn a_rise_to_where_memory_was_before_is_not_beyond_it() {
        let beyond = |values: &[u64], peak| course(values.iter().copied()).rises_beyond(peak * MIB);
        assert!(beyond(&[20, 30, 40], 20) && !beyond(&[20, 30, 40], 39));
        assert!(!beyond(&[40, 20, 30, 42], 0) && beyond(&[40, 20, 30, 43], 0));
        assert!(!beyond(&[40, 40], 0));
    }

    #[test]
    fn a_clock_that_is_set_back_adds_nothing() {
        let mut course = course([1, 2]);
        course.add(Point { unix_ns: 5, ..Point::default() });
        assert_eq!(course.points().len(), 2);
    }
}
