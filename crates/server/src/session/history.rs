//! History of a session's status, in bounded memory.

use heapr_session::SessionStatus;
use serde::Serialize;

use crate::json::are_counted;

/// Number of moments sent. At twice as many every second one is dropped.
const MOMENTS_MAX: usize = 2_000;
const COLUMNS: usize = 6;

/// Columns of the status over time.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct History {
    time_ns: Vec<u64>,
    live_bytes: Vec<u64>,
    live_count: Vec<u64>,
    /// Halves of the 95 % intervals of both, if they are estimates.
    #[serde(skip_serializing_if = "are_counted")]
    live_bytes_plus_minus: Vec<u64>,
    #[serde(skip_serializing_if = "are_counted")]
    live_count_plus_minus: Vec<u64>,
    event_count: Vec<u64>,
}

impl History {
    /// Adds a status.
    pub(crate) fn add(&mut self, status: &SessionStatus) {
        self.push([
            status.duration_ns,
            status.live_bytes,
            status.live_count,
            status.live_bytes_plus_minus,
            status.live_count_plus_minus,
            status.event_count,
        ]);
    }

    fn push(&mut self, moment: [u64; COLUMNS]) {
        let mut columns = self.columns();
        columns.iter_mut().zip(moment).for_each(|(column, value)| column.push(value));
        if columns[0].len() > 2 * MOMENTS_MAX {
            for column in columns {
                let mut number = 0;
                column.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
            }
        }
    }

    /// At most `MOMENTS_MAX` of the moments, with the last one.
    pub(crate) fn thinned(&self) -> Self {
        let step = self.time_ns.len().div_ceil(MOMENTS_MAX).max(1);
        let mut thinned = self.clone();
        for column in thinned.columns() {
            let last = column.len().saturating_sub(1);
            let kept = column.iter().enumerate().filter(|(number, _)| (last - number) % step == 0);
            *column = kept.map(|(_, &value)| value).collect();
        }
        thinned
    }

    fn columns(&mut self) -> [&mut Vec<u64>; COLUMNS] {
        [
            &mut self.time_ns,
            &mut self.live_bytes,
            &mut self.live_count,
            &mut self.live_bytes_plus_minus,
            &mut self.live_count_plus_minus,
            &mut self.event_count,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_history_stays_small_and_ends_with_the_last_moment() {
        let mut history = History::default();
        for number in 0..100_000 {
            history.push([number, number * 2, 0, 0, 0, 0]);
            assert!(history.time_ns.len() <= 2 * MOMENTS_MAX);
        }
        let thinned = history.thinned();
        assert!((MOMENTS_MAX / 2..=MOMENTS_MAX).contains(&thinned.time_ns.len()));
        assert_eq!(thinned.time_ns.last(), history.time_ns.last());
        assert!(thinned.time_ns.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(thinned.time_ns.iter().zip(&thinned.live_bytes).all(|(time, bytes)| *bytes == time * 2));
    }
}
