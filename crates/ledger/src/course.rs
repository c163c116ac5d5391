//! Live memory at moments of a recording, by stack: the development of memory over time.
//!
//! Moments lie at multiples of an interval. When there are too many moments, every second one is
//! dropped and the interval is doubled. So their number is bounded, for a second as for a month.
//! They depend on the events alone, so that a replay produces the same moments as the recorder.
//!
//! ```text
//! interval 1   | | | | | | | |          full
//! interval 2     |   |   |   |   | …    every second one remains
//! ```

use heapr_trace::{Course, CourseMoment, CourseRow, StackIndex};

use crate::course_rest::SmallStacks;
use crate::summary_builder::SummaryBuilder;

/// Largest number of moments.
const MOMENTS_MAX: u64 = 64;
/// Interval of the first moments in nanoseconds.
const FIRST_INTERVAL_NS: u64 = 1 << 20;
/// Largest number of rows per moment. A stack has a row if it holds at least one part in this many
/// of the live bytes. Smaller ones are summed under their callers.
const ROWS_MAX: u64 = 4096;

/// Records live memory at moments.
#[derive(Debug)]
pub struct CourseTaker {
    interval_ns: u64,
    /// Start of the moments, which lie at multiples of the interval after it.
    from_ns: u64,
    /// Moments at 1, 2, 3 … times the interval.
    course: Course,
    next_ns: u64,
    /// Time of the last call of [`CourseTaker::take`], since `from_ns`.
    reached_ns: u64,
    small: SmallStacks,
}

impl Default for CourseTaker {
    fn default() -> Self {
        Self::since(0)
    }
}

impl CourseTaker {
    /// A course of the time after `from_ns`. Earlier, only blocks that were live at that time are
    /// known.
    #[must_use]
    pub fn since(from_ns: u64) -> Self {
        let next_ns = from_ns.saturating_add(FIRST_INTERVAL_NS);
        let (course, small) = (Course::default(), SmallStacks::default());
        Self { interval_ns: FIRST_INTERVAL_NS, from_ns, course, next_ns, reached_ns: 0, small }
    }

    /// Takes no moments that would be dropped by `last_ns`, the expected time of the last event.
    /// The course is the same if the events reach that time: see [`CourseTaker::is_exact`].
    #[must_use]
    pub fn until(mut self, last_ns: u64) -> Self {
        self.interval_ns = interval_ns(last_ns.saturating_sub(self.from_ns));
        self.next_ns = self.from_ns.saturating_add(self.interval_ns);
        self
    }

    /// Whether the moments are those of a taker that expects no last event.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.interval_ns == interval_ns(self.reached_ns)
    }

    /// Time of the next moment. [`CourseTaker::take`] must be called before an event at or after it
    /// is counted.
    #[inline(always)]
    #[must_use]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Records the moments up to `reached_ns`, the time of an event that is not yet counted.
    /// `parent_of`: the caller of a node of the stack tree.
    #[cold]
    #[inline(never)]
    pub fn take(
        &mut self,
        reached_ns: u64,
        summary: &SummaryBuilder,
        parent_of: impl Fn(StackIndex) -> StackIndex,
    ) {
        let since_ns = reached_ns.saturating_sub(self.from_ns);
        self.reached_ns = self.reached_ns.max(since_ns);
        while since_ns / self.interval_ns > MOMENTS_MAX {
            self.interval_ns *= 2;
            let mut place = 0;
            self.course.moments.retain(|_| {
                place += 1;
                place % 2 == 0
            });
        }
        let wanted = since_ns / self.interval_ns;
        let mut last: Option<CourseMoment> = None;
        while (self.course.moments.len() as u64) < wanted {
            let time_ns = self.from_ns + (self.course.moments.len() as u64 + 1) * self.interval_ns;
            let moment = match last.take() {
                // No event lies in between.
                Some(last) => CourseMoment { time_ns, ..last },
                None => moment(time_ns, summary, &mut self.small, &parent_of),
            };
            last = (self.course.moments.len() as u64 + 1 < wanted).then(|| moment.clone());
            self.course.moments.push(moment);
        }
        self.next_ns = self.from_ns.saturating_add((wanted + 1).saturating_mul(self.interval_ns));
    }

    /// Returns all moments.
    #[must_use]
    pub fn finish(self) -> Course {
        self.course
    }
}

/// Smallest interval by which a time is reached in at most [`MOMENTS_MAX`] moments.
fn interval_ns(since_ns: u64) -> u64 {
    let mut interval_ns = FIRST_INTERVAL_NS;
    while since_ns / interval_ns > MOMENTS_MAX {
        interval_ns *= 2;
    }
    interval_ns
}

fn moment(
    time_ns: u64,
    summary: &SummaryBuilder,
    small: &mut SmallStacks,
    parent_of: impl Fn(StackIndex) -> StackIndex,
) -> CourseMoment {
    let total_count = summary.made_count();
    let mut moment = CourseMoment { time_ns, total_count, ..CourseMoment::default() };
    summary.for_each_live(|_, row| {
        moment.live_bytes = moment.live_bytes.saturating_add(row.live_bytes);
        moment.live_count += row.live_count;
        moment.variances.add(row.variances);
    });
    let least_bytes = moment.live_bytes.div_ceil(ROWS_MAX).max(1);
    let mut rows: Vec<CourseRow> = Vec::new();
    summary.for_each_live(|process, row| match row.live_bytes >= least_bytes {
        true => rows.push(row),
        false => small.add(process, &row),
    });
    rows.sort_unstable_by_key(|row| row.stack);
    moment.rows = rows;
    moment.rests = small.take(least_bytes, parent_of);
    moment
}

