//! Facts and numbers that are read for many nodes at once.

use crate::{DomState, NodeKind};

/// Facts that a scan reports for each node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeFacts {
    /// Number of the node.
    pub node: u32,
    /// Kind of the node.
    pub kind: NodeKind,
    /// State of a DOM node.
    pub dom_state: DomState,
    /// String number of the name.
    pub name_index: u32,
    /// Number of the class.
    pub class: u32,
    /// Id of the object.
    pub id: u64,
    /// Self size in bytes.
    pub self_bytes: u64,
    /// Bytes that would be freed with the node.
    pub retained_bytes: u64,
}

/// Number that can be read for many nodes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeNumber {
    /// Id of the object.
    Id,
    /// Self size in bytes.
    SelfBytes,
    /// Bytes that would be freed with the node.
    RetainedBytes,
    /// String number of the name.
    NameIndex,
    /// Number of the kind.
    Kind,
    /// DevTools' distance, which may be negative, as its difference from [`i32::MIN`].
    Distance,
}

impl NodeNumber {
    /// Encodes a distance as a number.
    pub(crate) fn of_distance(distance: i32) -> u64 {
        (i64::from(distance) - i64::from(i32::MIN)) as u64
    }

    /// Decodes a distance from its number.
    pub(crate) fn to_distance(number: u64) -> i32 {
        (number as i64).saturating_add(i64::from(i32::MIN)) as i32
    }
}
