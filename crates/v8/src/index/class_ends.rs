//! First and last objects of each large class in each order of lists. The index stores them, so
//! that a class of millions of objects opens without a scan of all of them.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};

use crate::NodeKind;
use crate::devtools::{DisplayNames, Heap, NodesByClass, PlainObjects};
use crate::index::layout::{Column, END_ROWS, NUMBERS_OF_CLASS, ORDERS};
use crate::index::stored_graph::StoredGraph;
use crate::objects::{NodeNumber, ObjectOrder, Objects as _};

/// Number of objects from which a class's ends are stored; fewer objects are sorted at once.
const LARGE: usize = 400;

/// Returns the position of an end's nodes among the numbers of a class.
fn place_of_end(order: ObjectOrder, is_start: bool) -> Option<usize> {
    let order = ORDERS.iter().position(|&known| known == order)?;
    Some(1 + (order * 2 + usize::from(!is_start)) * END_ROWS)
}

impl StoredGraph {
    /// Returns an end of a class, if it is among the large ones.
    pub(super) fn end_of_class(&self, class: u32, order: ObjectOrder, is_start: bool) -> Option<Vec<u32>> {
        let place = place_of_end(order, is_start)?;
        let begin = self.row_of(Column::ClassEnds, NUMBERS_OF_CLASS, class)? + place as u64;
        let nodes = self.blocks.numbers(Column::ClassEnds, begin..begin + END_ROWS as u64);
        if nodes.iter().any(|&node| node >= self.node_count()) {
            self.blocks.report(|| format!("{:?} of class {class} has no such node", Column::ClassEnds));
            return Some(Vec::new());
        }
        Some(nodes)
    }

    /// Returns the index at which the row of `key` starts, in a column of rows of `numbers`
    /// numbers. Rows ascend by their first number.
    pub(super) fn row_of(&self, column: Column, numbers: usize, key: u32) -> Option<u64> {
        let key_at = |row: u64| self.blocks.number(column, row * numbers as u64);
        let count = self.blocks.count(column) / numbers as u64;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if key_at(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < count && key_at(low) == key).then(|| low * numbers as u64)
    }
}

/// Returns the numbers of all large classes, in the order of classes.
pub(super) fn class_ends(heap: &Heap, by_class: &NodesByClass, plain: PlainObjects) -> Vec<u32> {
    let large: Vec<(u32, &[u32])> = (0..)
        .zip(by_class.borders.windows(2).step_by(2))
        .map(|(class, border)| (class, &by_class.nodes[border[0] as usize..border[1] as usize]))
        .filter(|(_, nodes)| nodes.len() >= LARGE)
        .collect();
    let (by_number, by_name) = std::thread::scope(|scope| {
        let by_name = scope.spawn(|| {
            let names = NamesOfNodes::of(heap, plain);
            large.iter().map(|(_, nodes)| ends(nodes, |node| (names.get(node), node))).collect::<Vec<_>>()
        });
        let by_number: Vec<_> = large.iter().map(|(_, nodes)| ends_by_numbers(heap, nodes)).collect();
        (by_number, by_name.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let mut numbers = Vec::with_capacity(large.len() * NUMBERS_OF_CLASS);
    for (((class, _), by_number), by_name) in large.into_iter().zip(by_number).zip(by_name) {
        numbers.push(class);
        by_number.into_iter().chain([by_name]).flatten().for_each(|nodes| numbers.extend(nodes));
    }
    numbers
}

/// First nodes, and last nodes.
type Ends = [Vec<u32>; 2];

fn ends_by_numbers(heap: &Heap, nodes: &[u32]) -> [Ends; 3] {
    let snapshot = heap.snapshot();
    [
        ends(nodes, |node| (u64::MAX - snapshot.self_bytes(node), node)),
        ends(nodes, |node| (snapshot.id(node), node)),
        ends(nodes, |node| (NodeNumber::of_distance(heap.distances()[node as usize]), node)),
    ]
}

/// Returns the ends of the list that sorting `nodes` by key and number would give.
fn ends<K: Ord>(nodes: &[u32], key: impl Fn(u32) -> (K, u32)) -> Ends {
    let mut first = Least::default();
    nodes.iter().for_each(|&node| first.offer(key(node)));
    // Equal keys ascend by node, so going backwards the last one comes first.
    let mut last = Least::default();
    nodes.iter().rev().for_each(|&node| last.offer(Reverse(key(node))));
    [
        first.sorted().into_iter().map(|(_, node)| node).collect(),
        last.sorted().into_iter().rev().map(|Reverse((_, node))| node).collect(),
    ]
}

/// Collector of the least values that were offered.
struct Least<T> {
    /// Values; once full, the first [`END_ROWS`] are the least of all earlier ones, their greatest
    /// last.
    kept: Vec<T>,
    is_full: bool,
}

impl<T> Default for Least<T> {
    fn default() -> Self {
        Self { kept: Vec::with_capacity(2 * END_ROWS), is_full: false }
    }
}

impl<T: Ord> Least<T> {
    #[inline]
    fn offer(&mut self, value: T) {
        if self.is_full && value >= self.kept[END_ROWS - 1] {
            return;
        }
        self.kept.push(value);
        if self.kept.len() == 2 * END_ROWS {
            self.kept.select_nth_unstable(END_ROWS - 1);
            self.kept.truncate(END_ROWS);
            self.is_full = true;
        }
    }

    fn sorted(mut self) -> Vec<T> {
        self.kept.sort_unstable();
        self.kept.truncate(END_ROWS);
        self.kept
    }
}

/// Names of objects in lists, without examining the properties of each object.
struct NamesOfNodes<'a> {
    heap: &'a Heap,
    /// For each node 0, or its shape's number plus one.
    shape_of: Vec<u32>,
    of_shape: Vec<Vec<u8>>,
    others: Mutex<DisplayNames>,
}

impl<'a> NamesOfNodes<'a> {
    fn of(heap: &'a Heap, plain: PlainObjects) -> Self {
        let mut shape_of = vec![0; heap.snapshot().node_count() as usize];
        let mut of_shape: Vec<Option<Vec<u8>>> = vec![None; plain.shapes.len()];
        for &(node, shape) in &plain.shape_of {
            shape_of[node as usize] = shape + 1;
            of_shape[shape as usize].get_or_insert_with(|| heap.display_name(node).into_owned());
        }
        Self {
            heap,
            shape_of,
            of_shape: of_shape.into_iter().map(Option::unwrap_or_default).collect(),
            others: Mutex::default(),
        }
    }

    #[inline]
    fn get(&self, node: u32) -> Cow<'_, [u8]> {
        let snapshot = self.heap.snapshot();
        match self.shape_of[node as usize] {
            0 if snapshot.kind(node) == NodeKind::CONS_STRING => {
                self.others.lock().unwrap_or_else(PoisonError::into_inner).of(self.heap, node)
            }
            0 => Cow::Borrowed(snapshot.name(node)),
            shape => Cow::Borrowed(&self.of_shape[shape as usize - 1]),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ends_are_those_of_the_sorted_list(keys in prop::collection::vec(0_u64..50, 0..3000)) {
            let nodes: Vec<u32> = (0..keys.len() as u32).collect();
            let mut sorted = nodes.clone();
            sorted.sort_by_key(|&node| (keys[node as usize], node));
            let [first, last] = ends(&nodes, |node| (keys[node as usize], node));
            let count = END_ROWS.min(keys.len());
            prop_assert_eq!(&first[..], &sorted[..count]);
            prop_assert_eq!(&last[..], &sorted[keys.len() - count..]);
        }
    }
}
