//! Sorting of the short lists that people see.
//!
//! The standard library's stable sort is compiled anew for each call, into some 5 KB of fast code.
//! Lists of results have at most some thousand rows, and this sort's code is shared by all types.

use std::cmp::Ordering;

/// Stable sort with little code for each type, for lists that are sorted seldom.
pub trait SortRows<T> {
    /// Variant of `sort_by`.
    fn sort_rows_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Variant of `sort_by_key`.
    fn sort_rows_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);

    /// Variant of `sort`.
    fn sort_rows(&mut self)
    where
        T: Ord;
}

impl<T> SortRows<T> for [T] {
    fn sort_rows_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let order = order(self.len(), &mut |one, other| compare(&self[one], &self[other]));
        put_into(self, order);
    }

    fn sort_rows_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.sort_rows_by(|one, other| key(one).cmp(&key(other)));
    }

    fn sort_rows(&mut self)
    where
        T: Ord,
    {
        self.sort_rows_by(T::cmp);
    }
}

/// Indexes of `count` rows in their order.
#[inline(never)]
fn order(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&one, &other| compare(one, other));
    order
}

/// Puts the rows into an order. Each circle of rows that take one another's places is walked once.
fn put_into<T>(rows: &mut [T], mut order: Vec<usize>) {
    for start in 0..rows.len() {
        let mut at = start;
        loop {
            // A row that is in its place is marked by its own index.
            let from = std::mem::replace(&mut order[at], at);
            if from == start || from == at {
                break;
            }
            rows.swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_as_by_the_standard_library() {
        // A linear congruential generator: many orders, with equal keys.
        let mut state = 1_u32;
        for length in (0..60).chain([1000]) {
            let rows: Vec<(u32, usize)> = (0..length)
                .map(|place| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 27, place)
                })
                .collect();
            let (mut ours, mut theirs) = (rows.clone(), rows);
            ours.sort_rows_by_key(|row| row.0);
            theirs.sort_by_key(|row| row.0);
            assert_eq!(ours, theirs);
            ours.sort_rows_by(|one, other| other.cmp(one));
            theirs.sort_by(|one, other| other.cmp(one));
            assert_eq!(ours, theirs);
            ours.sort_rows();
            theirs.sort();
            assert_eq!(ours, theirs);
        }
    }
}
