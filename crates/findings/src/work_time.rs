//! Time in which a process worked: from its start until it ended, or until it began to free all
//! memory at its end.

use heapr_trace::{Process, ProcessIndex, Trace};

use crate::site::Site;

/// Smallest growth that is reported, in bytes.
pub(crate) const GROWTH_MIN_BYTES: u64 = 16 << 10;

/// Largest share of a process's time that its final freeing may take…
const TEARDOWN_SHARE_MAX: f64 = 0.2;
/// …or, if the process exits, of the time until its last event. The freeing then makes at most this
/// share of the process's blocks. The exit follows within `EXIT_SHARE_MAX` of the process's time,
/// as an exit takes long on a busy machine.
const TEARDOWN_MADE_MAX: f64 = 0.01;
const EXIT_SHARE_MAX: f64 = 0.55;
/// …and smallest share of the live bytes that it must free: in general, and where the process exits
/// soon.
const TEARDOWN_FREED_MIN: f64 = 0.3;
const EXIT_FREED_MIN: f64 = 0.05;

/// Share of what a fall frees that a later one must free, for the end to begin with that.
const NEARLY_ALL: f64 = 0.9;

/// Share of the bytes before the fall that may be freed after its end. A last event may follow a
/// wait.
const SETTLED_SHARE: f64 = 0.05;

/// Knowledge of a process's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessEnd {
    /// The process ended in the recording.
    Ended,
    /// The process lived on when the recording ended.
    LivesOn,
    /// The file does not tell: other tools' files, and files that are cut.
    Unknown,
}

impl ProcessEnd {
    fn of(trace: &Trace, process: &Process) -> Self {
        // A recorder notes its buffers; files that are made from other tools' lack them.
        let tells_ends = trace.is_complete() && trace.session().buffer_bytes > 0;
        match (process.end_ns, tells_ends) {
            (Some(_), _) => Self::Ended,
            (None, true) => Self::LivesOn,
            (None, false) => Self::Unknown,
        }
    }
}

/// Time of work, see the module. Moments are indices into the recording's times.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkTime {
    /// First moment with live memory, as a start may take a while.
    pub(crate) first: usize,
    /// One past the last moment of work.
    pub(crate) end: usize,
    /// By moment, from `first`: live bytes of all sites of the process.
    pub(crate) live_bytes: Vec<u64>,
    /// By moment, from `first`: blocks that all sites of the process have made; empty: unknown.
    pub(crate) made_own: Vec<u64>,
    /// Final freeing: bytes, and duration in nanoseconds.
    pub(crate) teardown: Option<(u64, u64)>,
    /// End of the process or of the recording, in nanoseconds.
    pub(crate) end_ns: u64,
    /// Quiet time after the last moment: live bytes, and its length in moments.
    pub(crate) still: (u64, usize),
}

impl WorkTime {
    /// Computes the time of work. `times` and `made` are those of the recording's moments: the
    /// time, and the number of blocks made until then in all processes.
    pub(crate) fn of(
        (trace, times, made, sites): (&Trace, &[u64], &[u64], &[Site]),
        process: ProcessIndex,
    ) -> Self {
        Self::with((trace, times, made, sites), process, None)
    }

