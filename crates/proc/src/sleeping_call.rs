//! System call in which a thread waits, and the time since when.

use crate::stat::Stat;
use crate::whole_file;

/// A system call in which a thread sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SleepingCall {
    /// Number of the system call.
    pub number: u64,
    /// Arguments of the system call.
    pub arguments: [u64; 6],
    /// Stack pointer of the thread.
    pub stack_pointer: u64,
}

impl SleepingCall {
    /// Reads the call of a thread; `None` if it runs, is gone, or may not be read.
    pub fn of(pid: u32, tid: u32) -> Option<Self> {
        Self::parse(&whole_file::text(format!("/proc/{pid}/task/{tid}/syscall")).ok()?)
    }

    /// Parses `232 0x4 0x7f… 0x1 0xffffffff 0x0 0x0 0x7ffc… 0x7f…`: number, arguments, stack
    /// pointer, instruction pointer. A running thread has `running`, one outside of a system call a
    /// negative number.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut word = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = word()?;
        }
        Some(Self { number, arguments, stack_pointer: word()? })
    }
}

/// Time and processor of a thread's last run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LastRun {
    /// Time by the scheduler's clock of the processor, in milliseconds.
    pub clock_ms: f64,
    /// Number of times that the thread has gone to sleep by itself.
    pub sleep_count: u64,
    /// Number of the processor.
    pub processor: usize,
}

impl LastRun {
    /// Reads the last run of a thread; `None` if it is gone or the kernel does not report it.
    pub fn of(pid: u32, tid: u32) -> Option<Self> {
        /// Field number in proc(5).
        const PROCESSOR: usize = 39;
        let text = whole_file::text(format!("/proc/{pid}/task/{tid}/sched")).ok()?;
        let processor = Stat::of_thread(pid, tid)?.number(PROCESSOR)?;
        Self::parse(&text, usize::try_from(processor).ok()?)
    }

    /// Parses lines of a name, a colon and a number.
    fn parse(text: &str, processor: usize) -> Option<Self> {
        let value = |name: &str| {
            let line = text.lines().find(|line| line.split([' ', ':']).next() == Some(name))?;
            Some(line.rsplit_once(':')?.1.trim())
        };
        let clock_ms = value("se.exec_start")?.parse().ok().filter(|&clock_ms| clock_ms > 0.0)?;
        Some(Self { clock_ms, sleep_count: value("nr_voluntary_switches")?.parse().ok()?, processor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_its_arguments() {
        let call = SleepingCall::parse("232 0x4 0x7f00 0x1 0xffffffff 0x0 0x8 0x7ffc0 0x7f1234\n").unwrap();
        assert_eq!((call.number, call.stack_pointer), (232, 0x7_ffc0));
        assert_eq!(call.arguments, [4, 0x7f00, 1, 0xffff_ffff, 0, 8]);
        for none in ["running\n", "-1 0x7ffc0 0x7f1234\n", "", "0 0x1"] {
            assert!(SleepingCall::parse(none).is_none(), "{none}");
        }
    }

    #[test]
    fn a_thread_that_sleeps_is_known_by_its_last_run() {
        let text = "cat (1424, #threads: 1)\n---\nse.exec_start   :   526573.006443\n\
            se.sum_exec_runtime  :   0.187\nnr_switches  : 5\nnr_voluntary_switches   :   3\n";
        let run = LastRun::parse(text, 1).unwrap();
        assert_eq!((run.clock_ms, run.sleep_count, run.processor), (526_573.006_443, 3, 1));
        assert!(LastRun::parse("se.exec_start : 0.0\nnr_voluntary_switches : 3", 0).is_none());
    }
}
