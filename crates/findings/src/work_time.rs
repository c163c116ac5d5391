//! When a process worked: from its start until it freed all at its end, or until it ended.

use heapr_trace::{ProcessIndex, Trace};

use crate::site::Site;

/// An end of freeing takes at most this share of a process's time…
const TEARDOWN_SHARE_MAX: f64 = 0.2;
/// …and frees at least this share of what is live.
const TEARDOWN_FREED_MIN: f64 = 0.3;

/// See the module. Moments are places in the recording's times.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkTime {
    /// The first moment after the start.
    pub(crate) first: usize,
    /// Behind the last moment of work.
    pub(crate) end: usize,
    /// By moment, from `first`: live bytes over all sites of the process.
    pub(crate) live_bytes: Vec<u64>,
    /// What was freed as the process ended: bytes, and how long it took.
    pub(crate) teardown: Option<(u64, u64)>,
    /// The process's end, or the recording's.
    pub(crate) end_ns: u64,
}

impl WorkTime {
    pub(crate) fn of((trace, times, sites): (&Trace, &[u64], &[Site]), process: ProcessIndex) -> Self {
        let Some(known) = trace.processes().get(process.0 as usize) else { return Self::default() };
        let duration_ns = trace.duration_ns();
        let end_ns = known.end_ns.unwrap_or(duration_ns).min(duration_ns);
        let first = times.partition_point(|&time_ns| time_ns <= known.start_ns);
        let end = times.partition_point(|&time_ns| time_ns <= end_ns).max(first);
        let mut live_bytes = vec![0_u64; end - first];
        let mut left_bytes = 0_u64;
        for site in sites.iter().filter(|site| site.process == process) {
            left_bytes = left_bytes.saturating_add(site.amounts.outstanding_bytes);
            for (sum, held) in live_bytes.iter_mut().zip(&site.held[first..end]) {
                *sum = sum.saturating_add(held.bytes);
            }
        }
        let mut work = Self { first, end, live_bytes, teardown: None, end_ns };
        work.find_teardown(times, known.start_ns, left_bytes);
        work
    }

    /// The fall that ends at the process's end.
    fn find_teardown(&mut self, times: &[u64], start_ns: u64, left_bytes: u64) {
        let (mut begin, mut after) = (self.live_bytes.len(), left_bytes);
        while begin > 0 && self.live_bytes[begin - 1] > after {
            begin -= 1;
            after = self.live_bytes[begin];
        }
        let Some(&before) = self.live_bytes.get(begin) else { return };
        let freed = before.saturating_sub(left_bytes);
        let took_ns = self.end_ns.saturating_sub(times[self.first + begin]);
        let is_short = took_ns as f64 <= self.end_ns.saturating_sub(start_ns) as f64 * TEARDOWN_SHARE_MAX
            || self.live_bytes.len() - begin <= 2;
        if freed as f64 >= before as f64 * TEARDOWN_FREED_MIN && is_short {
            self.teardown = Some((freed, took_ns));
            self.end = self.first + begin + 1;
            self.live_bytes.truncate(begin + 1);
        }
    }

    /// Live bytes in the middle of all moments of work.
    pub(crate) fn median_bytes(&self) -> u64 {
        let mut sorted = self.live_bytes.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(0)
    }

    /// Live bytes at the end of work.
    pub(crate) fn last_bytes(&self) -> u64 {
        self.live_bytes.last().copied().unwrap_or(0)
    }
}