    /// Variant of [`WorkTime::of`] with the process's amounts, if they are known: the live bytes by
    /// moment, and those that are left at the end. Small stacks are in no site.
    pub(crate) fn with(
        (trace, times, made, sites): (&Trace, &[u64], &[u64], &[Site]),
        process: ProcessIndex,
        known_amounts: Option<(&[u64], u64)>,
    ) -> Self {
        let Some(known) = trace.processes().get(process.0 as usize) else { return Self::default() };
        let duration_ns = trace.duration_ns();
        let end_ns = known.end_ns.unwrap_or(duration_ns).min(duration_ns);
        let first = times.partition_point(|&time_ns| time_ns <= known.start_ns);
        let end = times.partition_point(|&time_ns| time_ns <= end_ns).max(first);
        let (mut live_bytes, mut made_own) = (vec![0_u64; end - first], vec![0_u64; end - first]);
        let mut left_bytes = 0_u64;
        for site in sites.iter().filter(|site| site.process == process) {
            left_bytes = left_bytes.saturating_add(site.amounts.outstanding_bytes);
            let sums = live_bytes.iter_mut().zip(&mut made_own);
            for ((live, made), held) in sums.zip(&site.held[first..end]) {
                *live = live.saturating_add(held.bytes);
                *made = made.saturating_add(held.made);
            }
        }
        if let Some((lives, left)) = known_amounts {
            live_bytes.copy_from_slice(&lives[first..end]);
            left_bytes = left;
        }
        let unused = live_bytes.iter().take_while(|&&bytes| bytes == 0).count();
        let unused = if unused < live_bytes.len() { unused } else { 0 };
        live_bytes.drain(..unused);
        made_own.drain(..unused);
        let first = first + unused;
        let mut work = Self { first, end, live_bytes, made_own, end_ns, ..Self::default() };
        let process_end = ProcessEnd::of(trace, known);
        work.find_teardown((times, made), known.start_ns, left_bytes, process_end);
        // The moments end with the last event.
        if let (&[.., before_ns, last_ns], None) = (times, work.teardown) {
            let count = end_ns.saturating_sub(last_ns) / last_ns.saturating_sub(before_ns).max(1);
            // (More moments than all others do not change the median.)
            work.still = (left_bytes, usize::try_from(count).unwrap_or(usize::MAX).min(end - first + 1));
        }
        work
    }

    /// Finds the fall of live bytes that ends with the process, and removes it from the work.
    fn find_teardown(
        &mut self,
        (times, made): (&[u64], &[u64]),
        start_ns: u64,
        left_bytes: u64,
        process_end: ProcessEnd,
    ) {
        // A process that lives on has not ended with a fall.
        if process_end == ProcessEnd::LivesOn {
            return;
        }
        let is_over = process_end == ProcessEnd::Ended;
        let (mut earliest, mut after) = (self.live_bytes.len(), left_bytes);
        while earliest > 0 && self.live_bytes[earliest - 1] >= after {
            earliest -= 1;
            after = self.live_bytes[earliest];
        }
        let live = |place: usize| self.live_bytes.get(place).copied().unwrap_or(left_bytes);
        // The fall may wait on its way. It begins where it begins to fall, or after such a wait.
        let is_begin = |&place: &usize| {
            live(place) > live(place + 1) && (place == earliest || live(place - 1) == live(place))
        };
        let mut begins = (earliest..self.live_bytes.len()).filter(is_begin);
        let of = (times, made, start_ns);
        let teardown = |begin: usize| Some((begin, self.teardown_from(of, begin, left_bytes, is_over)?));
        let found = begins.by_ref().find_map(teardown);
        // Memory that hardly falls and then stays for a while is not freed by the end: that begins
        // where nearly all is freed.
        let frees_nearly_all = |from: u64, freed: u64| freed as f64 >= from as f64 * NEARLY_ALL;
        let later = found.and_then(|(_, (bytes, _))| {
            begins.filter_map(teardown).rfind(|(_, (freed, _))| frees_nearly_all(bytes, *freed))
        });
        if let Some((begin, teardown)) = later.or(found) {
            self.teardown = Some(teardown);
            self.end = self.first + begin + 1;
            self.live_bytes.truncate(begin + 1);
        }
    }

    /// Bytes and duration of a fall that begins at a place, if it is the process's end.
    fn teardown_from(
        &self,
        (times, made, start_ns): (&[u64], &[u64], u64),
        begin: usize,
        left_bytes: u64,
        is_over: bool,
    ) -> Option<(u64, u64)> {
        let before = self.live_bytes.get(begin).copied()?;
        let freed = before.saturating_sub(left_bytes);
        let took_ns = self.end_ns.saturating_sub(times[self.first + begin]);
        let whole_ns = self.end_ns.saturating_sub(start_ns) as f64;
        // The fall ends with the first moment at which nearly all is freed that will be.
        let is_settled = |live: u64| live.saturating_sub(left_bytes) as f64 <= before as f64 * SETTLED_SHARE;
        let settled = self.live_bytes[begin..].iter().position(|&live| is_settled(live));
        let last = settled.map_or(self.end.saturating_sub(1), |place| self.first + begin + place);
        let until_last_ns = times[last].saturating_sub(times[self.first + begin]) as f64;
        // Work may go on until shortly before the next moment.
        let made_before = made[(self.first + begin + 1).min(last)];
        let made_meanwhile = made[last].saturating_sub(made_before) as f64;
        // A process that works on after the fall has not ended with it.
        let made_own = |place: usize| self.made_own.get(place).copied().unwrap_or(0);
        let made_at_last = made_own(self.live_bytes.len() - 1);
        let made_after = made_at_last.saturating_sub(made_own(last - self.first)) as f64;
        let exits_soon = is_over
            && until_last_ns <= times[last].saturating_sub(start_ns) as f64 * TEARDOWN_SHARE_MAX
            && made_meanwhile <= made[last] as f64 * TEARDOWN_MADE_MAX
            && made_after <= made_at_last as f64 * TEARDOWN_MADE_MAX
            && self.end_ns.saturating_sub(times[last]) as f64 <= whole_ns * EXIT_SHARE_MAX;
        // Without later events there are no later moments: a process may live on for long.
        let after_ns = self.end_ns.saturating_sub(times[self.end.saturating_sub(1)]);
        let is_at_end = self.live_bytes.len() - begin <= 2 && after_ns as f64 <= whole_ns * EXIT_SHARE_MAX;
        let is_short = took_ns as f64 <= whole_ns * TEARDOWN_SHARE_MAX || is_at_end || exits_soon;
        let least = if exits_soon { EXIT_FREED_MIN } else { TEARDOWN_FREED_MIN };
        (freed as f64 >= before as f64 * least && is_short).then_some((freed, took_ns))
    }

