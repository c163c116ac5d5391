//! [`Objects`] of an index file.

use std::borrow::Cow;
use std::ops::Range;

use crate::format::NodeColumns;
use crate::index::layout::Column;
use crate::index::stored_graph::StoredGraph;
use crate::index::walks::STEP;
use crate::objects::{CaptureMode, Class, NodeFacts, NodeNumber, ObjectOrder, Objects, Page, ScriptPaths};
use crate::{DomState, EdgeKind, Location, Meta, NodeKind};

impl Objects for StoredGraph {
    fn node_count(&self) -> u32 {
        self.directory.node_count
    }

    fn edge_count(&self) -> u32 {
        self.directory.edge_count
    }

    fn root(&self) -> u32 {
        self.directory.root
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn capture_mode(&self) -> CaptureMode {
        if self.directory.exposes_internals { CaptureMode::ExposeInternals } else { CaptureMode::Default }
    }

    fn kind(&self, node: u32) -> NodeKind {
        NodeColumns::kind_in(self.blocks.byte(Column::Kinds, u64::from(node)))
    }

    fn dom_state(&self, node: u32) -> DomState {
        NodeColumns::dom_state_in(self.blocks.byte(Column::Kinds, u64::from(node)))
    }

    fn name_index(&self, node: u32) -> u32 {
        self.number(Column::Names, node)
    }

    fn id(&self, node: u32) -> u64 {
        self.widened(self.number(Column::Ids, node), node, Column::WideIds)
    }

    fn node_of_id(&self, id: u64) -> Option<u32> {
        let Some(narrow) = u32::try_from(id).ok().filter(|&narrow| narrow != u32::MAX) else {
            let wide = self.wide(Column::WideIds).iter();
            return wide.filter(|&(_, &wide)| wide == id).map(|(&node, _)| node).min();
        };
        let mut ids = Vec::new();
        let mut first = 0;
        while first < self.node_count() {
            let end = first.saturating_add(STEP).min(self.node_count());
            self.blocks.read_numbers(Column::Ids, u64::from(first)..u64::from(end), &mut ids);
            if let Some(at) = ids.iter().position(|&found| found == narrow) {
                return Some(first + at as u32);
            }
            first = end;
        }
        None
    }

    fn self_bytes(&self, node: u32) -> u64 {
        self.widened(self.number(Column::SelfBytes, node), node, Column::WideSelfBytes)
    }

    fn retained_bytes(&self, node: u32) -> u64 {
        self.widened(self.number(Column::Retained, node), node, Column::WideRetained)
    }

    fn devtools_distance(&self, node: u32) -> i32 {
        self.number(Column::Distances, node) as i32
    }

    fn class_of(&self, node: u32) -> u32 {
        self.number(Column::Classes, node)
    }

    fn dominator(&self, node: u32) -> u32 {
        self.below(Column::Dominators, node, self.node_count())
    }

    fn dominated_count(&self, node: u32) -> u32 {
        self.number(Column::DominatedCounts, node)
    }

    fn dominated_by(&self, node: u32) -> Cow<'_, [u32]> {
        let row = self.row(Column::FirstDominated, Column::Dominated, node);
        Cow::Owned(self.blocks.numbers(Column::Dominated, u64::from(row.start)..u64::from(row.end)))
    }

    fn dominated_by_count(&self, node: u32) -> u32 {
        self.row(Column::FirstDominated, Column::Dominated, node).len() as u32
    }

    fn trace_node_id(&self, node: u32) -> u32 {
        if self.blocks.count(Column::TraceNodes) == 0 { 0 } else { self.number(Column::TraceNodes, node) }
    }

