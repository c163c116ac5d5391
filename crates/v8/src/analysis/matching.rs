//! Matching of objects between two snapshots.
//!
//! V8 gives every object an id that is stable while the inspector stays connected. A snapshot over
//! another connection, or of another process, numbers all objects anew. Such ids would pair
//! unrelated objects. Matching therefore checks whether the ids can be of one numbering. If they
//! cannot, objects are matched by the path that leads to them.

mod by_address;
mod by_id;
mod by_place;
mod numbering;
mod refilled;
mod successors;

pub use numbering::Numbering;

use super::HeapView;

/// Stands for the node of an object that the other snapshot lacks.
pub(crate) const NOT_THERE: u32 = u32::MAX;

/// Method by which objects were matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchedBy {
    /// Matched by ids, which belong to one numbering.
    Id,
    /// Matched by address, class, and contents that never change, where nothing moves.
    Address,
    /// Matched by the names on the path from the root, because the ids are of two numberings.
    Place,
}

impl MatchedBy {
    /// Name in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Address => "address",
            Self::Place => "place",
        }
    }
}

/// Pairs of nodes that are the same object in two snapshots.
#[derive(Debug, Clone)]
pub struct Matching {
    /// For each node of the earlier snapshot its node in the later one, or [`NOT_THERE`].
    pub later: Vec<u32>,
    /// For each node of the later snapshot its node in the earlier one, or [`NOT_THERE`].
    pub earlier: Vec<u32>,
    /// Method by which the pairs were found.
    pub matched_by: MatchedBy,
    /// True if the ids show that the snapshots are given in the wrong order.
    pub is_reversed: bool,
}

impl Matching {
    /// Matches the nodes of two snapshots.
    pub fn of(before: &impl HeapView, after: &impl HeapView) -> Self {
        if let Some(matching) = by_address::matched(before, after) {
            return matching;
        }
        // Objects that move have other ids in each snapshot; numbers are no addresses.
        if before.meta().objects_move() || after.meta().objects_move() {
            return by_place::matched(before, after);
        }
        by_id::matched(before, after).unwrap_or_else(|| by_place::matched(before, after))
    }

    /// Matches the nodes by their addresses, where nothing moves, else by their positions in the
    /// graph. Numbers of a numbering are ignored.
    pub(crate) fn by_graph(before: &impl HeapView, after: &impl HeapView) -> Self {
        by_address::matched(before, after).unwrap_or_else(|| by_place::matched(before, after))
    }

    /// Nodes of the later snapshot that were matched by address and class, in ascending order. They
    /// refer to nothing of their own that the earlier ones referred to.
    pub(crate) fn refilled(&self, before: &impl HeapView, after: &impl HeapView) -> Vec<u32> {
        refilled::refilled(before, after, self)
    }

    /// Share of the earlier snapshot's nodes that the later one has, in percent.
    pub fn kept_percent(&self) -> u32 {
        let kept = self.later.iter().filter(|&&node| node != NOT_THERE).count() as u64;
        (kept * 100 / (self.later.len() as u64).max(1)) as u32
    }

    /// Matching of a snapshot with itself.
    pub(super) fn identity(node_count: u32) -> Self {
        let all: Vec<u32> = (0..node_count).collect();
        Self { later: all.clone(), earlier: all, matched_by: MatchedBy::Id, is_reversed: false }
    }

    fn nothing(before: &impl HeapView, after: &impl HeapView, matched_by: MatchedBy) -> Self {
        Self {
            later: vec![NOT_THERE; before.graph().node_count() as usize],
            earlier: vec![NOT_THERE; after.graph().node_count() as usize],
            matched_by,
            is_reversed: false,
        }
    }

    fn pair(&mut self, before: u32, after: u32) {
        self.later[before as usize] = after;
        self.earlier[after as usize] = before;
    }
}
