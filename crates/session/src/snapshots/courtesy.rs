//! Work that nobody waits for gives way to others, where more threads want to run than there are
//! processors: a server under load keeps its speed while what it held is looked through.
//!
//! A nice value would do it, too. But beside forty that run it would mean hardly ever, and who has
//! taken one may not take it back.

use std::cell::Cell;
use std::time::Duration;

use heapr_proc::machine;

/// A small process is looked through without a rest. (A build that is not optimised works ten times
/// as long at it.)
const WORK_BEFORE_NS: u64 = if cfg!(debug_assertions) { 5_000_000_000 } else { 200_000_000 };
/// Between two rests.
const WORK_NS: u64 = 5_000_000;
/// How many times as long as the work a rest is.
const REST_SHARE: u32 = 5;
/// Where more than so many want to run for each processor, the thread's share is small anyway.
const CROWD_MAX: usize = 4;

/// Of one thread.
#[derive(Debug)]
pub(super) struct Courtesy {
    processor_count: usize,
    /// Where the thread's time on a processor was at the last rest.
    rested_ns: Cell<u64>,
}

impl Courtesy {
    /// From now on.
    pub(super) fn begin() -> Self {
        let processor_count = std::thread::available_parallelism().map_or(1, usize::from);
        let begin_ns = machine::own_thread_ran_ns().unwrap_or(0);
        Self { processor_count, rested_ns: Cell::new(begin_ns + WORK_BEFORE_NS) }
    }

    /// Rests, if it is time to and others want to run.
    pub(super) fn rest(&self) {
        let Some(ran_ns) = machine::own_thread_ran_ns() else { return };
        let worked_ns = ran_ns.saturating_sub(self.rested_ns.get());
        if worked_ns < WORK_NS {
            return;
        }
        self.rested_ns.set(ran_ns);
        let crowded = self.processor_count + 1..=self.processor_count * CROWD_MAX;
        if machine::running_threads().is_some_and(|count| crowded.contains(&count)) {
            std::thread::sleep(Duration::from_nanos(worked_ns) * REST_SHARE);
        }
    }
}
