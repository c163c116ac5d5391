//! The layout of an index file.
//!
//! ```text
//!  0      magic "heaprV8i", version u32, CRC-32 of the directory u32,
//!         offset of the directory u64, its length u64                              32 bytes, the rest of the block is zero
//!  16 KiB columns, each from a new block on: numbers of 1 or 4 bytes, little-endian
//!  ...    directory: the CRC-32 of each block (u32 each, the first block's is 0), then JSON: what belongs to which
//!         snapshot, and kind, length and first block of each column
//! ```
//!
//! The first block is written last, so that a file that broke off is none. A column is read by
//! position, block by block, and each block is checked before anything of it is believed.

use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::objects::ObjectOrder;

/// Objects that are kept at each end: two pages of a list.
pub(crate) const END_ROWS: usize = 200;
/// By retained bytes the nodes by class are sorted as they are.
pub(super) const ORDERS: [ObjectOrder; 4] =
    [ObjectOrder::Shallow, ObjectOrder::Id, ObjectOrder::Distance, ObjectOrder::Name];
/// Numbers for each class: its own, then in each order its first nodes and its last ones, both as
/// the list has them.
pub(super) const NUMBERS_OF_CLASS: usize = 1 + ORDERS.len() * 2 * END_ROWS;

/// Numbers for each node: its own, where its retainers begin in `RetainerOrders`, and how many they
/// are.
pub(super) const NUMBERS_OF_NODE: usize = 3;

/// Bytes that are checked together, and that are read at least.
pub(crate) const BLOCK_BYTES: usize = 16 << 10;
pub(crate) const MAGIC: [u8; 8] = *b"heaprV8i";
/// Changes with the layout and with the meaning of any column.
pub(crate) const VERSION: u32 = 7;
pub(crate) const HEADER_BYTES: usize = 32;
/// A directory is a few bytes for each block of the file; this one would be of a file of terabytes.
pub(crate) const MOST_DIRECTORY_BYTES: u64 = 1 << 30;

/// Nodes from one of `EdgeSamples` to the next.
pub(crate) const EDGE_SAMPLE: usize = 1024;

macro_rules! columns {
    ($($(#[$about:meta])* $column:ident,)*) => {
        /// What a column holds. The numbers are part of the format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(into = "u32", try_from = "u32")]
        #[repr(u32)]
        pub(crate) enum Column {
            $($(#[$about])* $column,)*
        }

        const ALL: &[Column] = &[$(Column::$column,)*];
    };
}

columns! {
    /// Of each node: the number of its name.
    Names,
    /// Its id; `u32::MAX` where it is in `WideIds`.
    Ids,
    /// Its own bytes; likewise.
    SelfBytes,
    /// Its kind in six bits and its DOM state in two.
    Kinds,
    /// Its class.
    Classes,
    /// DevTools' distance, an `i32`.
    Distances,
    /// Its dominator.
    Dominators,
    /// What would be freed with it; `u32::MAX` where it is in `WideRetained`.
    Retained,
    /// How many nodes it dominates, itself included.
    DominatedCounts,
    /// The node of the allocation trace; only where there is one.
    TraceNodes,
    /// The first edge of each node, and the count of edges.
    FirstEdges,
    /// The first of each node in `Retainers`, and their count.
    FirstRetainers,
    /// The first of each node in `Dominated`, and their count.
    FirstDominated,
    /// Nodes by their dominator.
    Dominated,
    /// Of each edge: where it goes.
    Targets,
    /// Its index, or the number of its name.
    EdgeNames,
    /// Its kind.
    EdgeKinds,
    /// Edges by where they go, descending.
    Retainers,
    /// Of each string: the lower half of where its text ends.
    StringEnds,
    /// The first string that ends behind each multiple of 4 GiB.
    StringWraps,
    /// The text of all strings.
    StringText,
    /// Node, script, line, column of each location, ordered by node.
    Locations,
    /// Node, and both halves of its number.
    WideIds,
    /// Likewise.
    WideSelfBytes,
    /// Likewise.
    WideRetained,
    /// Of each class: 1 if it has a place, script, line, column.
    ClassPlaces,
    /// Where its name ends in `ClassNames`.
    ClassNameEnds,
    /// The names of classes.
    ClassNames,
    /// Each plain object, and the number of its list of properties.
    Shapes,
    /// Where each list of properties ends in `ShapeProperties`.
    ShapeEnds,
    /// Numbers of names.
    ShapeProperties,
    /// Names and properties of interfaces, as JSON.
    Interfaces,
    /// The snapshot's own member "snapshot".
    Meta,
    /// The summary, as JSON.
    Summary,
    /// The paths of scripts, as JSON.
    ScriptPaths,
    /// Every 1024th of `FirstEdges`: where to look for the node that an edge comes from.
    EdgeSamples,
    /// Of each class: where its nodes with bytes of their own begin in `ClassNodes`, and those
    /// without; and the count of nodes.
    ClassBorders,
    /// Nodes by their class: see [`crate::devtools::NodesByClass`].
    ClassNodes,
    /// Of each large class: its number, and the nodes at both ends of its lists: see
    /// [`crate::index::class_ends`].
    ClassEnds,
    /// Of each node with many retainers: its number, and where they begin in `RetainerOrders` and
    /// how many: see [`crate::index::retainer_orders`].
    RetainerOrderRows,
    /// Their edges, in the order of the retainers view.
    RetainerOrders,
    /// An inner object, its owner, and both halves of its bytes, which count for that.
    MovedBytes,
}

pub(crate) const COLUMN_COUNT: usize = ALL.len();

impl From<Column> for u32 {
    fn from(column: Column) -> Self {
        column as u32
    }
}

impl TryFrom<u32> for Column {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        ALL.get(number as usize).copied().ok_or_else(|| format!("there is no column {number}"))
    }
}

impl Column {
    /// Bytes of one number.
    pub(crate) fn element_bytes(self) -> u64 {
        match self {
            Self::Kinds
            | Self::EdgeKinds
            | Self::StringText
            | Self::ClassNames
            | Self::Interfaces
            | Self::Meta
            | Self::Summary
            | Self::ScriptPaths => 1,
            _ => 4,
        }
    }
}

/// Where a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ColumnEntry {
    pub(crate) column: Column,
    /// Numbers in it.
    pub(crate) count: u64,
    pub(crate) first_block: u64,
}

/// What the file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Directory {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) node_count: u32,
    pub(crate) edge_count: u32,
    pub(crate) root: u32,
    pub(crate) exposes_internals: bool,
    pub(crate) columns: Vec<ColumnEntry>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_has_its_number() {
        for (number, column) in ALL.iter().copied().enumerate() {
            assert_eq!(column as usize, number);
            assert_eq!(Column::try_from(number as u32), Ok(column));
        }
        assert!(Column::try_from(COLUMN_COUNT as u32).is_err());
    }
}
