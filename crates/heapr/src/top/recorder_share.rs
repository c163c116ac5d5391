//! Memory and processor time of a session's recorder.

/// Processor time of a process, with the time of the reading.
#[derive(Debug, Clone, Copy)]
struct Spent {
    ticks: u64,
    at: std::time::Instant,
}

/// Share of the machine that a recorder uses.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct RecorderShare {
    /// Resident bytes; `None`: unknown.
    pub(super) resident_bytes: Option<u64>,
    /// Processor time since the last reading, in hundredths of one processor; `None`: unknown.
    pub(super) processor_percent: Option<f64>,
}

/// Reads the share of one recorder, again and again.
#[derive(Debug, Default)]
pub(super) struct RecorderMeter {
    last: Option<(u32, Spent)>,
}

impl RecorderMeter {
    /// Returns the present share of the recorder `pid`.
    pub(super) fn read(&mut self, pid: u32) -> RecorderShare {
        let spent = ticks(pid).map(|ticks| Spent { ticks, at: std::time::Instant::now() });
        let last = self.last.take().filter(|(known, _)| *known == pid).map(|(_, last)| last);
        let processor_percent = last.zip(spent).and_then(|(last, spent)| {
            let seconds = (spent.at - last.at).as_secs_f64();
            let used = spent.ticks.saturating_sub(last.ticks) as f64
                / rustix::param::clock_ticks_per_second() as f64;
            (seconds > 0.0).then(|| used * 100.0 / seconds)
        });
        self.last = spent.map(|spent| (pid, spent));
        RecorderShare { resident_bytes: heapr_proc::resident_bytes(pid), processor_percent }
    }
}

/// Processor time of a process in clock ticks, user and system.
fn ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    ticks_of(&stat)
}

/// Sum of fields 14 and 15 of `/proc/PID/stat`. The name in field 2 may hold spaces and brackets.
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_found_behind_any_name() {
        let stat = "7 (a ) 1 (b) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20";
        assert_eq!(ticks_of(stat), Some(42));
        assert_eq!(ticks_of("7 (a"), None);
        assert!(ticks(std::process::id()).is_some());
    }

    #[test]
    fn the_first_reading_tells_no_share_of_the_processor() {
        let mut meter = RecorderMeter::default();
        let own = std::process::id();
        assert_eq!(meter.read(own).processor_percent, None);
        assert!(meter.read(own).processor_percent.is_some());
        assert_eq!(meter.read(1).processor_percent, None, "another process");
    }
}