#[cfg(test)]
mod tests {
    use heapr_trace::{Action, Event, HeapId, ProcessIndex, StackIndex, ThreadIndex};

    use super::*;
    use crate::ledger::Ledger;

    /// Allocates a byte at each time; records moments like the recorder.
    fn course_of(times_ns: &[u64]) -> Course {
        taken(times_ns, CourseTaker::default()).finish()
    }

    fn taken(times_ns: &[u64], mut taker: CourseTaker) -> CourseTaker {
        let (mut ledger, mut summary) = (Ledger::new(), SummaryBuilder::new());
        for (number, &time_ns) in times_ns.iter().enumerate() {
            if time_ns >= taker.next_ns() {
                taker.take(time_ns, &summary, |_| StackIndex::EMPTY);
            }
            let action = Action::Alloc {
                address_avma: 0x1000 + number as u64 * 16,
                size_bytes: 1,
                stack: StackIndex(1 + number as u32 % 3),
                is_moved_realloc: false,
            };
            let event = Event { time_ns, thread: ThreadIndex(0), heap: HeapId::MALLOC, action };
            ledger.apply(&event, ProcessIndex(0), &mut summary);
        }
        taker
    }

    #[test]
    fn a_known_end_saves_moments_and_changes_none() {
        for count in [10_u64, 1_000, 30_000] {
            let times: Vec<u64> = (0..count).map(|number| number * 400_000).collect();
            let last_ns = times[times.len() - 1];
            let known = taken(&times, CourseTaker::default().until(last_ns));
            assert!(known.is_exact());
            assert_eq!(known.finish(), course_of(&times));
            // Events that end earlier, or go on.
            let shorter = taken(&times, CourseTaker::default().until((last_ns + (1 << 27)) * 100));
            assert!(!shorter.is_exact());
            let longer = taken(&times, CourseTaker::default().until(last_ns / 10));
            assert!(longer.is_exact());
            assert_eq!(longer.finish(), course_of(&times));
        }
    }

    #[test]
    fn a_moment_holds_what_was_live_before_it_and_moments_stay_few() {
        for count in [10_u64, 1_000, 30_000] {
            let times: Vec<u64> = (0..count).map(|number| number * 400_000).collect();
            let course = course_of(&times);
            assert!(course.moments.len() as u64 <= MOMENTS_MAX, "{}", course.moments.len());
            assert!(count < 1_000 || course.moments.len() as u64 >= MOMENTS_MAX / 2 - 1);
            for moment in &course.moments {
                let before = times.iter().filter(|&&time| time < moment.time_ns).count() as u64;
                assert_eq!(
                    (moment.live_bytes, moment.live_count, moment.total_count),
                    (before, before, before)
                );
                assert_eq!(moment.rows.iter().map(|row| row.live_bytes).sum::<u64>(), before);
                assert!(moment.rests.is_empty());
            }
            assert!(course.moments.is_sorted_by(|a, b| a.time_ns < b.time_ns));
        }
    }

    #[test]
    fn stacks_without_rows_are_in_the_rests() {
        let (mut ledger, mut summary, mut taker) =
            (Ledger::new(), SummaryBuilder::new(), CourseTaker::default());
        // 9,000 stacks of a byte each, half of them called by node 1, and one that is larger.
        for number in 0..9_001_u32 {
            let action = Action::Alloc {
                address_avma: 0x1000 + u64::from(number) * 16,
                size_bytes: if number == 9_000 { 1_000 } else { 1 },
                stack: StackIndex(number + 2),
                is_moved_realloc: false,
            };
            let event = Event { time_ns: 1, thread: ThreadIndex(0), heap: HeapId::MALLOC, action };
            ledger.apply(&event, ProcessIndex(0), &mut summary);
        }
        taker.take(FIRST_INTERVAL_NS, &summary, |stack| StackIndex(u32::from((2..4_502).contains(&stack.0))));
        let moment = &taker.finish().moments[0];
        let told = |rest: &heapr_trace::CourseRest| (rest.row.stack.0, rest.row.live_bytes);
        assert_eq!(moment.rests.iter().map(told).collect::<Vec<_>>(), [(0, 4_500), (1, 4_500)]);
        assert_eq!(moment.rows.iter().map(|row| row.live_bytes).collect::<Vec<_>>(), [1_000]);
        assert_eq!(moment.live_bytes, 10_000);
    }

    #[test]
    fn a_long_pause_has_moments_of_its_own() {
        let course = course_of(&[0, 1, 40 << 20, 41 << 20]);
        assert_eq!(course.moments.len(), 41);
        assert!(course.moments[..40].iter().all(|moment| moment.live_bytes == 2));
        assert_eq!(course.moments[40].live_bytes, 3);
        let far = course_of(&[0, 3600 << 30]);
        assert!(far.moments.len() as u64 <= MOMENTS_MAX && far.moments.len() > 20);
    }
}
