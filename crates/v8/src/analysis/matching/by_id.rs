//! Objects by their ids.

use heapr_graph::{Compared, compare_sorted};

use super::{HeapView, MatchedBy, Matching};
use crate::NodeKind;

/// What the ids of two snapshots have in common; only those of JavaScript's own objects, which are odd.
#[derive(Debug, Default)]
struct Evidence {
    /// Ids that both have.
    both_count: u64,
    /// Those of one kind and name in both.
    alike_count: u64,
    /// Ids of the earlier one that the later one has passed and lacks: objects that died in between.
    died_count: u64,
    /// Ids that were given before the earlier snapshot and turn up in the later one only.
    risen_count: u64,
}

/// In snapshots of one numbering all but a few in ten thousand objects with one id have one kind and name; in those of
/// two numberings a third, but up to 97 % where the heap is in the same order still (Node 12 to 26, Chromium 156).
const LEAST_ALIKE_PERCENT: u64 = 99;
/// No id is given twice, so that none rises from the dead; a few are of objects that were there and not shown.
const MOST_RISEN_PERMILLE: u64 = 5;

impl Evidence {
    fn is_one_numbering(&self) -> bool {
        let is_alike = self.alike_count * 100 >= self.both_count * LEAST_ALIKE_PERCENT;
        let is_without_risen = self.risen_count * 1000 <= self.both_count * MOST_RISEN_PERMILLE;
        // A fresh numbering has no gaps; in an old one something has always died since.
        let is_fresh = self.died_count == 0 && self.alike_count < self.both_count;
        is_alike && is_without_risen && !is_fresh
    }
}

/// The matching, if the ids are of one numbering.
pub(super) fn matched(before: &impl HeapView, after: &impl HeapView) -> Option<Matching> {
    let mut matching = Matching::nothing(before, after, MatchedBy::Id);
    let (old, new) = (by_id(before), by_id(after));
    let greatest =
        |ids: &[(u64, u32)]| ids.iter().rev().map(|&(id, _)| id).find(|id| id % 2 == 1).unwrap_or(0);
    let (greatest_old, greatest_new) = (greatest(&old), greatest(&new));
    let mut evidence = Evidence::default();
    for step in compare_sorted(old, new, |(id, _)| id, |(id, _)| id) {
        match step {
            Compared::Both((id, a), (_, b)) => {
                let is_same_kind = before.kind(a) == after.kind(b);
                if is_same_kind {
                    matching.pair(a, b);
                }
                // What the embedder made changes its name: a DOM node that is taken out of its document, for one.
                if id % 2 == 1 && before.kind(a) != NodeKind::NATIVE && after.kind(b) != NodeKind::NATIVE {
                    let is_same_name = before.name(a) == after.name(b);
                    evidence.both_count += 1;
                    evidence.alike_count += u64::from(is_same_kind && is_same_name);
                }
            }
            Compared::Deleted((id, _)) => evidence.died_count += u64::from(id % 2 == 1 && id < greatest_new),
            Compared::New((id, _)) => evidence.risen_count += u64::from(id % 2 == 1 && id < greatest_old),
        }
    }
    evidence.is_one_numbering().then_some(matching)
}

fn by_id(heap: &impl HeapView) -> Vec<(u64, u32)> {
    let mut nodes: Vec<(u64, u32)> =
        (0..heap.graph().node_count()).map(|node| (heap.id(node), node)).collect();
    nodes.sort_unstable();
    nodes
}
