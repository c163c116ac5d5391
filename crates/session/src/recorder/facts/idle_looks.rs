//! Times at which the size of a process is read that does nothing: the longer its memory has stayed
//! the same, the seldomer. A recorder of many idle processes must not keep a processor busy. An
//! event of the process ends the pause.

use heapr_proc::{ResidentCounters, Stat};

/// Longest time between two readings, ns.
const PAUSE_MAX_NS: u64 = 10_000_000_000;
/// Divisor of the time without a change that gives the time until the next reading.
const PART_OF_QUIET: u64 = 2;

/// Last reading of a process, and the time of the next one.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdleLooks {
    last: Option<ResidentCounters>,
    changed_ns: u64,
    next_ns: u64,
    /// Progress at the last reading.
    progress: Option<[u64; 5]>,
    /// Time of the process's last known event, in ticks.
    event_ticks: u64,
}

/// Fields of `/proc/PID/stat`: time in user and kernel mode, mapped bytes, resident pages, start of
/// the code. One of them changes if the process runs, grows or execs.
const PROGRESS: [usize; 5] = [14, 15, 23, 24, 26];

impl IdleLooks {
    /// Counters of the last reading, if the process has made no progress since: nothing else of it
    /// needs to be read.
    pub(crate) fn unchanged(&mut self, pid: u32) -> Option<ResidentCounters> {
        let stat = Stat::of_process(pid);
        let progress = stat.map(|stat| PROGRESS.map(|field| stat.number(field).unwrap_or(0)));
        let before = std::mem::replace(&mut self.progress, progress);
        self.last.filter(|_| progress.is_some() && progress == before)
    }

    /// Whether a reading is due.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Notes the time of the last event of one of the process's threads.
    pub(crate) fn note_event(&mut self, ticks: u64) {
        if ticks > self.event_ticks {
            (self.event_ticks, self.next_ns) = (ticks, 0);
        }
    }

    /// Notes a reading.
    pub(crate) fn note(&mut self, counters: &ResidentCounters, now_ns: u64) {
        if self.last.as_ref() != Some(counters) {
            self.last = Some(*counters);
            self.changed_ns = now_ns;
        }
        let quiet_ns = now_ns.saturating_sub(self.changed_ns);
        self.next_ns = now_ns.saturating_add((quiet_ns / PART_OF_QUIET).min(PAUSE_MAX_NS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_sleeps_is_unchanged_and_one_that_runs_is_not() {
        use std::io::{Read as _, Write as _};
        use std::process::Stdio;

        let mut command = std::process::Command::new("cat");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        // Its program is loaded once it answers, and then it waits for more.
        child.stdin.as_mut().unwrap().write_all(b"a").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        while Stat::of_process(pid).is_some_and(|stat| stat.state() != 'S') {
            std::thread::yield_now();
        }
        let mut looks = IdleLooks::default();
        assert_eq!(looks.unchanged(pid), None, "not read yet");
        let counters = ResidentCounters::of_process(pid).unwrap();
        looks.note(&counters, 5);
        assert_eq!(looks.unchanged(pid), Some(counters));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(looks.unchanged(pid), None);
    }

    #[test]
    fn a_process_whose_size_stays_is_read_seldom_and_a_change_ends_that() {
        const SECOND_NS: u64 = 1_000_000_000;
        let mut looks = IdleLooks::default();
        let quiet = ResidentCounters { anonymous_bytes: 7, ..ResidentCounters::default() };
        let mut count = 0;
        for second in 0..600 {
            if looks.is_due(second * SECOND_NS) {
                looks.note(&quiet, second * SECOND_NS);
                count += 1;
            }
        }
        assert!((55..80).contains(&count), "{count}");
        let moved = ResidentCounters { anonymous_bytes: 8, ..quiet };
        looks.note(&moved, 600 * SECOND_NS);
        assert!(looks.is_due(600 * SECOND_NS));
    }

    #[test]
    fn an_event_ends_the_pause() {
        const SECOND_NS: u64 = 1_000_000_000;
        let mut looks = IdleLooks::default();
        looks.note(&ResidentCounters { anonymous_bytes: 7, ..ResidentCounters::default() }, 0);
        looks.note(&ResidentCounters { anonymous_bytes: 7, ..ResidentCounters::default() }, 60 * SECOND_NS);
        assert!(!looks.is_due(61 * SECOND_NS));
        looks.note_event(5);
        assert!(looks.is_due(61 * SECOND_NS));
        looks.note(&ResidentCounters { anonymous_bytes: 7, ..ResidentCounters::default() }, 61 * SECOND_NS);
        looks.note_event(5);
        assert!(!looks.is_due(62 * SECOND_NS));
    }
}
