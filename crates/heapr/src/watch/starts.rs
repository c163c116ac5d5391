//! Starts of processes on the machine, without which no scan is made: one of many groups costs
//! hundreds of calls.

use std::time::{Duration, Instant};

/// Number of scans after a start: a process is moved to its group some time after it was forked.
const SCANS: u32 = 3;
/// Longest time between two scans: one that runs may be moved.
const SCAN_EVERY: Duration = Duration::from_secs(30);

/// Starts that were seen.
#[derive(Debug, Default)]
pub(super) struct Starts {
    newest: Option<u32>,
    /// Number of scans since the newest process was seen first.
    scan_count: u32,
    scanned: Option<Instant>,
}

impl Starts {
    /// True if a scan may find a process that the scans before have not.
    pub(super) fn may_be_new(&mut self) -> bool {
        self.judge(newest_pid(), Instant::now())
    }

    fn judge(&mut self, newest: Option<u32>, now: Instant) -> bool {
        if newest.is_none() || newest != self.newest {
            (self.newest, self.scan_count) = (newest, 0);
        }
        let is_old = self.scanned.is_none_or(|scanned| now.duration_since(scanned) >= SCAN_EVERY);
        let is_due = self.scan_count < SCANS || is_old;
        if is_due {
            (self.scan_count, self.scanned) = (self.scan_count + 1, Some(now));
        }
        is_due
    }
}

/// Number that was given last to a process or thread. `None`: this kernel does not tell it.
fn newest_pid() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let pid: u32 = text.split_ascii_whitespace().last()?.parse().ok()?;
    (pid > 0).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_followed_by_scans_and_a_quiet_machine_by_few() {
        let mut starts = Starts::default();
        let begin = Instant::now();
        let mut at = |second: u64, newest| starts.judge(newest, begin + Duration::from_secs(second));
        assert_eq!([0, 3, 6, 9, 12].map(|second| at(second, Some(7))), [true, true, true, false, false]);
        assert_eq!([15, 18, 21, 24].map(|second| at(second, Some(8))), [true, true, true, false]);
        assert!(at(51, Some(8)) && !at(54, Some(8)));
        assert!((60..200).all(|second| at(second, None)), "unknown starts");
        assert!(newest_pid().is_some());
    }
}
