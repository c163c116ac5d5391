//! When a process worked: from its start until it freed all at its end, or until it ended.

use heapr_trace::{ProcessIndex, Trace};

use crate::site::Site;

/// An end of freeing takes at most this share of a process's time…
const TEARDOWN_SHARE_MAX: f64 = 0.2;
/// …or of the time until its last event, where it makes at most this share of its blocks meanwhile
/// and ends soon after: on a busy machine its exit takes a while.
const TEARDOWN_MADE_MAX: f64 = 0.01;
const EXIT_SHARE_MAX: f64 = 0.55;
/// …and frees at least this share of what is live.
const TEARDOWN_FREED_MIN: f64 = 0.3;

/// See the module. Moments are places in the recording's times.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkTime {
    /// The first moment at which anything was live: a start may take a while, too.
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
    /// `times`, `made`: of the recording's moments, when they were, and blocks made until then by
    /// all.
    pub(crate) fn of(
        (trace, times, made, sites): (&Trace, &[u64], &[u64], &[Site]),
        process: ProcessIndex,
    ) -> Self {
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
        let unused = live_bytes.iter().take_while(|&&bytes| bytes == 0).count();
        let unused = if unused < live_bytes.len() { unused } else { 0 };
        live_bytes.drain(..unused);
        let mut work = Self { first: first + unused, end, live_bytes, teardown: None, end_ns };
        let is_over = known.end_ns.is_some();
        work.find_teardown((times, made), known.start_ns, left_bytes, is_over);
        work
    }

    /// The fall that ends at the process's end.
    fn find_teardown(
        &mut self,
        (times, made): (&[u64], &[u64]),
        start_ns: u64,
        left_bytes: u64,
        is_over: bool,
    ) {
        let (mut begin, mut after) = (self.live_bytes.len(), left_bytes);
        while begin > 0 && self.live_bytes[begin - 1] > after {
            begin -= 1;
            after = self.live_bytes[begin];
        }
        let Some(&before) = self.live_bytes.get(begin) else { return };
        let freed = before.saturating_sub(left_bytes);
        let took_ns = self.end_ns.saturating_sub(times[self.first + begin]);
        let whole_ns = self.end_ns.saturating_sub(start_ns) as f64;
        let last = self.end.saturating_sub(1);
        let until_last_ns = times[last].saturating_sub(times[self.first + begin]) as f64;
        let made_meanwhile = made[last].saturating_sub(made[self.first + begin]) as f64;
        let exits_soon = is_over
            && until_last_ns <= times[last].saturating_sub(start_ns) as f64 * TEARDOWN_SHARE_MAX
            && made_meanwhile <= made[last] as f64 * TEARDOWN_MADE_MAX
            && self.end_ns.saturating_sub(times[last]) as f64 <= whole_ns * EXIT_SHARE_MAX;
        let is_short = took_ns as f64 <= whole_ns * TEARDOWN_SHARE_MAX
            || self.live_bytes.len() - begin <= 2
            || exits_soon;
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
