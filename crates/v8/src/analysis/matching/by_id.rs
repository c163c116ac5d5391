//! Objects by their ids.

use rustc_hash::FxHashMap;

use super::{HeapView, MatchedBy, Matching, NOT_THERE};
use crate::NodeKind;

/// What the ids of two snapshots have in common; only those of JavaScript's own objects, which are
/// odd.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Ids that both have.
    pub(super) both_count: u64,
    /// Those of one kind and name in both.
    pub(super) alike_count: u64,
    /// Ids of the earlier one that the later one has passed and lacks: objects that died in
    /// between.
    pub(super) died_count: u64,
    /// Ids of the earlier one that the later one has passed.
    pub(super) passed_count: u64,
    /// Ids that were given before the earlier snapshot and turn up in the later one only.
    pub(super) risen_count: u64,
    /// Ids that both have, those of other kinds and names among them.
    pub(super) found_count: u64,
    /// The earlier snapshot has the greater ids: in one numbering it is the later one.
    pub(super) is_reversed: bool,
}

/// In snapshots of one numbering all but a few in ten thousand objects with one id have one kind
/// and name; in those of two numberings a third, but up to 97 % where the heap is in the same order
/// still (Node 12 to 26, Chromium 156).
const LEAST_ALIKE_PERCENT: u64 = 99;
/// No id is given twice, so that none rises from the dead; a few are of objects that were there and
/// not shown.
const MOST_RISEN_PERMILLE: u64 = 5;
/// What a runtime makes at its start stays. One whose snapshots go on counting where the last one
/// ended (Bun) gives each object a new id each time.
const LEAST_BOTH_COUNT: u64 = 1000;
const LEAST_BOTH_PERCENT: u64 = 1;

impl Evidence {
    pub(super) fn is_one_numbering(&self) -> bool {
        self.is_in_order() || self.is_reversed && self.other_way_round().is_in_order()
    }

    /// What the same ids say of the snapshots in the opposite order: what rose has died, and the
    /// other way round.
    fn other_way_round(&self) -> Self {
        let passed_count = self.found_count + self.risen_count;
        Self { died_count: self.risen_count, risen_count: self.died_count, passed_count, ..*self }
    }

    fn is_in_order(&self) -> bool {
        let is_alike = self.alike_count * 100 >= self.both_count * LEAST_ALIKE_PERCENT;
        let is_without_risen = self.risen_count * 1000 <= self.both_count * MOST_RISEN_PERMILLE;
        // A fresh numbering has no gaps; in an old one something has always died since.
        let is_fresh = self.died_count == 0 && self.alike_count < self.both_count;
        let has_enough = self.both_count >= LEAST_BOTH_COUNT
            || self.both_count * 100 >= self.passed_count * LEAST_BOTH_PERCENT;
        is_alike && is_without_risen && !is_fresh && has_enough
    }
}

/// The matching, if the ids are of one numbering.
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
        // A damaged file may give an id twice.
        if is_same_kind && matching.later[a as usize] == NOT_THERE {
            matching.pair(a, b);
        }
        // What the embedder made changes its name: a DOM node that is taken out of its document,
        // for one.
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

/// JavaScript's own objects have odd ids.
pub(super) fn is_own_id(id: u64) -> bool {
    id % 2 == 1
}

fn greatest_own_id(heap: &impl HeapView) -> u64 {
    (0..heap.graph().node_count()).map(|node| heap.id(node)).filter(|&id| is_own_id(id)).max().unwrap_or(0)
}

/// The node of each id: own ids are given one after the other and fill a table, the others are far
/// apart.
#[derive(Debug)]
pub(super) struct OwnIds {
    /// By half of the own id.
    table: Vec<u32>,
    rest: FxHashMap<u64, u32>,
}

/// A process that lived long has given most of its ids to objects that are gone; beyond so many
/// table entries for each node a hash table is smaller.
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
