//! Starts of processes on the machine, without which no scan is made: one of many groups costs
//! hundreds of calls.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Number of looks after a start: a process is moved to its group some time after it was forked.
const LOOKS: u32 = 3;
/// Longest time between two scans of all: one that runs may be moved.
const ALL_EVERY: Duration = Duration::from_secs(30);

/// Processes among which new members of the groups may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// No process has started.
    None,
    /// Processes with these numbers, which threads have, too.
    Among(Vec<u32>),
    /// All processes of the groups.
    All,
}

/// Starts that were seen.
#[derive(Debug, Default)]
pub(super) struct Starts {
    newest: Option<u32>,
    /// Numbers that were given lately, with the number of looks that are left.
    fresh: Vec<(RangeInclusive<u32>, u32)>,
    /// Number of scans of all that are left.
    all_left: u32,
    scanned: Option<Instant>,
}

impl Starts {
    /// Tells where to look now. `most`: number of starts from which on a scan of all is cheaper.
    pub(super) fn look(&mut self, most: usize) -> Look {
        self.judge(newest_pid(), most, Instant::now())
    }

    fn judge(&mut self, newest: Option<u32>, most: usize, now: Instant) -> Look {
        match (std::mem::replace(&mut self.newest, newest), newest) {
            (Some(before), Some(newest)) if before == newest => {}
            (Some(before), Some(newest)) if before < newest && (newest - before) as usize <= most => {
                self.fresh.push((before + 1..=newest, LOOKS));
            }
            // Too many, or numbers that began anew, or a kernel that does not tell them.
            _ => self.all_left = LOOKS,
        }
        let is_old = self.scanned.is_none_or(|scanned| now.duration_since(scanned) >= ALL_EVERY);
        let fresh: Vec<u32> = self.fresh.iter().flat_map(|(numbers, _)| numbers.clone()).collect();
        self.fresh.iter_mut().for_each(|(_, left)| *left -= 1);
        self.fresh.retain(|(_, left)| *left > 0);
        if self.all_left > 0 || is_old {
            (self.all_left, self.scanned) = (self.all_left.saturating_sub(1), Some(now));
            return Look::All;
        }
        if fresh.is_empty() { Look::None } else { Look::Among(fresh) }
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
    fn a_start_is_looked_at_thrice_and_a_quiet_machine_seldom() {
        let mut starts = Starts::default();
        let begin = Instant::now();
        let mut at = |second: u64, newest| starts.judge(newest, 10, begin + Duration::from_secs(second));
        let first = [0, 3, 6, 9, 12].map(|second| at(second, Some(7)));
        assert_eq!(first, [Look::All, Look::All, Look::All, Look::None, Look::None]);
        assert_eq!(at(15, Some(9)), Look::Among(vec![8, 9]));
        assert_eq!(at(18, Some(10)), Look::Among(vec![8, 9, 10]));
        let later = [21, 24, 27].map(|second| at(second, Some(10)));
        assert_eq!(later, [Look::Among(vec![8, 9, 10]), Look::Among(vec![10]), Look::None]);
        assert_eq!([at(37, Some(10)), at(40, Some(10))], [Look::All, Look::None]);
    }

    #[test]
    fn many_starts_and_unknown_ones_have_all_processes_looked_at() {
        let mut starts = Starts::default();
        let begin = Instant::now();
        let mut at = |second: u64, newest| starts.judge(newest, 10, begin + Duration::from_secs(second));
        (0..4).for_each(|second| drop(at(second, Some(100))));
        assert_eq!(at(4, Some(111)), Look::All);
        assert_eq!(at(5, Some(5)), Look::All, "numbers began anew");
        assert!((6..99).all(|second| at(second, None) == Look::All), "unknown starts");
        assert!(newest_pid().is_some());
    }
}
