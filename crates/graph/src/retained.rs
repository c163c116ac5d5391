//! Retained sizes: bytes that would be freed with a node.

use crate::Dominators;

/// Returns for each node the sum of `self_bytes` over all nodes that it dominates, itself included.
///
/// Sums are 64 bits wide and saturate.
pub fn retained_bytes(dominators: &Dominators, self_bytes: impl Fn(u32) -> u64) -> Vec<u64> {
    let mut retained: Vec<u64> = (0..dominators.idoms().len() as u32).map(self_bytes).collect();
    for &node in dominators.order()[1..].iter().rev() {
        let own = retained[node as usize];
        let sum = &mut retained[dominators.idom(node) as usize];
        *sum = sum.saturating_add(own);
    }
    retained
}
