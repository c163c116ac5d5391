//! The course of a recording: live bytes and blocks by stack, at a series of moments.

use crate::bytes::{PutBytes, Take, unzigzag, zigzag};
use crate::error::Malformed;
use crate::{BlockEstimate, Estimate, ProcessIndex, StackIndex};

/// Variances of live amounts that are estimates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveVariances {
    /// Variance of the bytes in KiB squared.
    pub bytes_kib2: u64,
    /// Variance of the number of blocks.
    pub count: u64,
}

impl LiveVariances {
    /// Adds the variances of other blocks.
    pub fn add(&mut self, other: Self) {
        self.bytes_kib2 = self.bytes_kib2.saturating_add(other.bytes_kib2);
        self.count = self.count.saturating_add(other.count);
    }

    /// Removes the variances of some of the blocks.
    pub fn remove(&mut self, other: Self) {
        self.bytes_kib2 = self.bytes_kib2.saturating_sub(other.bytes_kib2);
        self.count = self.count.saturating_sub(other.count);
    }

    /// Live bytes and blocks with these variances.
    #[must_use]
    pub const fn of(self, bytes: u64, count: u64) -> BlockEstimate {
        BlockEstimate {
            bytes: Estimate::new(bytes, self.bytes_kib2),
            count: Estimate::new(count, self.count),
        }
    }
}

/// Live memory of one stack at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CourseRow {
    /// The stack.
    pub stack: StackIndex,
    /// Number of live bytes.
    pub live_bytes: u64,
    /// Number of live blocks.
    pub live_count: u64,
    /// Number of blocks allocated before the moment, freed or not.
    pub total_count: u64,
    /// Variances of the live amounts.
    pub variances: LiveVariances,
}

impl CourseRow {
    /// Live bytes and blocks.
    #[must_use]
    pub fn live(&self) -> BlockEstimate {
        self.variances.of(self.live_bytes, self.live_count)
    }
}

/// Live memory at a moment of stacks that are too small for rows of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CourseRest {
    /// Process of the stacks.
    pub process: ProcessIndex,
    /// Sums over the stacks. The row's stack is the deepest common caller that is told; empty:
    /// stacks of the process without such a caller.
    pub row: CourseRow,
}

/// Live memory at a moment, before the events with that time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CourseMoment {
    /// Time of the moment.
    pub time_ns: u64,
    /// Live bytes over all stacks, of malloc and of the program's own heaps.
    pub live_bytes: u64,
    /// Live blocks over all stacks.
    pub live_count: u64,
    /// Number of blocks allocated before the moment, over all stacks: a measure of the program's
    /// progress.
    pub total_count: u64,
    /// The stacks that held most, by number. The blocks of ended processes count only in older
    /// files: see [`crate::Summary::counts_living`].
    pub rows: Vec<CourseRow>,
    /// Sums of all other stacks, by process and caller. Rows and rests together are all that is
    /// live. Empty in files of earlier versions.
    pub rests: Vec<CourseRest>,
    /// Variances of the live amounts over all stacks.
    pub variances: LiveVariances,
}

impl CourseMoment {
    /// Live bytes and blocks over all stacks.
    #[must_use]
    pub fn live(&self) -> BlockEstimate {
        self.variances.of(self.live_bytes, self.live_count)
    }

    /// Whether rows and rests have all live bytes.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let rows = self.rows.iter().chain(self.rests.iter().map(|rest| &rest.row));
        rows.map(|row| row.live_bytes).fold(0, u64::saturating_add) == self.live_bytes
    }
}

/// Live memory at moments from the recording's start to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Course {
    /// The moments, in order of time.
    pub moments: Vec<CourseMoment>,
}

/// Number of streams of a course chunk: moments, and four columns of their rows (stack, live bytes,
/// live blocks, blocks allocated so far).
pub(crate) const COURSE_STREAMS: usize = 5;
/// Largest number of moments, and of rows, that a writer produces.
const MOMENTS_MAX: usize = 128;
const ROWS_MAX: usize = 1 << 21;

