//! Stacks that are too small for rows of their own: their sums, each at the deepest caller under
//! which they are large enough together.
//!
//! ```text
//! main ── render ── a: 30, b: 50, c: 40      least 100: one row of 120 at render
//!      └─ load ──── d: 20                    20 are left: those of the process
//! ```
//!
//! So no byte is lost, and the number of rows is bounded by the divisor of the least amount. A
//! parent has a lower number than its children. One pass from the highest number down therefore
//! moves each sum to its parent once.

use std::collections::BTreeMap;

use heapr_trace::{CourseRest, CourseRow, ProcessIndex, StackIndex};

/// Sums of small stacks of one moment. The memory is used again for the next moment.
#[derive(Debug, Default)]
pub(crate) struct SmallStacks {
    /// By node of the stack tree: index in `sums` plus 1; 0 for none.
    places: Vec<u32>,
    sums: Vec<(ProcessIndex, CourseRow)>,
    /// Highest number of a node with a sum.
    highest: usize,
    /// By process: sums of stacks without a common caller.
    left: BTreeMap<ProcessIndex, CourseRow>,
}

/// Adds amounts to a row. Its stack remains.
fn add(sum: &mut CourseRow, row: &CourseRow) {
    sum.live_bytes = sum.live_bytes.saturating_add(row.live_bytes);
    sum.live_count = sum.live_count.saturating_add(row.live_count);
    sum.total_count = sum.total_count.saturating_add(row.total_count);
    sum.variances.add(row.variances);
}

impl SmallStacks {
    /// Adds a stack that is too small for a row.
    pub(crate) fn add(&mut self, process: ProcessIndex, row: &CourseRow) {
        let number = row.stack.0 as usize;
        if number == 0 {
            return self.leave(process, row);
        }
        if number >= self.places.len() {
            self.places.resize((number + 1).max(self.places.len() * 3 / 2), 0);
        }
        self.highest = self.highest.max(number);
        match self.places[number] {
            0 => {
                self.sums.push((process, *row));
                self.places[number] = self.sums.len() as u32;
            }
            place => add(&mut self.sums[place as usize - 1].1, row),
        }
    }

    fn leave(&mut self, process: ProcessIndex, row: &CourseRow) {
        add(self.left.entry(process).or_default(), row);
    }

    /// Takes the sums of at least `least_bytes`, each at its deepest node, and those of processes.
    /// Sorted by process and node. `parent_of`: the caller of a node.
    pub(crate) fn take(
        &mut self,
        least_bytes: u64,
        parent_of: impl Fn(StackIndex) -> StackIndex,
    ) -> Vec<CourseRest> {
        let mut rests: Vec<CourseRest> = Vec::new();
        for number in (1..=self.highest).rev() {
            let place = self.places[number];
            if place == 0 {
                continue;
            }
            self.places[number] = 0;
            // Most nodes only pass a sum on, which is thus not copied here.
            let (process, row) = &self.sums[place as usize - 1];
            if row.live_bytes >= least_bytes {
                let row = CourseRow { stack: StackIndex(number as u32), ..*row };
                rests.push(CourseRest { process: *process, row });
                continue;
            }
            let parent = parent_of(StackIndex(number as u32)).0 as usize;
            // (A caller that is not older than its callee would not be reached any more.)
            if parent == 0 || parent >= number {
                let (process, row) = (*process, *row);
                self.leave(process, &row);
                continue;
            }
            match self.places[parent] {
                0 => self.places[parent] = place,
                known => {
                    let row = *row;
                    add(&mut self.sums[known as usize - 1].1, &row);
                }
            }
        }
        let left = std::mem::take(&mut self.left).into_iter();
        rests.extend(left.map(|(process, row)| {
            let row = CourseRow { stack: StackIndex::EMPTY, ..row };
            CourseRest { process, row }
        }));
        rests.sort_unstable_by_key(|rest| (rest.process, rest.row.stack));
        self.sums.clear();
        self.highest = 0;
        rests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parents of the nodes 1 to 9: two branches below node 1, and a root of its own.
    const PARENTS: [u32; 10] = [0, 0, 1, 2, 2, 2, 1, 6, 7, 0];

    fn taken(rows: &[(u32, u64)], least_bytes: u64) -> Vec<(u32, u64, u64)> {
        let mut small = SmallStacks::default();
        for round in 0..2 {
            for &(stack, live_bytes) in rows {
                let row =
                    CourseRow { stack: StackIndex(stack), live_bytes, live_count: 1, ..CourseRow::default() };
                small.add(ProcessIndex(0), &row);
            }
            let rests = small.take(least_bytes, |stack| StackIndex(PARENTS[stack.0 as usize]));
            if round == 1 {
                let told = |rest: &CourseRest| (rest.row.stack.0, rest.row.live_bytes, rest.row.live_count);
                return rests.iter().map(told).collect();
            }
        }
        Vec::new()
    }

    #[test]
    fn small_stacks_are_summed_at_their_deepest_common_caller() {
        assert_eq!(taken(&[(3, 30), (4, 50), (5, 40), (8, 20)], 100), [(0, 20, 1), (2, 120, 3)]);
        assert_eq!(taken(&[(3, 30), (4, 50), (8, 20)], 100), [(1, 100, 3)]);
        assert_eq!(taken(&[(3, 30), (9, 5), (0, 7)], 100), [(0, 42, 3)]);
        assert!(taken(&[], 100).is_empty());
    }

    #[test]
    fn what_has_no_common_caller_is_its_processs() {
        let mut small = SmallStacks::default();
        for (process, stack, live_bytes) in [(1, 3, 7), (0, 9, 5), (1, 0, 2)] {
            let row = CourseRow { stack: StackIndex(stack), live_bytes, ..CourseRow::default() };
            small.add(ProcessIndex(process), &row);
        }
        let rests = small.take(100, |stack| StackIndex(PARENTS[stack.0 as usize]));
        let told = |rest: &CourseRest| (rest.process.0, rest.row.stack.0, rest.row.live_bytes);
        assert_eq!(rests.iter().map(told).collect::<Vec<_>>(), [(0, 0, 5), (1, 0, 9)]);
    }

    #[test]
    fn no_byte_is_lost_and_rows_are_few() {
        let rows: Vec<(u32, u64)> = (1..10).map(|stack| (stack, u64::from(stack) * 3 % 7 + 1)).collect();
        let whole: u64 = rows.iter().map(|(_, bytes)| bytes).sum();
        for least_bytes in 1..40 {
            let rests = taken(&rows, least_bytes);
            assert_eq!(rests.iter().map(|(_, bytes, _)| bytes).sum::<u64>(), whole);
            assert!(rests.len() as u64 <= whole / least_bytes + 1, "{rests:?}");
        }
    }
}
