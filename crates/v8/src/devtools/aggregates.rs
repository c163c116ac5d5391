//! Summary of a heap: one line per class.

use crate::devtools::Heap;
use crate::node_set::NodeSet;
use heapr_table::SortRows as _;

/// Totals of the objects of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aggregate {
    /// Number of the class.
    pub class: u32,
    /// Number of objects; objects of self size 0 do not count.
    pub object_count: u64,
    /// Least distance of the objects.
    pub distance: i32,
    /// Sum of the objects' self sizes, in bytes.
    pub self_bytes: u64,
    /// Bytes that would be freed with the objects. An object below another of the same class counts
    /// once.
    pub retained_bytes: u64,
}

impl Heap {
    /// Returns the summary of some objects, or of all: one line per class with objects, by
    /// descending retained size, then by name.
    pub(crate) fn aggregates_of(&self, only: Option<&NodeSet>) -> Vec<Aggregate> {
        let classes = self.classes();
        let snapshot = self.snapshot();
        let distances = self.distances();
        let mut all: Vec<Aggregate> = (0..classes.count())
            .map(|class| Aggregate {
                class,
                object_count: 0,
                distance: i32::MAX,
                self_bytes: 0,
                retained_bytes: 0,
            })
            .collect();
        let is_counted =
            |node: u32| snapshot.self_bytes(node) != 0 && only.is_none_or(|only| only.contains(node));
        for node in 0..snapshot.node_count() {
            if is_counted(node) {
                let aggregate = &mut all[classes.of_node(node) as usize];
                aggregate.object_count += 1;
                aggregate.distance = aggregate.distance.min(distances[node as usize]);
                aggregate.self_bytes = aggregate.self_bytes.saturating_add(snapshot.self_bytes(node));
            }
        }
        add_retained(self, &mut all, is_counted);
        all.retain(|aggregate| aggregate.object_count > 0);
        all.sort_rows_by(|left, right| {
            let names = || classes.get(left.class).name.cmp(&classes.get(right.class).name);
            right.retained_bytes.cmp(&left.retained_bytes).then_with(names)
        });
        all
    }
}

/// Adds the retained sizes of objects that are not dominated by another counted object of the same
/// class.
fn add_retained(heap: &Heap, all: &mut [Aggregate], is_counted: impl Fn(u32) -> bool) {
    let classes = heap.classes();
    let retained = heap.retained();
    let counts = heap.subtree_counts();
    // Walks the dominator tree from the top. Up to this position, objects of the class lie below
    // another one of it and do not count.
    let mut covered_until = vec![0u32; all.len()];
    for (position, &node) in (0..).zip(heap.dominators().order()) {
        let class = classes.of_node(node) as usize;
        if position >= covered_until[class] && is_counted(node) {
            all[class].retained_bytes = all[class].retained_bytes.saturating_add(retained[node as usize]);
            covered_until[class] = position + counts.of_node(node);
        }
    }
}
