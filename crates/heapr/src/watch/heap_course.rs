//! Growth of a language's heap towards its limit: when it is looked at next, and what it holds at
//! an end between two looks.

use std::time::{Duration, Instant};

use heapr_incident::Limited;

/// Shortest and longest time until the next look.
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(10);
/// Number of looks until the heap is full at its present growth.
const LOOKS: f64 = 4.0;
/// Least share of the limit, in hundredths, from which on looks are brought forward.
const FROM_PERCENT: u64 = 30;
/// Time without a look, as a multiple of the time that the last one took.
const REST: u32 = 20;

/// Growth of one heap.
#[derive(Debug, Default)]
pub(super) struct HeapCourse {
    /// Time of the last look in ns since 1970, and used bytes.
    last: Option<(u64, u64)>,
    most_bytes: u64,
    /// Growth between the last two looks; 0: it did not grow.
    bytes_per_second: f64,
    next: Option<Instant>,
}

impl HeapCourse {
    /// Notes a look at `read_unix_ns` that took `took`.
    pub(super) fn note(&mut self, read_unix_ns: u64, amount: Limited, took: Duration) {
        let Limited { used_bytes, limit_bytes } = amount;
        if let Some((before_ns, before_bytes)) = self.last.filter(|&(before_ns, _)| before_ns < read_unix_ns)
        {
            let seconds = (read_unix_ns - before_ns) as f64 / 1e9;
            self.bytes_per_second = used_bytes.saturating_sub(before_bytes) as f64 / seconds;
        }
        // A heap that is collected rises again and again to where it was.
        let is_higher = used_bytes > self.most_bytes;
        self.most_bytes = self.most_bytes.max(used_bytes);
        self.last = Some((read_unix_ns, used_bytes));
        // 0 is no limit: V8's option has this meaning.
        let is_far = limit_bytes == 0 || used_bytes < limit_bytes / 100 * FROM_PERCENT;
        self.next = (is_higher && !is_far && self.bytes_per_second > 0.0).then(|| {
            let left_bytes = limit_bytes.saturating_sub(used_bytes) as f64;
            let until_full = (left_bytes / self.bytes_per_second / LOOKS).min(LATEST.as_secs_f64());
            let rest = SOONEST.max(took.saturating_mul(REST)).min(LATEST);
            Instant::now() + Duration::from_secs_f64(until_full).max(rest)
        });
    }

    /// Time of the next look; `None`: those of the group are enough.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Lets go of the next look: it is taken, or the process cannot be read.
    pub(super) fn forget_next(&mut self) {
        self.next = None;
    }

    /// Notes that the process has not grown since the last look: it may hold what it held.
    pub(super) fn note_rest(&mut self) {
        self.bytes_per_second = 0.0;
    }

    /// Bytes at a time after the last look, if it goes on to grow as it did. `None`: it did not
    /// grow, or the look is too old.
    pub(super) fn expected_bytes(&self, unix_ns: u64) -> Option<u64> {
        let (read_unix_ns, used_bytes) = self.last?;
        let since = Duration::from_nanos(unix_ns.saturating_sub(read_unix_ns));
        let is_known = self.bytes_per_second > 0.0 && since <= LATEST;
        is_known.then(|| used_bytes.saturating_add((self.bytes_per_second * since.as_secs_f64()) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn course(used: &[u64]) -> HeapCourse {
        let mut course = HeapCourse::default();
        for (second, &used_bytes) in used.iter().enumerate() {
            let amount = Limited { used_bytes, limit_bytes: 100 };
            course.note((second as u64 + 1) * SECOND_NS, amount, Duration::from_millis(1));
        }
        course
    }

    #[test]
    fn the_rate_of_growth_sets_the_next_look_and_what_is_expected() {
        let begin = Instant::now();
        let found = course(&[40, 60]);
        let (next, pause) = (found.next().unwrap(), Duration::from_millis(500));
        assert!(next >= begin + pause && next <= Instant::now() + pause, "{:?}", next - begin);
        assert_eq!(found.expected_bytes(4 * SECOND_NS), Some(100));
        assert_eq!(found.expected_bytes(20 * SECOND_NS), None);
        let mut rested = found;
        rested.note_rest();
        assert_eq!(rested.expected_bytes(4 * SECOND_NS), None);
    }

    #[test]
    fn a_heap_that_does_not_grow_beyond_what_it_had_needs_no_look() {
        assert!(course(&[60, 40, 60]).next().is_none());
        assert!(course(&[5, 20]).next().is_none(), "far from the limit");
        let steady = course(&[60, 60]);
        assert!(steady.next().is_none() && steady.expected_bytes(3 * SECOND_NS).is_none());
        let mut unlimited = HeapCourse::default();
        for second in 1..=2 {
            let amount = Limited { used_bytes: second * 60, limit_bytes: 0 };
            unlimited.note(second * SECOND_NS, amount, Duration::from_millis(1));
        }
        assert!(unlimited.next().is_none());
    }
}