/// Encodes a course as columns.
pub(crate) fn course_columns(course: &Course) -> [Vec<u8>; COURSE_STREAMS] {
    let mut streams = [const { Vec::new() }; COURSE_STREAMS];
    let [moments, stacks, bytes, counts, totals] = &mut streams;
    let mut time_ns = 0;
    for moment in &course.moments {
        moments.put_varint(moment.time_ns.wrapping_sub(time_ns));
        time_ns = moment.time_ns;
        for value in [moment.live_bytes, moment.live_count, moment.total_count, moment.rows.len() as u64] {
            moments.put_varint(value);
        }
        let mut stack = 0_u32;
        for row in &moment.rows {
            stacks.put_varint(zigzag(i64::from(row.stack.0) - i64::from(stack)));
            stack = row.stack.0;
            bytes.put_varint(row.live_bytes);
            counts.put_varint(row.live_count);
            totals.put_varint(row.total_count);
        }
    }
    streams
}

/// Decodes a course from untrusted columns; inverse of [`course_columns`]. Stacks beyond the file's
/// `stack_count` are an error.
pub(crate) fn take_course(
    streams: &[Vec<u8>; COURSE_STREAMS],
    moment_count: usize,
    stack_count: usize,
) -> Result<Course, Malformed> {
    let [moments, stacks, bytes, counts, totals] = streams;
    if moment_count > MOMENTS_MAX || moment_count > moments.len() {
        return Err(Malformed("it claims more moments than it can have"));
    }
    if stacks.len() > ROWS_MAX * 5 {
        return Err(Malformed("it has more rows than a course can have"));
    }
    let (mut moments, mut stacks) = (Take::new(moments), Take::new(stacks));
    let (mut bytes, mut counts, mut totals) = (Take::new(bytes), Take::new(counts), Take::new(totals));
    let mut course = Course::default();
    let (mut time_ns, mut row_count) = (0_u64, 0_usize);
    for _ in 0..moment_count {
        time_ns = time_ns.checked_add(moments.varint()?).ok_or(Malformed("a time is beyond 64 bits"))?;
        let (live_bytes, live_count) = (moments.varint()?, moments.varint()?);
        let made_count = moments.varint()?;
        let count = usize::try_from(moments.varint()?).unwrap_or(usize::MAX);
        row_count = row_count.saturating_add(count);
        if row_count > ROWS_MAX {
            return Err(Malformed("it has more rows than a course can have"));
        }
        let mut rows = Vec::new();
        let mut stack = 0_i64;
        for _ in 0..count {
            stack = stack.wrapping_add(unzigzag(stacks.varint()?));
            let number = u32::try_from(stack).ok().filter(|&number| (number as usize) < stack_count);
            rows.push(CourseRow {
                stack: number.map(StackIndex).ok_or(Malformed("a stack's number is out of range"))?,
                live_bytes: bytes.varint()?,
                live_count: counts.varint()?,
                total_count: totals.varint()?,
                ..CourseRow::default()
            });
        }
        let total_count = made_count;
        let moment =
            CourseMoment { time_ns, live_bytes, live_count, total_count, rows, ..CourseMoment::default() };
        course.moments.push(moment);
    }
    Ok(course)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row() -> impl Strategy<Value = CourseRow> {
        (0..50_u32, any::<u64>(), 0..99_u64, 0..99_u64).prop_map(
            |(stack, live_bytes, live_count, total_count)| CourseRow {
                stack: StackIndex(stack),
                live_bytes,
                live_count,
                total_count,
                ..CourseRow::default()
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(moments in prop::collection::vec((0..1_000_u64, 0..9_u64, prop::collection::vec(row(), 0..5)), 0..6)) {
            let mut time_ns = 0;
            let moments: Vec<CourseMoment> = moments.into_iter().map(|(later, live_count, rows)| {
                time_ns += later;
                let live_bytes = later * 7;
                CourseMoment { time_ns, live_bytes, live_count, total_count: later, rows, ..CourseMoment::default() }
            }).collect();
            let course = Course { moments };
            let columns = course_columns(&course);
            prop_assert_eq!(take_course(&columns, course.moments.len(), 50).unwrap(), course);
        }

        #[test]
        fn any_columns_are_read_or_refused(
            streams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), COURSE_STREAMS),
            count in 0..9_usize,
        ) {
            let streams: [Vec<u8>; COURSE_STREAMS] = streams.try_into().unwrap();
            let _ = take_course(&streams, count, 10);
        }
    }
}
