//! Order of retainers. Only the requested part is sorted, even for an object with millions of
//! referrers.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::EdgeKind;
use crate::format::compare_utf16;
use crate::objects::{EdgeName, Objects};

/// Edge to be sorted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) edge: u32,
    pub(super) kind: EdgeKind,
    pub(super) distance: i32,
}

/// Edges into a node, ordered by distance, then by name (`__proto__` last), then as given.
#[derive(Debug)]
pub(crate) struct RetainerOrder<'a, H: ?Sized> {
    heap: &'a H,
    held: Vec<Held>,
    /// Number of edges at each distance.
    counts: BTreeMap<i32, usize>,
}

impl<'a, H: Objects + ?Sized> RetainerOrder<'a, H> {
    pub(super) fn of(heap: &'a H, held: Vec<Held>) -> Self {
        let mut counts = BTreeMap::new();
        // Millions of edges have a few distances, mostly in long runs.
        for run in held.chunk_by(|one, other| one.distance == other.distance) {
            *counts.entry(run[0].distance).or_default() += run.len();
        }
        Self { heap, held, counts }
    }

    /// Number of edges.
    pub(crate) fn count(&self) -> usize {
        self.held.len()
    }

    /// Returns all edges in order.
    pub(crate) fn all(&self) -> Vec<u32> {
        let ranks = self.name_ranks(&self.held);
        let places: FxHashMap<i32, u32> = self.counts.keys().copied().zip(0..).collect();
        let mut last = None;
        let distances = self.held.iter().map(|held| match last {
            Some((distance, place)) if distance == held.distance => place,
            _ => {
                let place = places.get(&held.distance).copied().unwrap_or_default();
                last = Some((held.distance, place));
                place
            }
        });
        let distances: Vec<u32> = distances.collect();
        // Millions of edges have a few names and distances: counting sorts them faster than
        // comparing.
        let by_name = counted_order(0..self.held.len() as u32, &ranks);
        let by_distance = counted_order(by_name.into_iter(), &distances);
        by_distance.into_iter().map(|at| self.held[at as usize].edge).collect()
    }

    /// Returns some of the edges in order. `rows` must be within the number of edges.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Vec<u32> {
        if rows.is_empty() {
            return Vec::new();
        }
        // Names cost more than distances, so only names that decide about the requested rows are
        // looked up.
        let (mut before, mut end) = (0, 0);
        let mut near_and_far = None;
        for (&distance, count) in &self.counts {
            end += count;
            if end <= rows.start {
                before = end;
                continue;
            }
            near_and_far = Some((near_and_far.map_or(distance, |(near, _)| near), distance));
            if end >= rows.end {
                break;
            }
        }
        let Some((near, far)) = near_and_far else { return Vec::new() };
        let asked: Vec<Held> =
            self.held.iter().copied().filter(|held| (near..=far).contains(&held.distance)).collect();
        let ranks = self.name_ranks(&asked);
        let keyed = (0..).zip(asked.iter().zip(ranks)).map(|(at, (held, rank))| (held.distance, rank, at));
        let mut keyed: Vec<(i32, u32, u32)> = keyed.collect();
        let in_order = sorted_part(&mut keyed, rows.start - before..rows.end - before);
        in_order.iter().map(|&(.., at)| asked[at as usize].edge).collect()
    }

    /// Returns the rank of each edge's name among all of them. Millions of edges have a few names;
    /// each name is compared once.
    fn name_ranks(&self, asked: &[Held]) -> Vec<u32> {
        let edges: Vec<u32> = asked.iter().map(|held| held.edge).collect();
        let mut numbers: FxHashMap<(bool, u32), u32> = FxHashMap::default();
        let mut names = Vec::new();
        let mut last = None;
        let mut name_of: Vec<u32> = Vec::with_capacity(asked.len());
        for (held, index) in asked.iter().zip(self.heap.edge_name_indexes(&edges)) {
            let name = (held.kind.has_string_name(), index);
            let number = match last {
                Some((last, number)) if last == name => number,
                _ => *numbers.entry(name).or_insert_with(|| {
                    names.push(match self.heap.edge_name(held.edge) {
                        EdgeName::Index(index) => (false, true, Name(index.to_string())),
                        EdgeName::Name(name) => (name == "__proto__", false, Name(name.into_owned())),
                    });
                    names.len() as u32 - 1
                }),
            };
            last = Some((name, number));
            name_of.push(number);
        }
        let mut order: Vec<u32> = (0..names.len() as u32).collect();
        order.sort_by(|&one, &other| names[one as usize].cmp(&names[other as usize]));
        let mut ranks = vec![0; names.len()];
        let mut rank = 0;
        for (at, &name) in order.iter().enumerate() {
            let is_new = at > 0 && names[order[at - 1] as usize] != names[name as usize];
            rank += u32::from(is_new);
            ranks[name as usize] = rank;
        }
        for number in &mut name_of {
            *number = ranks[*number as usize];
        }
        name_of
    }
}

/// Returns `rows` of the list that sorting `keys` would give, without sorting the rest. All keys
/// differ.
fn sorted_part<T: Ord>(keys: &mut [T], rows: Range<usize>) -> &[T] {
    let mut keys = keys;
    if rows.end < keys.len() {
        keys.select_nth_unstable(rows.end);
        keys = &mut keys[..rows.end];
    }
    if 0 < rows.start && rows.start < keys.len() {
        keys.select_nth_unstable(rows.start);
    }
    let part = keys.get_mut(rows).unwrap_or_default();
    part.sort_unstable();
    part
}

/// Sorts numbers stably by their keys, which are small numbers.
fn counted_order(numbers: impl ExactSizeIterator<Item = u32> + Clone, keys: &[u32]) -> Vec<u32> {
    let mut next = vec![0_u32; keys.iter().max().map_or(0, |&most| most as usize + 1)];
    for &key in keys {
        next[key as usize] += 1;
    }
    let mut begin = 0;
    for slot in &mut next {
        let count = std::mem::replace(slot, begin);
        begin += count;
    }
    let mut order = vec![0; numbers.len()];
    for number in numbers {
        let slot = &mut next[keys[number as usize] as usize];
        order[*slot as usize] = number;
        *slot += 1;
    }
    order
}

/// Name, ordered as in JavaScript.
#[derive(PartialEq, Eq)]
struct Name(String);

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_utf16(self.0.as_bytes(), other.0.as_bytes())
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::objects::Page;

    proptest! {
        #[test]
        fn a_part_is_that_of_the_sorted_list(
            keys in prop::collection::vec(0_u32..20, 0..2000),
            first in 0_usize..2100,
            count in 0_usize..300,
        ) {
            let mut keyed: Vec<(u32, usize)> = keys.iter().copied().zip(0..).collect();
            let mut sorted = keyed.clone();
            sorted.sort_by_key(|&(key, _)| key);
            let rows = Page { first, count }.range(keys.len());
            prop_assert_eq!(sorted_part(&mut keyed, rows.clone()), &sorted[rows]);
        }

        #[test]
        fn a_counted_order_is_that_of_a_stable_sort(
            keys in prop::collection::vec((0_u32..20, 0_u32..7), 0..500),
        ) {
            let numbers = 0..keys.len() as u32;
            let (ones, others): (Vec<u32>, Vec<u32>) = keys.iter().copied().unzip();
            let counted = counted_order(counted_order(numbers.clone(), &ones).into_iter(), &others);
            let mut sorted: Vec<u32> = numbers.collect();
            sorted.sort_by_key(|&number| (others[number as usize], ones[number as usize]));
            prop_assert_eq!(counted, sorted);
        }
    }
}