    fn location(&self, node: u32) -> Option<Location> {
        let count = (self.blocks.count(Column::Locations) / 4) as u32;
        let at = |row: u32, field: u32| self.number(Column::Locations, row * 4 + field);
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            match at(middle, 0) {
                found if found < node => low = middle + 1,
                _ => high = middle,
            }
        }
        (low < count && at(low, 0) == node).then(|| Location {
            node,
            script_id: at(low, 1),
            line: at(low, 2),
            column: at(low, 3),
        })
    }

    fn edges(&self, node: u32) -> Range<u32> {
        self.row(Column::FirstEdges, Column::Targets, node)
    }

    fn target(&self, edge: u32) -> u32 {
        self.below(Column::Targets, edge, self.node_count())
    }

    fn targets(&self, edges: Range<u32>) -> Vec<u32> {
        let targets = self.blocks.numbers(Column::Targets, u64::from(edges.start)..u64::from(edges.end));
        if targets.iter().any(|&target| target >= self.node_count()) {
            self.blocks.report(|| format!("{:?} at {edges:?} has no such node", Column::Targets));
            return vec![0; edges.len()];
        }
        targets
    }

    fn source(&self, edge: u32) -> u32 {
        self.edge_sources.source(&self.blocks, self.node_count(), edge)
    }

    fn edge_kind(&self, edge: u32) -> EdgeKind {
        EdgeKind(self.blocks.byte(Column::EdgeKinds, u64::from(edge)))
    }

    fn edge_name_index(&self, edge: u32) -> u32 {
        self.number(Column::EdgeNames, edge)
    }

    fn edges_into(&self, node: u32, most: usize) -> Cow<'_, [u32]> {
        let row = self.row(Column::FirstRetainers, Column::Retainers, node);
        let end = u64::from(row.end).min(u64::from(row.start).saturating_add(most as u64));
        let mut edges = self.blocks.numbers(Column::Retainers, u64::from(row.start)..end);
        if edges.iter().any(|&edge| edge >= self.edge_count()) {
            self.blocks.report(|| format!("{:?} of {node} has no such edge", Column::Retainers));
            edges.clear();
        }
        Cow::Owned(edges)
    }

    fn holders(&self, edges: &[u32]) -> Vec<(u32, EdgeKind)> {
        self.walk_holders(edges)
    }

    fn edge_name_indexes(&self, edges: &[u32]) -> Vec<u32> {
        self.walk_edge_names(edges)
    }

    fn retainers_in_order(&self, node: u32, page: Page) -> Option<(Vec<u32>, usize)> {
        self.page_of_retainers(node, page)
    }

    fn known_shapes(&self, nodes: Range<u32>) -> Option<Vec<(u32, u32)>> {
        let all = self.blocks.all_numbers(Column::Shapes);
        let rows = all.as_chunks::<2>().0;
        let rows = &rows[rows.partition_point(|row| row[0] < nodes.start)..];
        let rows = &rows[..rows.partition_point(|row| row[0] < nodes.end)];
        Some(rows.iter().map(|&[node, shape]| (node, shape)).collect())
    }

    fn string_count(&self) -> u32 {
        self.blocks.count(Column::StringEnds) as u32
    }

    fn string_bytes(&self, index: u32) -> Cow<'_, [u8]> {
        if index >= self.string_count() {
            return Cow::Borrowed(&[]);
        }
        Cow::Owned(self.blocks.bytes(Column::StringText, self.text_range(index)))
    }

    fn visit_strings(&self, numbers: Range<u32>, visit: &mut dyn FnMut(u32, &[u8])) {
        self.walk_strings(numbers, visit);
    }

    fn visit_nodes(&self, nodes: Range<u32>, visit: &mut dyn FnMut(NodeFacts)) {
        self.walk_nodes(nodes, visit);
    }

    fn visit_edges(&self, nodes: Range<u32>, visit: &mut dyn FnMut(u32, EdgeKind, u32)) {
        self.walk_edges(nodes, visit);
    }

    fn class_list(&self) -> &[Class] {
        self.classes.get_or_init(|| self.read_classes())
    }

    fn script_paths(&self) -> ScriptPaths {
        let paths = ScriptPaths::from_paths(self.json(Column::ScriptPaths));
        paths.with_maps(self.source_maps.get().cloned())
    }

    fn class_rows(&self, class: u32) -> Option<[Range<u32>; 2]> {
        // Reads the three bounds of the class.
        let at = class.saturating_mul(2);
        let borders = [at, at.saturating_add(1), at.saturating_add(2)];
        let [begin, middle, end] = borders.map(|at| self.number(Column::ClassBorders, at));
        if begin > middle || middle > end || end > self.node_count() {
            self.blocks.report(|| format!("{:?} has {begin}, {middle}, {end} at {at}", Column::ClassBorders));
            return Some([0..0, 0..0]);
        }
        Some([begin..middle, middle..end])
    }

    fn nodes_by_class(&self, rows: Range<u32>) -> Vec<u32> {
        let nodes = self.blocks.numbers(Column::ClassNodes, u64::from(rows.start)..u64::from(rows.end));
        if nodes.iter().any(|&node| node >= self.node_count()) {
            self.blocks.report(|| format!("{:?} at {rows:?} has no such node", Column::ClassNodes));
            return Vec::new();
        }
        nodes
    }

    fn class_end(&self, class: u32, order: ObjectOrder, is_start: bool) -> Option<Vec<u32>> {
        self.end_of_class(class, order, is_start)
    }

    fn numbers_of(&self, number: NodeNumber, nodes: &[u32]) -> Vec<u64> {
        self.gather(number, nodes)
    }

    fn damage(&self) -> Option<String> {
        self.blocks.damage()
    }
}
