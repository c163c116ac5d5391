//! What is told of many nodes at once.

use crate::{DomState, NodeKind};

/// What a walk over many nodes tells of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeFacts {
    /// The node.
    pub node: u32,
    /// What it is.
    pub kind: NodeKind,
    /// Whether it hangs in a document.
    pub dom_state: DomState,
    /// The number of its name.
    pub name_index: u32,
    /// Its class.
    pub class: u32,
    /// Its id.
    pub id: u64,
    /// Its own bytes.
    pub self_bytes: u64,
    /// What would be freed with it.
    pub retained_bytes: u64,
}

/// A number that many nodes are asked for at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeNumber {
    /// The id.
    Id,
    /// Its own bytes.
    SelfBytes,
    /// What would be freed with it.
    RetainedBytes,
    /// The number of its name.
    NameIndex,
    /// The number of its kind.
    Kind,
    /// DevTools' distance, which may be negative: as far above [`i32::MIN`] as it is.
    Distance,
}

impl NodeNumber {
    /// A distance as a number.
    pub(crate) fn of_distance(distance: i32) -> u64 {
        (i64::from(distance) - i64::from(i32::MIN)) as u64
    }

    /// The distance that a number stands for.
    pub(crate) fn to_distance(number: u64) -> i32 {
        (number as i64).saturating_add(i64::from(i32::MIN)) as i32
    }
}
