//! Bytes of native memory below each object: what would be freed with it outside of the managed
//! heap.

use rustc_hash::FxHashMap;

use crate::NodeKind;
use crate::objects::Objects;

/// Native bytes that would be freed with each object; part of its retained bytes.
#[derive(Debug, Default)]
pub struct NativeBelow {
    bytes: FxHashMap<u32, u64>,
}

/// A node above native memory, while its sum is made.
#[derive(Debug, Default)]
struct Above {
    bytes: u64,
    /// Number of nodes directly below whose sums are still missing.
    missing_count: u32,
}

impl NativeBelow {
    /// Adds the native memory of a heap up. A heap of V8 has native nodes of its own, and gets no
    /// sums.
    pub fn of(objects: &dyn Objects) -> Self {
        let mut above: FxHashMap<u32, Above> = FxHashMap::default();
        if objects.meta().dialect.is_none() {
            return Self::default();
        }
        objects.visit_nodes(0..objects.node_count(), &mut |facts| {
            if facts.kind == NodeKind::NATIVE && facts.self_bytes > 0 {
                above.entry(facts.node).or_default().bytes = facts.self_bytes;
            }
        });
        // Each node above is met once from each node below it that counts.
        let mut pending: Vec<u32> = above.keys().copied().collect();
        while let Some(node) = pending.pop() {
            let dominator = objects.dominator(node);
            if dominator != node {
                let is_new = !above.contains_key(&dominator);
                above.entry(dominator).or_default().missing_count += 1;
                pending.extend(is_new.then_some(dominator));
            }
        }
        let is_whole = |(_, sum): &(&u32, &Above)| sum.missing_count == 0;
        let mut ready: Vec<u32> = above.iter().filter(is_whole).map(|(&node, _)| node).collect();
        while let Some(node) = ready.pop() {
            let bytes = above.get(&node).map_or(0, |sum| sum.bytes);
            let dominator = objects.dominator(node);
            let Some(sum) = above.get_mut(&dominator).filter(|_| dominator != node) else { continue };
            sum.bytes = sum.bytes.saturating_add(bytes);
            sum.missing_count -= 1;
            ready.extend((sum.missing_count == 0).then_some(dominator));
        }
        Self { bytes: above.into_iter().map(|(node, sum)| (node, sum.bytes)).collect() }
    }

    /// Whether the heap has no native memory.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Native bytes that would be freed with a node, its own included.
    pub fn bytes(&self, node: u32) -> u64 {
        self.bytes.get(&node).copied().unwrap_or(0)
    }
}
