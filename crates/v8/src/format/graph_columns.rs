//! Heaps of other languages, built in memory in the columns of a snapshot.
//!
//! A reader of a large dump fills the columns itself. The text of a snapshot would be several times
//! as large, and would have to be parsed again.

use rustc_hash::FxHashMap;
use serde_json::Value;

use heapr_graph::Graph;

use crate::format::edge_columns::{KIND_BITS, MOST_NODES, edge_words};
use crate::format::edge_names::EdgeNames;
use crate::format::locations::Locations;
use crate::format::meta::Meta;
use crate::format::node_columns::NodeColumns;
use crate::format::strings::Strings;
use crate::kinds::{EdgeKind, NodeKind};
use crate::{Error, Result, Snapshot};

/// Nodes and edges of a heap, one column per field. The root is node 0.
#[derive(Debug, Default)]
pub struct GraphColumns {
    /// String number of each node's name.
    pub names: Vec<u32>,
    /// Kind of each node.
    pub kinds: Vec<NodeKind>,
    /// Id of each node.
    pub ids: Vec<u32>,
    /// Self size of each node, in bytes; `u32::MAX` for the sizes in `wide_bytes`.
    pub own_bytes: Vec<u32>,
    /// Self sizes that 32 bits do not hold, by node.
    pub wide_bytes: FxHashMap<u32, u64>,
    /// First edge of each node, and the number of edges.
    pub first_edges: Vec<u32>,
    /// Target of each edge.
    pub targets: Vec<u32>,
    /// String number of each edge's name; of an item its position.
    pub edge_names: Vec<u32>,
    /// Kind of each edge.
    pub edge_kinds: Vec<EdgeKind>,
    /// Strings.
    pub strings: Strings,
}

impl Snapshot {
    /// Builds a snapshot. `header` is the value of `snapshot` in a file.
    ///
    /// # Errors
    /// A header or edges that cannot be true.
    pub fn of_columns(header: &Value, columns: GraphColumns) -> Result<Self> {
        let meta = Meta::parse(header.to_string().as_bytes(), 0)?;
        let kinds = columns.kinds.into_iter().map(NodeKind::number).collect();
        let nodes = NodeColumns::from_parts(
            columns.names,
            kinds,
            Vec::new(),
            (columns.ids, FxHashMap::default()),
            (columns.own_bytes, columns.wide_bytes),
        );
        let (edge_names, words) = std::thread::scope(|scope| {
            let names = columns.edge_names;
            let edge_names = scope.spawn(move || EdgeNames::of(&names));
            let words = edge_words(columns.targets, columns.edge_kinds.into_iter());
            (edge_names.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), words)
        });
        let words = words.ok_or(Error::TooMany { what: "nodes", count: MOST_NODES })?;
        Ok(Self {
            meta,
            nodes,
            edge_names,
            graph: Graph::tagged(columns.first_edges, words, KIND_BITS)?,
            root: 0,
            strings: columns.strings,
            locations: Locations::default(),
            trace: None,
            problems: Vec::new(),
        })
    }
}
