//! Whole heap from its index, for analyses of the whole graph. No text is parsed, and stored
//! results are read on first use.

use std::sync::Arc;

use heapr_graph::{Dominators, Graph, Retainers};

use crate::devtools::{Classes, ComputedColumns, Heap, MovedBytes};
use crate::format::{EdgeNames, KIND_BITS, Locations, NodeColumns, edge_words};
use crate::index::layout::Column;
use crate::index::stored_graph::StoredGraph;
use crate::objects::Objects;
use crate::{EdgeKind, Location, Snapshot, Strings};

impl Heap {
    /// Loads the heap of an index. Returns `None` if the index is damaged; the snapshot must then
    /// be read again.
    ///
    /// Defects of the snapshot file are only in the index's summary.
    pub fn load(stored: Arc<StoredGraph>) -> Option<Self> {
        let snapshot = stored.load_snapshot()?;
        Some(Self::from_index(snapshot, stored))
    }
}

impl StoredGraph {
    /// Returns the value, unless the index is damaged.
    fn loaded<T>(&self, value: T) -> Option<T> {
        self.damage().is_none().then_some(value)
    }

    fn load_snapshot(&self) -> Option<Snapshot> {
        let blocks = &self.blocks;
        let (nodes, edges) = std::thread::scope(|scope| {
            let edges = scope.spawn(|| {
                let names = EdgeNames::of(&blocks.all_numbers(Column::EdgeNames));
                let kinds = blocks.all_bytes(Column::EdgeKinds);
                let targets = blocks.all_numbers(Column::Targets);
                let words = edge_words(targets, kinds.into_iter().map(EdgeKind))?;
                let graph = Graph::tagged(blocks.all_numbers(Column::FirstEdges), words, KIND_BITS);
                Some((names, graph.ok()?))
            });
            let nodes = NodeColumns::from_parts(
                blocks.all_numbers(Column::Names),
                blocks.all_bytes(Column::Kinds),
                blocks.all_numbers(Column::TraceNodes),
                (blocks.all_numbers(Column::Ids), self.wide(Column::WideIds).clone()),
                (blocks.all_numbers(Column::SelfBytes), self.wide(Column::WideSelfBytes).clone()),
            );
            let strings = Strings::from_parts(
                blocks.all_bytes(Column::StringText),
                blocks.all_numbers(Column::StringEnds),
                blocks.all_numbers(Column::StringWraps),
            );
            let edges = edges.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            ((nodes, strings), edges)
        });
        let ((nodes, strings), (edge_names, graph)) = (nodes, edges?);
        let numbers = blocks.all_numbers(Column::Locations);
        let rows = numbers.as_chunks::<4>().0.iter();
        let locations = rows
            .map(|&[node, script_id, line, column]| Location { node, script_id, line, column })
            .filter(|location| location.node < self.node_count())
            .collect();
        self.loaded(Snapshot {
            meta: self.meta().clone(),
            nodes,
            edge_names,
            graph,
            root: self.root(),
            strings: strings?,
            locations: Locations::new(locations),
            trace: None,
            problems: Vec::new(),
        })
    }
}

impl ComputedColumns for StoredGraph {
    fn distances(&self) -> Option<Vec<i32>> {
        let distances = self.blocks.all_numbers(Column::Distances);
        self.loaded(distances.into_iter().map(|distance| distance as i32).collect())
    }

    fn classes(&self) -> Option<Classes> {
        let of_node = self.blocks.all_numbers(Column::Classes);
        let classes = Classes::from_parts(self.read_classes(), of_node, self.interfaces())?;
        self.loaded(classes)
    }

    fn dominators(&self) -> Option<Dominators> {
        let blocks = &self.blocks;
        let idom = blocks.all_numbers(Column::Dominators);
        let first = blocks.all_numbers(Column::FirstDominated);
        let dominated = blocks.all_numbers(Column::Dominated);
        self.loaded(Dominators::from_parts(self.root(), idom, &first, &dominated).ok()?)
    }

    fn retained(&self) -> Option<Vec<u64>> {
        let mut retained: Vec<u64> =
            self.blocks.all_numbers(Column::Retained).into_iter().map(u64::from).collect();
        for (&node, &bytes) in self.wide(Column::WideRetained) {
            *retained.get_mut(node as usize)? = bytes;
        }
        self.loaded(retained)
    }

    fn moved_bytes(&self) -> Option<Vec<MovedBytes>> {
        let numbers = self.blocks.all_numbers(Column::MovedBytes);
        let node_count = self.node_count();
        let moved = numbers.as_chunks::<4>().0.iter().map(|&[node, owner, low, high]| {
            let bytes = u64::from(low) | u64::from(high) << 32;
            (node < node_count && owner < node_count).then_some(MovedBytes { node, owner, bytes })
        });
        self.loaded(moved.collect::<Option<_>>()?)
    }

    fn retainers(&self, graph: &Graph) -> Option<Retainers> {
        let first = self.blocks.all_numbers(Column::FirstRetainers);
        let edges = self.blocks.all_numbers(Column::Retainers);
        self.loaded(Retainers::from_parts(first, edges, graph).ok()?)
    }
}