    /// Median of the live bytes over the whole time, and live bytes at the end of work.
    pub(crate) fn usual_bytes(&self) -> (u64, u64) {
        let (still_bytes, still_count) = self.still;
        let mut sorted = self.live_bytes.clone();
        sorted.extend(std::iter::repeat_n(still_bytes, still_count));
        sorted.sort_unstable();
        let last_bytes = if still_count > 0 { still_bytes } else { self.last_bytes() };
        (sorted.get(sorted.len() / 2).copied().unwrap_or(0), last_bytes)
    }

    /// End of the time in which the process works or waits, before it frees its memory as it ends.
    /// In nanoseconds; `None` if it did not work. `times`: those of the recording's moments.
    pub(crate) fn until_ns(&self, times: &[u64]) -> Option<u64> {
        let last_ns = times.get(self.end.checked_sub(1)?).copied()?;
        Some(if self.still.1 > 0 { self.end_ns.max(last_ns) } else { last_ns })
    }

    /// Live bytes at the end of work.
    pub(crate) fn last_bytes(&self) -> u64 {
        self.live_bytes.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessEnd::{Ended, LivesOn, Unknown};
    use super::*;
    use crate::made::{STEP_NS, even_work, times_ns, work};

    /// Number of moments of work found for a process that held these amounts, in KiB.
    fn work_left(kib: &[u64], made: &[u64], process_end: ProcessEnd, end_ns: u64) -> usize {
        let mut work = WorkTime { end_ns, ..work(kib) };
        work.find_teardown((&times_ns(kib.len()), made), 0, 0, process_end);
        assert_eq!(work.live_bytes.len(), work.end);
        work.end
    }

    fn rising(count: u64) -> Vec<u64> {
        (1..=count).map(|at| at * 100).collect()
    }

    #[test]
    fn what_stays_after_the_last_event_is_usual() {
        let mut work = work(&[0, 0, 0, 100]);
        assert_eq!(work.usual_bytes(), (0, 100 << 10));
        // All was made after the last moment, and stayed for long.
        work.still = (4 << 20, 5);
        assert_eq!(work.usual_bytes(), (4 << 20, 4 << 20));
    }

    #[test]
    fn a_short_fall_to_nothing_at_the_end_is_the_exit() {
        let kib = [rising(30), vec![1500, 200, 0]].concat();
        assert_eq!(work_left(&kib, &even_work(33), Ended, 33 * STEP_NS), 30);
        // A process that lives on has no end there; one of which that is not known may have.
        assert_eq!(work_left(&kib, &even_work(33), LivesOn, 33 * STEP_NS), 33);
        assert_eq!(work_left(&kib, &even_work(33), Unknown, 33 * STEP_NS), 30);
        // Memory that is left at the end was not freed by the exit.
        assert_eq!(work_left(&rising(30), &even_work(30), Ended, 30 * STEP_NS), 30);
    }

    #[test]
    fn an_exit_that_frees_little_is_one_and_a_last_event_behind_it_too() {
        // A tenth is freed without new blocks, and the rest is left.
        let made: Vec<u64> = even_work(34).into_iter().map(|made| made.min(29_000)).collect();
        let mut work = WorkTime { end_ns: 34 * STEP_NS, ..work_of_a_fall() };
        work.find_teardown((&times_ns(34), &made), 0, 2700 << 10, Ended);
        assert_eq!(work.live_bytes.len(), 30);
        // Work goes on until the fall begins, between two moments.
        let until: Vec<u64> = even_work(34).into_iter().map(|made| made.min(30_000)).collect();
        let mut work = WorkTime { end_ns: 34 * STEP_NS, ..work_of_a_fall() };
        work.find_teardown((&times_ns(34), &until), 0, 2700 << 10, Ended);
        assert_eq!(work.live_bytes.len(), 30);
        // Memory falls as much while blocks are made: work.
        let mut work = WorkTime { end_ns: 34 * STEP_NS, ..work_of_a_fall() };
        work.find_teardown((&times_ns(34), &even_work(34)), 0, 2700 << 10, Ended);
        assert_eq!(work.live_bytes.len(), 34);
        // All is freed, and a last event follows a wait.
        let kib = [rising(30), vec![1500, 90], vec![90; 18]].concat();
        let made: Vec<u64> = even_work(50).into_iter().map(|made| made.min(29_000)).collect();
        assert_eq!(work_left(&kib, &made, Ended, 50 * STEP_NS), 30);
        assert_eq!(work_left(&kib, &made, Unknown, 50 * STEP_NS), 50, "the process lives on");
        // Blocks come and go behind the fall.
        let mut work = WorkTime { made_own: even_work(50), end_ns: 50 * STEP_NS, ..crate::made::work(&kib) };
        work.find_teardown((&times_ns(50), &made), 0, 0, Ended);
        assert_eq!(work.live_bytes.len(), 50, "the process works on");
    }

    fn work_of_a_fall() -> WorkTime {
        work(&[rising(30), vec![2950, 2800, 2700, 2700]].concat())
    }

    #[test]
    fn a_fall_may_wait_on_its_way_and_one_before_a_long_wait_is_none() {
        let made: Vec<u64> = even_work(40).into_iter().map(|made| made.min(29_000)).collect();
        let kib = [rising(30), vec![2900, 1500, 1500, 1400, 10]].concat();
        assert_eq!(work_left(&kib, &made[..35], Ended, 35 * STEP_NS), 30);
        // A little is freed, the rest stays for a while and is freed then.
        let kib = [rising(30), vec![2900, 2900, 2900, 2900, 2900, 10]].concat();
        assert_eq!(work_left(&kib, &made[..36], Ended, 36 * STEP_NS), 35);
        // Half is freed long before the end: the rest is the end.
        let kib = [rising(10), vec![500; 28], vec![200, 0]].concat();
        assert_eq!(work_left(&kib, &even_work(40), Ended, 40 * STEP_NS), 38);
    }

    #[test]
    fn a_process_that_waits_long_after_its_last_event_has_not_ended_with_it() {
        let kib = [rising(30), vec![10]].concat();
        assert_eq!(work_left(&kib, &even_work(31), Ended, 31 * STEP_NS), 30);
        assert_eq!(work_left(&kib, &even_work(31), Ended, 200 * STEP_NS), 31);
    }

    #[test]
    fn freeing_that_takes_long_while_blocks_are_made_is_work() {
        let fall: Vec<u64> = rising(20).into_iter().rev().collect();
        let kib = [rising(20), fall].concat();
        assert_eq!(work_left(&kib, &even_work(40), Ended, 40 * STEP_NS), 40);
    }

    #[test]
    fn an_exit_that_takes_long_on_a_busy_machine_is_still_one() {
        let kib = [rising(30), vec![1500, 200, 10]].concat();
        let made: Vec<u64> = even_work(33).into_iter().map(|made| made.min(29_000)).collect();
        assert_eq!(work_left(&kib, &made, Ended, 60 * STEP_NS), 30);
        // A long wait after the freeing, or a process that continues, is no exit.
        assert_eq!(work_left(&kib, &made, Ended, 200 * STEP_NS), 33);
        let later = [rising(30), vec![1500, 1400, 1300, 1200, 1100, 900, 600, 300, 10]].concat();
        assert_eq!(work_left(&later, &even_work(39), Unknown, 60 * STEP_NS), 39);
    }
}
