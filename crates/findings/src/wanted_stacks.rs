//! Choice of the stacks that are worth a name: in a large recording, few stacks hold nearly all
//! memory.

use heapr_query::engine::RowSource;
use heapr_trace::{Amounts, Course, HeapId, StackIndex, Trace};

/// Largest number of stacks named per order: for orders by live bytes (at the peak, at the end),
/// and for orders by numbers of blocks.
const NAMED_HELD: usize = 20_000;
const NAMED_MADE: usize = 2_000;
/// Largest number of stacks that are all named, the small ones too. Names cost time at the end of a
/// run.
const NAMED_ALL: usize = 2_000;
/// Share of the live bytes that the named stacks must hold; further ones are not named.
const NAMED_SHARE: f64 = 0.97;

/// Chooses the stacks to be named, with their callers, and marks them by stack.
///
/// # Errors
/// Returns an error if the rows cannot be read.
pub(crate) fn wanted_stacks(
    trace: &Trace,
    rows: &RowSource<'_>,
    course: &Course,
) -> heapr_query::Result<Vec<bool>> {
    let mut orders = [
        Order::new(NAMED_HELD, NAMED_SHARE, |amounts| amounts.peak_bytes),
        Order::new(NAMED_HELD, NAMED_SHARE, |amounts| amounts.outstanding_bytes),
        Order::new(NAMED_MADE, 1.0, |amounts| amounts.total_count),
        Order::new(NAMED_MADE, 1.0, |amounts| amounts.temporary_count),
        Order::new(NAMED_MADE, 1.0, |amounts| amounts.realloc_count),
        Order::new(NAMED_MADE, 1.0, |amounts| amounts.peak_count),
    ];
    // In a small recording all stacks are named, so that the owners of small ones are known, too.
    let has_rests = course.moments.iter().any(|moment| !moment.rests.is_empty());
    let mut all: Vec<StackIndex> = Vec::new();
    rows.for_each(|totals| {
        if has_rests && all.len() <= NAMED_ALL && totals.heap != HeapId::MMAP {
            all.push(totals.stack);
        }
        if totals.heap != HeapId::MMAP {
            orders.iter_mut().for_each(|order| order.add((order.amount)(&totals.amounts), totals.stack));
        }
    })?;
    let mut chosen: Vec<StackIndex> = if all.len() <= NAMED_ALL { all } else { Vec::new() };
    orders.iter_mut().for_each(|order| order.choose(&mut chosen));
    // Stacks with the most live bytes at each moment.
    for moment in &course.moments {
        let mut order = Order::new(NAMED_MADE / 4, 1.0, |_| 0);
        let rests = moment.rests.iter().map(|rest| &rest.row);
        moment.rows.iter().chain(rests).for_each(|row| order.add(row.live_bytes, row.stack));
        order.choose(&mut chosen);
    }
    Ok(with_callers(trace, chosen))
}

/// Greatest of a sequence of amounts. At most twice as many as wanted are stored.
struct Order {
    most: usize,
    share: f64,
    amount: fn(&Amounts) -> u64,
    all: u64,
    greatest: Vec<(u64, StackIndex)>,
}

impl Order {
    fn new(most: usize, share: f64, amount: fn(&Amounts) -> u64) -> Self {
        Self { most, share, amount, all: 0, greatest: Vec::new() }
    }

    fn add(&mut self, amount: u64, stack: StackIndex) {
        if amount == 0 {
            return;
        }
        self.all = self.all.saturating_add(amount);
        if self.greatest.len() >= 2 * self.most {
            self.greatest.select_nth_unstable_by(self.most - 1, |a, b| b.cmp(a));
            self.greatest.truncate(self.most);
        }
        self.greatest.push((amount, stack));
    }

    /// Appends the greatest first, until they exceed the share of all.
    fn choose(&mut self, chosen: &mut Vec<StackIndex>) {
        self.greatest.sort_unstable_by(|a, b| b.cmp(a));
        let mut sum = 0_u64;
        for &(amount, stack) in self.greatest.iter().take(self.most) {
            if sum as f64 > self.all as f64 * self.share {
                break;
            }
            sum = sum.saturating_add(amount);
            chosen.push(stack);
        }
    }
}

/// Marks stacks and all their callers, by stack.
fn with_callers(trace: &Trace, chosen: Vec<StackIndex>) -> Vec<bool> {
    let stacks = trace.stacks();
    let mut wanted = vec![false; stacks.len()];
    for stack in chosen {
        let mut next = stack;
        while let Some(is_wanted) = wanted.get_mut(next.0 as usize).filter(|is_wanted| !**is_wanted) {
            *is_wanted = true;
            if next == StackIndex::EMPTY {
                break;
            }
            next = stacks.parent(next);
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_are_those_of_a_whole_sort() {
        let all: Vec<(u64, StackIndex)> =
            (1..1000_u32).map(|number| (u64::from(number * 7919 % 257 + 1), StackIndex(number))).collect();
        let mut sorted = all.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let stacks = |rows: &[(u64, StackIndex)]| rows.iter().map(|row| row.1).collect::<Vec<_>>();
        for most in [1, 10, 499, 999, 2000] {
            let (mut order, mut chosen) = (Order::new(most, 1.0, |_| 0), Vec::new());
            all.iter().for_each(|&(amount, stack)| order.add(amount, stack));
            order.choose(&mut chosen);
            assert_eq!(chosen, stacks(&sorted[..most.min(999)]));
        }
    }

    #[test]
    fn no_more_are_chosen_than_hold_the_share() {
        let (mut order, mut chosen) = (Order::new(10, 0.6, |_| 0), Vec::new());
        [50, 30, 20].iter().zip(1..).for_each(|(&amount, stack)| order.add(amount, StackIndex(stack)));
        order.choose(&mut chosen);
        assert_eq!(chosen, [StackIndex(1), StackIndex(2)]);
    }
}
