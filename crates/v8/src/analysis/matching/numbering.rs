//! Check whether the ids of two populations are of one numbering, by the evidence that the matching
//! of whole heaps uses.

use super::by_id::{Evidence, OwnIds, is_own_id};
use crate::devtools::Population;

/// Ids of an earlier population, and the evidence from comparing them with a later one's.
#[derive(Debug)]
pub struct Numbering {
    ids: OwnIds,
    evidence: Evidence,
}

impl Numbering {
    /// Compares all ids of both populations.
    pub fn of(before: &Population, after: &Population) -> Self {
        let ids = OwnIds::of(before.node_count(), before.max_js_id(), |node| before.id(node));
        let is_reversed = before.max_js_id() > after.max_js_id();
        let mut evidence = Evidence { is_reversed, ..Evidence::default() };
        for node in 0..after.node_count() {
            let id = after.id(node);
            let is_own = is_own_id(id);
            let Some(earlier) = ids.get(id) else {
                evidence.risen_count += u64::from(is_own && id < before.max_js_id());
                continue;
            };
            evidence.found_count += u64::from(is_own);
            if let (true, Some(old), Some(new)) = (is_own, before.likeness(earlier), after.likeness(node)) {
                evidence.both_count += 1;
                evidence.alike_count += u64::from(old == new);
            }
        }
        let passed = (0..before.node_count()).map(|node| before.id(node));
        let passed_count = passed.filter(|&id| is_own_id(id) && id <= after.max_js_id()).count() as u64;
        evidence.passed_count = passed_count;
        evidence.died_count = passed_count.saturating_sub(evidence.found_count);
        Self { ids, evidence }
    }

    /// Whether an id means the same object in both populations.
    pub fn is_one(&self) -> bool {
        self.evidence.is_one_numbering()
    }

    /// Returns the earlier node with that id.
    pub(crate) fn earlier(&self, id: u64) -> Option<u32> {
        self.ids.get(id)
    }
}
