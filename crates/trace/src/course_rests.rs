//! Sums of the stacks that are too small for rows of a course, in a chunk beside that of the
//! course. An older reader ignores them.

use crate::bytes::{PutBytes, Take, unzigzag, zigzag};
use crate::course::LiveVariances;
use crate::error::Malformed;
use crate::{Course, CourseRest, CourseRow, ProcessIndex, StackIndex};

/// Number of streams. The first has the numbers of rows by moment. The others have of all rows the
/// process and stack, live bytes, live blocks, blocks allocated so far, and the two variances.
pub(crate) const REST_STREAMS: usize = 6;
/// Largest number of rows that a writer produces.
const ROWS_MAX: usize = 1 << 21;

/// Whether a course has such sums.
pub(crate) fn has_rests(course: &Course) -> bool {
    course.moments.iter().any(|moment| !moment.rests.is_empty())
}

/// Encodes the sums as columns.
pub(crate) fn rest_columns(course: &Course) -> [Vec<u8>; REST_STREAMS] {
    let mut streams = [const { Vec::new() }; REST_STREAMS];
    let [moments, owners, bytes, counts, totals, variances] = &mut streams;
    for moment in &course.moments {
        moments.put_varint(moment.rests.len() as u64);
        let (mut process, mut stack) = (0_u32, 0_u32);
        for CourseRest { process: of, row } in &moment.rests {
            owners.put_varint(zigzag(i64::from(of.0) - i64::from(process)));
            owners.put_varint(zigzag(i64::from(row.stack.0) - i64::from(stack)));
            (process, stack) = (of.0, row.stack.0);
            bytes.put_varint(row.live_bytes);
            counts.put_varint(row.live_count);
            totals.put_varint(row.total_count);
            variances.put_varint(row.variances.bytes_kib2);
            variances.put_varint(row.variances.count);
        }
    }
    streams
}

/// Decodes the sums from untrusted columns into a course; inverse of [`rest_columns`]. `known`:
/// numbers of stacks and processes of the file.
pub(crate) fn take_rests(
    streams: &[Vec<u8>; REST_STREAMS],
    course: &mut Course,
    known: (usize, usize),
) -> Result<(), Malformed> {
    let [mut moments, owners, bytes, counts, totals, variances] =
        streams.each_ref().map(|stream| Take::new(stream));
    let mut takes = [owners, bytes, counts, totals, variances];
    let mut row_count = 0_usize;
    for moment in &mut course.moments {
        let count = usize::try_from(moments.varint()?).unwrap_or(usize::MAX);
        row_count = row_count.saturating_add(count);
        if row_count > ROWS_MAX {
            return Err(Malformed("it has more rows than a course can have"));
        }
        let mut owner = (0_i64, 0_i64);
        for _ in 0..count {
            moment.rests.push(take_rest(&mut takes, &mut owner, known)?);
        }
    }
    Ok(())
}

fn take_rest(
    [owners, bytes, counts, totals, variances]: &mut [Take<'_>; REST_STREAMS - 1],
    (process, stack): &mut (i64, i64),
    (stack_count, process_count): (usize, usize),
) -> Result<CourseRest, Malformed> {
    let in_range = |number: i64, count: usize| {
        u32::try_from(number)
            .ok()
            .filter(|&number| (number as usize) < count)
            .ok_or(Malformed("a stack's or a process's number is out of range"))
    };
    *process = process.wrapping_add(unzigzag(owners.varint()?));
    *stack = stack.wrapping_add(unzigzag(owners.varint()?));
    let row = CourseRow {
        stack: StackIndex(in_range(*stack, stack_count)?),
        live_bytes: bytes.varint()?,
        live_count: counts.varint()?,
        total_count: totals.varint()?,
        variances: LiveVariances { bytes_kib2: variances.varint()?, count: variances.varint()? },
    };
    Ok(CourseRest { process: ProcessIndex(in_range(*process, process_count)?), row })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::CourseMoment;

    fn rest() -> impl Strategy<Value = CourseRest> {
        (0..3_u32, 0..50_u32, any::<u64>(), 0..99_u64, 0..99_u64).prop_map(
            |(process, stack, live_bytes, live_count, total_count)| {
                let variances = LiveVariances { bytes_kib2: total_count * 3, count: live_count * 2 };
                let stack = StackIndex(stack);
                let row = CourseRow { stack, live_bytes, live_count, total_count, variances };
                CourseRest { process: ProcessIndex(process), row }
            },
        )
    }

    fn course(rests: Vec<Vec<CourseRest>>) -> Course {
        let moment = |rests| CourseMoment { rests, ..CourseMoment::default() };
        Course { moments: rests.into_iter().map(moment).collect() }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rests in prop::collection::vec(prop::collection::vec(rest(), 0..5), 0..6)) {
            let written = course(rests);
            let mut read = course(vec![Vec::new(); written.moments.len()]);
            take_rests(&rest_columns(&written), &mut read, (50, 3)).unwrap();
            prop_assert_eq!(read, written);
        }

        #[test]
        fn any_columns_are_read_or_refused(
            streams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), REST_STREAMS),
            count in 0..9_usize,
        ) {
            let streams: [Vec<u8>; REST_STREAMS] = streams.try_into().unwrap();
            let _ = take_rests(&streams, &mut course(vec![Vec::new(); count]), (10, 2));
        }
    }
}
