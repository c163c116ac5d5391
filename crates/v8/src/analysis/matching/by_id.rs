//! Matching of objects by id.

use rustc_hash::FxHashMap;

use super::{HeapView, MatchedBy, Matching, NOT_THERE};
use crate::NodeKind;

/// Evidence from the ids of two snapshots for one numbering. Only JavaScript's own objects count,
/// which have odd ids.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Number of ids that both snapshots have, native nodes left out.
    pub(super) both_count: u64,
    /// Number of those ids whose nodes have the same kind and name in both.
    pub(super) alike_count: u64,
    /// Number of the earlier snapshot's ids, up to the later one's greatest, that the later one
    /// lacks: objects that died in between.
    pub(super) died_count: u64,
    /// Number of the earlier snapshot's ids that are at most the later one's greatest.
    pub(super) passed_count: u64,
    /// Number of ids below the earlier snapshot's greatest that only the later one has.
    pub(super) risen_count: u64,
    /// Number of ids that both snapshots have, native nodes included.
    pub(super) found_count: u64,
    /// True if the earlier snapshot has the greater ids: in one numbering it would be the later
    /// one.
    pub(super) is_reversed: bool,
}

/// Least share of common ids whose nodes agree in kind and name, in percent. In one numbering all
/// but a few in ten thousand agree. In two numberings a third agree, but up to 97 % if the heap has
/// the same order (Node 12 to 26, Chromium 156).
const LEAST_ALIKE_PERCENT: u64 = 99;
/// Largest number of reappearing ids per thousand common ones. An id is never given twice. A few
/// reappear because their objects existed before but were not shown.
const MOST_RISEN_PERMILLE: u64 = 5;
/// Least number of common ids, or least percentage of the ids passed, that both must have. Objects
/// made at the runtime's start stay. Bun continues numbering after each snapshot and gives every
/// object a new id.
const LEAST_BOTH_COUNT: u64 = 1000;
const LEAST_BOTH_PERCENT: u64 = 1;

impl Evidence {
    pub(super) fn is_one_numbering(&self) -> bool {
        self.is_in_order() || self.is_reversed && self.other_way_round().is_in_order()
    }

    /// Evidence for the opposite order of the snapshots: ids that reappear become ids that died,
    /// and vice versa.
    fn other_way_round(&self) -> Self {
        let passed_count = self.found_count + self.risen_count;
        Self { died_count: self.risen_count, risen_count: self.died_count, passed_count, ..*self }
    }

    fn is_in_order(&self) -> bool {
        let is_alike = self.alike_count * 100 >= self.both_count * LEAST_ALIKE_PERCENT;
        let is_without_risen = self.risen_count * 1000 <= self.both_count * MOST_RISEN_PERMILLE;
        // A fresh numbering has no gaps; in an older one some objects have always died since.
        let is_fresh = self.died_count == 0 && self.alike_count < self.both_count;
        let has_enough = self.both_count >= LEAST_BOTH_COUNT
            || self.both_count * 100 >= self.passed_count * LEAST_BOTH_PERCENT;
        is_alike && is_without_risen && !is_fresh && has_enough
    }
}

/// Matches by id. Returns `None` if the ids are of two numberings.
pub(super) fn matched(before: &impl HeapView, after: &impl HeapView) -> Option<Matching> {
    let mut matching = Matching::nothing(before, after, MatchedBy::Id);
    let (greatest_old, greatest_new) = (greatest_own_id(before), greatest_own_id(after));
    let old_nodes = OwnIds::of(before.graph().node_count(), greatest_old, |node| before.id(node));
    let mut evidence = Evidence { is_reversed: greatest_old > greatest_new, ..Evidence::default() };
    for b in 0..after.graph().node_count() {
        let id = after.id(b);
        let is_own = is_own_id(id);
        let Some(a) = old_nodes.get(id) else {
            evidence.risen_count += u64::from(is_own && id < greatest_old);
            continue;
        };
        evidence.found_count += u64::from(is_own);
        let is_same_kind = before.kind(a) == after.kind(b);
        // A damaged file may contain an id twice.
        if is_same_kind && matching.later[a as usize] == NOT_THERE {
            matching.pair(a, b);
        }
        // Native nodes change their names, for example a DOM node that is removed from its
        // document.
        if is_own && before.kind(a) != NodeKind::NATIVE && after.kind(b) != NodeKind::NATIVE {
            let is_same_name = before.name(a) == after.name(b);
            evidence.both_count += 1;
            evidence.alike_count += u64::from(is_same_kind && is_same_name);
        }
    }
    let passed = (0..before.graph().node_count()).map(|node| before.id(node));
    let passed_count = passed.filter(|&id| is_own_id(id) && id <= greatest_new).count() as u64;
    evidence.passed_count = passed_count;
    evidence.died_count = passed_count.saturating_sub(evidence.found_count);
    matching.is_reversed = evidence.is_reversed;
    evidence.is_one_numbering().then_some(matching)
}

/// Whether the id belongs to one of JavaScript's own objects, whose ids are odd.
pub(super) fn is_own_id(id: u64) -> bool {
    id % 2 == 1
}

fn greatest_own_id(heap: &impl HeapView) -> u64 {
    (0..heap.graph().node_count()).map(|node| heap.id(node)).filter(|&id| is_own_id(id)).max().unwrap_or(0)
}

/// Node of each id. Odd ids are consecutive and fill a table; even ids are sparse and go to a hash
/// table.
#[derive(Debug)]
pub(super) struct OwnIds {
    /// Nodes by half of the odd id.
    table: Vec<u32>,
    rest: FxHashMap<u64, u32>,
}

/// Largest number of table entries per node. A long-lived process has given most ids to dead
/// objects; beyond this number a hash table is smaller.
const MAX_ENTRIES_PER_NODE: u64 = 6;

impl OwnIds {
    pub(super) fn of(node_count: u32, greatest_own_id: u64, id_of: impl Fn(u32) -> u64) -> Self {
        let entry_count = greatest_own_id / 2 + 1;
        let is_dense = entry_count <= u64::from(node_count).saturating_mul(MAX_ENTRIES_PER_NODE);
        let mut table = vec![NOT_THERE; if is_dense { entry_count as usize } else { 0 }];
        let mut rest = FxHashMap::default();
        for node in 0..node_count {
            let id = id_of(node);
            match table.get_mut((id / 2) as usize) {
                Some(slot) if is_own_id(id) => *slot = node,
                _ => {
                    rest.insert(id, node);
                }
            }
        }
        Self { table, rest }
    }

    pub(super) fn get(&self, id: u64) -> Option<u32> {
        match self.table.get((id / 2) as usize) {
            Some(&node) if is_own_id(id) => (node != NOT_THERE).then_some(node),
            _ => self.rest.get(&id).copied(),
        }
    }
}
