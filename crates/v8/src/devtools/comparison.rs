//! What came and what went between two snapshots of a process, by class.

use heapr_graph::{Compared, compare_sorted};
use rustc_hash::FxHashMap;

use crate::devtools::Heap;
use crate::devtools::classes::{Class, Classes};

/// The objects of one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassDifference {
    /// The class.
    pub class: Class,
    /// Objects that only the second snapshot has.
    pub new_count: u64,
    /// Objects that only the first one has.
    pub deleted_count: u64,
    /// Bytes of the new objects.
    pub new_bytes: u64,
    /// Bytes of the deleted ones.
    pub deleted_bytes: u64,
}

impl ClassDifference {
    /// New minus deleted objects.
    pub fn count_delta(&self) -> i64 {
        self.new_count as i64 - self.deleted_count as i64
    }

    /// New minus deleted bytes.
    pub fn bytes_delta(&self) -> i64 {
        self.new_bytes as i64 - self.deleted_bytes as i64
    }
}

/// All classes that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// By descending growth in bytes, then by name.
    pub classes: Vec<ClassDifference>,
    /// Objects that are in both snapshots.
    pub kept_count: u64,
}

/// An object that only one of two snapshots has; a node of that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectDifference {
    /// A node of the second snapshot.
    New(u32),
    /// A node of the first snapshot.
    Deleted(u32),
}

/// Compares two snapshots. The first is classified by the interfaces of the second, as DevTools does it.
pub fn compare(before: &Heap, after: &Heap) -> Comparison {
    let classes_before = Classes::of(before.snapshot(), Some(after.classes().interfaces()));
    let mut classes: FxHashMap<Class, ClassDifference> = FxHashMap::default();
    let mut kept_count = 0;
    let mut begin = |class: &Class| {
        if !classes.contains_key(class) {
            let none = ClassDifference {
                class: class.clone(),
                new_count: 0,
                deleted_count: 0,
                new_bytes: 0,
                deleted_bytes: 0,
            };
            classes.insert(class.clone(), none);
        }
    };
    // The classes of both sides under common numbers.
    let mut numbers: FxHashMap<Class, u32> = FxHashMap::default();
    let mut number = |class: &Class| {
        begin(class);
        let next = numbers.len() as u32;
        *numbers.entry(class.clone()).or_insert(next)
    };
    let numbers_before: Vec<u32> =
        (0..classes_before.count()).map(|class| number(classes_before.get(class))).collect();
    let numbers_after: Vec<u32> =
        (0..after.classes().count()).map(|class| number(after.classes().get(class))).collect();
    let mut by_number: Vec<Option<ClassDifference>> = vec![None; numbers.len()];
    for (class, &number) in &numbers {
        by_number[number as usize] = classes.remove(class);
    }
    let (sorted_before, sorted_after) = std::thread::scope(|scope| {
        let first =
            scope.spawn(|| sorted(before, |node| numbers_before[classes_before.of_node(node) as usize]));
        let second = sorted(after, |node| numbers_after[after.classes().of_node(node) as usize]);
        (first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), second)
    });
    for compared in
        compare_sorted(sorted_before, sorted_after, |entry| (entry.0, entry.1), |entry| (entry.0, entry.1))
    {
        match compared {
            Compared::New((class, _, node)) => {
                if let Some(difference) = &mut by_number[class as usize] {
                    difference.new_count += 1;
                    difference.new_bytes =
                        difference.new_bytes.saturating_add(after.snapshot().self_bytes(node));
                }
            }
            Compared::Deleted((class, _, node)) => {
                if let Some(difference) = &mut by_number[class as usize] {
                    difference.deleted_count += 1;
                    difference.deleted_bytes =
                        difference.deleted_bytes.saturating_add(before.snapshot().self_bytes(node));
                }
            }
            Compared::Both(_, _) => kept_count += 1,
        }
    }
    let mut classes: Vec<ClassDifference> =
        by_number.into_iter().flatten().filter(|class| class.new_count + class.deleted_count > 0).collect();
    classes.sort_by(|left, right| {
        right.bytes_delta().cmp(&left.bytes_delta()).then_with(|| left.class.cmp(&right.class))
    });
    Comparison { classes, kept_count }
}

/// The objects of a class that only one of the snapshots has.
pub fn compare_class(before: &Heap, after: &Heap, class: &Class) -> Vec<ObjectDifference> {
    let classes_before = Classes::of(before.snapshot(), Some(after.classes().interfaces()));
    let only = |heap: &Heap, classes: &Classes| {
        let wanted = (0..classes.count()).find(|&number| classes.get(number) == class);
        let mut nodes: Vec<(u64, u32)> = (0..heap.snapshot().node_count())
            .filter(|&node| Some(classes.of_node(node)) == wanted && heap.snapshot().self_bytes(node) != 0)
            .map(|node| (heap.snapshot().id(node), node))
            .collect();
        nodes.sort_unstable();
        nodes
    };
    let (nodes_before, nodes_after) = (only(before, &classes_before), only(after, after.classes()));
    compare_sorted(nodes_before, nodes_after, |entry| entry.0, |entry| entry.0)
        .filter_map(|compared| match compared {
            Compared::New((_, node)) => Some(ObjectDifference::New(node)),
            Compared::Deleted((_, node)) => Some(ObjectDifference::Deleted(node)),
            Compared::Both(_, _) => None,
        })
        .collect()
}

/// Class, id and node of each object with bytes of its own, in that order.
fn sorted(heap: &Heap, class_of: impl Fn(u32) -> u32) -> Vec<(u32, u64, u32)> {
    let snapshot = heap.snapshot();
    let mut entries: Vec<(u32, u64, u32)> = (0..snapshot.node_count())
        .filter(|&node| snapshot.self_bytes(node) != 0)
        .map(|node| (class_of(node), snapshot.id(node), node))
        .collect();
    entries.sort_unstable();
    entries
}
