//! Native memory below the objects and classes of a heap of Python, Java or Ruby.

use std::collections::HashMap;

use heapr_v8::NodeKind;
use heapr_v8::view::Objects;

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
        let mut native = Vec::new();
        objects.visit_nodes(0..objects.node_count(), &mut |facts| {
            if facts.kind == NodeKind::NATIVE && facts.self_bytes > 0 {
                native.push((facts.node, facts.self_bytes));
            }
        });
        let total_bytes = native.iter().fold(0_u64, |sum, &(_, bytes)| sum.saturating_add(bytes));
        let mut tree = NodesAbove::of(&native, |node| objects.dominator(node));
        let of_numbers = tree.add_up(|node| objects.class_of(node));
        let mut of_classes = HashMap::new();
        for (number, class) in (0..).zip(objects.class_list()) {
            if let Some(&bytes) = of_numbers.get(&number) {
                add(&mut of_classes, class.key(), bytes);
            }
        }
        let of_nodes = tree.nodes.iter().map(|above| (above.node, above.bytes)).collect();
        (total_bytes > 0).then_some(Self { of_nodes, of_classes, total_bytes })
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

/// A native node, or one that dominates some.
#[derive(Debug)]
struct Above {
    node: u32,
    /// Native bytes of the node itself, and those below it once they are added up.
    bytes: u64,
    /// Place of its dominator; `None` for a root.
    dominator: Option<usize>,
}

/// Part of the dominator tree that has native memory. Each of its nodes is visited once, however
/// deep the tree is.
#[derive(Debug)]
struct NodesAbove {
    nodes: Vec<Above>,
}

impl NodesAbove {
    fn of(native: &[(u32, u64)], dominator_of: impl Fn(u32) -> u32) -> Self {
        let mut nodes: Vec<Above> =
            native.iter().map(|&(node, bytes)| Above { node, bytes, dominator: None }).collect();
        let mut places: HashMap<u32, usize> =
            nodes.iter().enumerate().map(|(place, above)| (above.node, place)).collect();
        // The list grows by dominators that are not in it yet.
        let mut place = 0;
        while let Some(above) = nodes.get(place) {
            let (node, dominator) = (above.node, dominator_of(above.node));
            if dominator != node {
                let next = *places.entry(dominator).or_insert(nodes.len());
                if next == nodes.len() {
                    nodes.push(Above { node: dominator, bytes: 0, dominator: None });
                }
                nodes[place].dominator = Some(next);
            }
            place += 1;
        }
        Self { nodes }
    }

    /// Adds the bytes of each node to its dominator's, from below. Returns the sums by class: of
    /// nested objects of a class the outermost one counts.
    fn add_up(&mut self, class_of: impl Fn(u32) -> u32) -> HashMap<u32, u64> {
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut pending = Vec::new();
        for (place, above) in self.nodes.iter().enumerate() {
            match above.dominator {
                Some(dominator) => below[dominator].push(place),
                None => pending.push((place, false)),
            }
        }
        let mut of_classes = HashMap::new();
        // Number of objects of each class on the way from the root.
        let mut open: HashMap<u32, u32> = HashMap::new();
        while let Some((place, is_left)) = pending.pop() {
            let Above { node, bytes, dominator } = self.nodes[place];
            let opened = open.entry(class_of(node)).or_default();
            if !is_left {
                *opened += 1;
                pending.push((place, true));
                pending.extend(below[place].iter().map(|&place| (place, false)));
                continue;
            }
            *opened -= 1;
            if *opened == 0 {
                add(&mut of_classes, class_of(node), bytes);
            }
            if let Some(dominator) = dominator {
                let sum = &mut self.nodes[dominator].bytes;
                *sum = sum.saturating_add(bytes);
            }
        }
        of_classes
    }
}

fn add<Key: std::hash::Hash + Eq>(sums: &mut HashMap<Key, u64>, key: Key, bytes: u64) {
    let sum = sums.entry(key).or_default();
    *sum = sum.saturating_add(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums by a walk up from each native node.
    fn walked(native: &[(u32, u64)], dominators: &[u32], classes: &[u32]) -> [HashMap<u32, u64>; 2] {
        let mut sums = [HashMap::new(), HashMap::new()];
        for &(mut node, bytes) in native {
            let mut seen = Vec::new();
            loop {
                add(&mut sums[0], node, bytes);
                if !seen.contains(&classes[node as usize]) {
                    seen.push(classes[node as usize]);
                    add(&mut sums[1], classes[node as usize], bytes);
                }
                let dominator = dominators[node as usize];
                if dominator == node {
                    break;
                }
                node = dominator;
            }
        }
        sums
    }

    fn added_up(native: &[(u32, u64)], dominators: &[u32], classes: &[u32]) -> [HashMap<u32, u64>; 2] {
        let mut tree = NodesAbove::of(native, |node| dominators[node as usize]);
        let of_classes = tree.add_up(|node| classes[node as usize]);
        [tree.nodes.iter().map(|above| (above.node, above.bytes)).collect(), of_classes]
    }

    #[test]
    fn sums_are_those_of_a_walk_from_each_native_node() {
        let mut seed = 7_u32;
        let mut random = |below: u32| {
            seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            (seed >> 8) % below
        };
        for _ in 0..200 {
            let count = 2 + random(60);
            let dominators: Vec<u32> =
                (0..count).map(|node| if node == 0 { 0 } else { random(node) }).collect();
            let classes: Vec<u32> = (0..count).map(|_| random(5)).collect();
            let native: Vec<(u32, u64)> = (0..count)
                .filter(|node| node % 3 == 1)
                .map(|node| (node, u64::from(1 + random(900))))
                .collect();
            let expected = walked(&native, &dominators, &classes);
            assert_eq!(added_up(&native, &dominators, &classes), expected, "{dominators:?} {classes:?}");
        }
    }

    #[test]
    fn a_chain_of_any_depth_and_a_circle_end() {
        let depth = 400_000;
        let dominators: Vec<u32> = (0..depth).map(|node: u32| node.saturating_sub(1)).collect();
        let native: Vec<(u32, u64)> = (0..depth).map(|node| (node, 1)).collect();
        let [of_nodes, of_classes] = added_up(&native, &dominators, &vec![0; depth as usize]);
        assert_eq!((of_nodes[&0], of_nodes[&(depth - 1)]), (u64::from(depth), 1));
        assert_eq!(of_classes[&0], u64::from(depth));
        // A false file may have dominators in a circle.
        assert_eq!(added_up(&[(1, 5)], &[0, 2, 1], &[0, 0, 0])[0][&1], 5);
    }
}
