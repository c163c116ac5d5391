//! Native memory below the objects and classes of a heap of Python, Java or Ruby.

use std::collections::HashMap;

use heapr_v8::NodeKind;
use heapr_v8::view::Objects;

/// Largest number of steps up the dominator tree; a deeper heap has no such sums.
const STEPS_MAX: u64 = 100_000_000;

/// Bytes of native memory that would be freed with each object, and with all objects of a class.
#[derive(Debug, Default)]
pub(crate) struct NativeColumn {
    of_nodes: HashMap<u32, u64>,
    /// Sums by key of the class.
    of_classes: HashMap<String, u64>,
    pub(crate) total_bytes: u64,
}

impl NativeColumn {
    /// Adds up the native memory. `None` for a heap without such memory, and for V8's own heaps,
    /// whose native nodes have another meaning.
    pub(crate) fn of(objects: &dyn Objects) -> Option<Self> {
        objects.meta().dialect.as_ref()?;
        let mut column = Self::default();
        let mut native = Vec::new();
        objects.visit_nodes(0..objects.node_count(), &mut |facts| {
            if facts.kind == NodeKind::NATIVE && facts.self_bytes > 0 {
                native.push((facts.node, facts.self_bytes));
            }
        });
        let mut of_classes: HashMap<u32, u64> = HashMap::new();
        let mut classes_above: Vec<u32> = Vec::new();
        let mut left = STEPS_MAX;
        for (node, bytes) in native {
            column.total_bytes = column.total_bytes.saturating_add(bytes);
            classes_above.clear();
            let mut next = node;
            loop {
                add(&mut column.of_nodes, next, bytes);
                let class = objects.class_of(next);
                if !classes_above.contains(&class) {
                    classes_above.push(class);
                    add(&mut of_classes, class, bytes);
                }
                left = left.checked_sub(1 + classes_above.len() as u64)?;
                let dominator = objects.dominator(next);
                if dominator == next {
                    break;
                }
                next = dominator;
            }
        }
        for (number, class) in (0..).zip(objects.class_list()) {
            if let Some(&bytes) = of_classes.get(&number) {
                add(&mut column.of_classes, class.key(), bytes);
            }
        }
        (column.total_bytes > 0).then_some(column)
    }

    /// Bytes that would be freed with a node.
    pub(crate) fn of_node(&self, node: u32) -> u64 {
        self.of_nodes.get(&node).copied().unwrap_or(0)
    }

    /// Bytes that would be freed with all objects of a class together.
    pub(crate) fn of_class(&self, key: &str) -> u64 {
        self.of_classes.get(key).copied().unwrap_or(0)
    }
}

fn add<Key: std::hash::Hash + Eq>(sums: &mut HashMap<Key, u64>, key: Key, bytes: u64) {
    let sum = sums.entry(key).or_default();
    *sum = sum.saturating_add(bytes);
}
