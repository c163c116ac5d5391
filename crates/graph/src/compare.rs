//! Comparison of two populations, matched by key.

use std::cmp::Ordering;

/// One step of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared<T> {
    /// Element of the first population only.
    Deleted(T),
    /// Element of the second population only.
    New(T),
    /// Element of both populations.
    Both(T, T),
}

/// Matches two sequences that ascend by `key`. Equal keys match one to one; surplus elements count
/// as deleted or new.
pub fn compare_sorted<T: Copy, K: Ord>(
    before: impl IntoIterator<Item = T>,
    after: impl IntoIterator<Item = T>,
    key_before: impl Fn(T) -> K,
    key_after: impl Fn(T) -> K,
) -> impl Iterator<Item = Compared<T>> {
    let mut before = before.into_iter().peekable();
    let mut after = after.into_iter().peekable();
    std::iter::from_fn(move || {
        let order = match (before.peek(), after.peek()) {
            (Some(&old), Some(&new)) => key_before(old).cmp(&key_after(new)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        match order {
            Ordering::Less => before.next().map(Compared::Deleted),
            Ordering::Greater => after.next().map(Compared::New),
            Ordering::Equal => before.next().zip(after.next()).map(|(old, new)| Compared::Both(old, new)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_deleted_and_kept_are_told_apart() {
        let found: Vec<_> = compare_sorted([1, 3, 5, 5], [2, 3, 5, 7], |n| n, |n| n).collect();
        assert_eq!(
            found,
            [
                Compared::Deleted(1),
                Compared::New(2),
                Compared::Both(3, 3),
                Compared::Both(5, 5),
                Compared::Deleted(5),
                Compared::New(7)
            ]
        );
    }
}
