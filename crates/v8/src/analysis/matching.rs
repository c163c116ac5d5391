//! The same object in two snapshots.

use super::HeapView;

/// The ordinal of a node that the other snapshot does not have.
pub const NOT_THERE: u32 = u32::MAX;

/// Which node of one snapshot is which of another, by id.
#[derive(Debug, Clone)]
pub struct Matching {
    /// For each node of the earlier snapshot its node in the later one, or [`NOT_THERE`].
    pub later: Vec<u32>,
    /// For each node of the later snapshot its node in the earlier one, or [`NOT_THERE`].
    pub earlier: Vec<u32>,
}

impl Matching {
    /// Matches the nodes of two snapshots of one isolate.
    ///
    /// Nodes of the embedder get their ids anew now and then; one whose kind or name differs is not the same.
    pub fn of(before: &impl HeapView, after: &impl HeapView) -> Self {
        let mut old = ordinals_by_id(before);
        let mut new = ordinals_by_id(after);
        old.sort_unstable();
        new.sort_unstable();
        let mut later = vec![NOT_THERE; old.len()];
        let mut earlier = vec![NOT_THERE; new.len()];
        let pairs = heapr_graph::compare_sorted(old, new, |(id, _)| id, |(id, _)| id);
        for step in pairs {
            if let heapr_graph::Compared::Both((_, a), (_, b)) = step
                && before.kind(a) == after.kind(b)
            {
                later[a as usize] = b;
                earlier[b as usize] = a;
            }
        }
        Self { later, earlier }
    }

    /// The share of the earlier snapshot's nodes that the later one has, in percent.
    pub fn kept_percent(&self) -> u32 {
        let kept = self.later.iter().filter(|&&node| node != NOT_THERE).count() as u64;
        (kept * 100 / (self.later.len() as u64).max(1)) as u32
    }
}

fn ordinals_by_id(heap: &impl HeapView) -> Vec<(u64, u32)> {
    (0..heap.graph().node_count()).map(|node| (heap.id(node), node)).collect()
}
