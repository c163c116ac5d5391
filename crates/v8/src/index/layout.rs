//! Layout of an index file.
//!
//! ```text
//!  0      magic "heaprV8i", version u32, CRC-32 of the directory u32,
//!         offset of the directory u64, its length u64                              32 bytes, the rest of the block is zero
//!  16 KiB columns, each from a new block on: numbers of 1 or 4 bytes, little-endian
//!  ...    directory: the CRC-32 of each block (u32 each, the first block's is 0), then JSON: the snapshot's
//!         fingerprint and counts, and kind, length and first block of each column
//! ```
//!
//! The first block is written last, so that an incomplete file is not an index. A column is read by
//! position, block by block. Each block's checksum is checked before its data is used.

use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::objects::ObjectOrder;

/// Number of objects stored at each end of a list: two pages.
pub(crate) const END_ROWS: usize = 200;
/// Orders with stored ends. The order by retained bytes is missing, because the nodes by class are
/// already sorted by them.
pub(super) const ORDERS: [ObjectOrder; 4] =
    [ObjectOrder::Shallow, ObjectOrder::Id, ObjectOrder::Distance, ObjectOrder::Name];
/// Number of numbers per class: its own number, then for each order its first and its last nodes,
/// both in list order.
pub(super) const NUMBERS_OF_CLASS: usize = 1 + ORDERS.len() * 2 * END_ROWS;

/// Number of numbers per node: its own number, the start of its retainers in `RetainerOrders`, and
/// their count.
pub(super) const NUMBERS_OF_NODE: usize = 3;

/// Number of bytes with one checksum; also the least amount read.
pub(crate) const BLOCK_BYTES: usize = 16 << 10;
pub(crate) const MAGIC: [u8; 8] = *b"heaprV8i";
/// Version of the format; changes with the layout and with the meaning of any column.
pub(crate) const VERSION: u32 = 10;
pub(crate) const HEADER_BYTES: usize = 32;
/// Largest length of a directory: that of a file of terabytes.
pub(crate) const MOST_DIRECTORY_BYTES: u64 = 1 << 30;

/// Number of nodes from one entry of `EdgeSamples` to the next.
pub(crate) const EDGE_SAMPLE: usize = 1024;

macro_rules! columns {
    ($($(#[$about:meta])* $column:ident,)*) => {
        /// Contents of a column. The numbers are part of the format.
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
    /// String number of each node's name.
    Names,
    /// Id of each node; `u32::MAX` if it is in `WideIds`.
    Ids,
    /// Self size of each node; `u32::MAX` if it is in `WideSelfBytes`.
    SelfBytes,
    /// Kind (six bits) and DOM state (two bits) of each node.
    Kinds,
    /// Class of each node.
    Classes,
    /// DevTools' distance of each node, an `i32`.
    Distances,
    /// Dominator of each node.
    Dominators,
    /// Retained bytes of each node; `u32::MAX` if they are in `WideRetained`.
    Retained,
    /// Number of nodes that each node dominates, itself included.
    DominatedCounts,
    /// Allocation trace's node of each node; only if the snapshot has a trace.
    TraceNodes,
    /// First edge of each node, and the number of edges.
    FirstEdges,
    /// First entry of each node in `Retainers`, and the number of entries.
    FirstRetainers,
    /// First entry of each node in `Dominated`, and the number of entries.
    FirstDominated,
    /// Nodes, grouped by dominator.
    Dominated,
    /// Target of each edge.
    Targets,
    /// Index, or string number of the name, of each edge.
    EdgeNames,
    /// Kind of each edge.
    EdgeKinds,
    /// Edges, grouped by target, descending.
    Retainers,
    /// Lower half of each string's end.
    StringEnds,
    /// First string that ends beyond each multiple of 4 GiB.
    StringWraps,
    /// Text of all strings.
    StringText,
    /// Node, script, line and column of each location, ordered by node.
    Locations,
    /// Node and both halves of its id, for ids that need more than 32 bits.
    WideIds,
    /// Node and both halves of its self size, for sizes that need more than 32 bits.
    WideSelfBytes,
    /// Node and both halves of its retained bytes, for sizes that need more than 32 bits.
    WideRetained,
    /// Constructor location of each class: 1 if it has one, then script, line, column.
    ClassPlaces,
    /// End of each class's name in `ClassNames`.
    ClassNameEnds,
    /// Names of classes.
    ClassNames,
    /// Each plain object, and the number of its list of properties.
    Shapes,
    /// End of each list of properties in `ShapeProperties`.
    ShapeEnds,
    /// String numbers of the properties' names.
    ShapeProperties,
    /// Names and properties of interfaces, as JSON.
    Interfaces,
    /// Member "snapshot" of the snapshot file.
    Meta,
    /// Summary, as JSON.
    Summary,
    /// Paths of scripts, as JSON.
    ScriptPaths,
    /// Every 1024th entry of `FirstEdges`, the start of a search for an edge's source.
    EdgeSamples,
    /// Bounds of each class in `ClassNodes`: start of its nodes with self sizes above 0, then start
    /// of those of size 0. The number of nodes follows at the end.
    ClassBorders,
    /// Nodes by class; see [`crate::devtools::NodesByClass`].
    ClassNodes,
    /// Number of each large class, and the nodes at both ends of its lists; see
    /// [`crate::index::class_ends`].
    ClassEnds,
    /// Each node with many retainers, and the start and number of its entries in `RetainerOrders`;
    /// see [`crate::index::retainer_orders`].
    RetainerOrderRows,
    /// Edges into those nodes, in the order of the retainers view.
    RetainerOrders,
    /// Internal object, its owner, and both halves of the bytes that count for the owner.
    MovedBytes,
    /// Answers that need the whole graph, as JSON; see [`crate::analysis::StoredAnswers`].
    Answers,
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
    /// Number of bytes per value.
    pub(crate) fn element_bytes(self) -> u64 {
        match self {
            Self::Kinds
            | Self::EdgeKinds
            | Self::StringText
            | Self::ClassNames
            | Self::Interfaces
            | Self::Meta
            | Self::Summary
            | Self::ScriptPaths
            | Self::Answers => 1,
            _ => 4,
        }
    }
}

/// Location of a column in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ColumnEntry {
    pub(crate) column: Column,
    /// Number of values.
    pub(crate) count: u64,
    pub(crate) first_block: u64,
}

/// Contents of the file.
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
