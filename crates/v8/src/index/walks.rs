//! Scans over many nodes, edges or strings of an index: whole columns, some blocks at a time.

use std::ops::Range;

use crate::EdgeKind;
use crate::format::NodeColumns;
use crate::index::layout::Column;
use crate::index::stored_graph::StoredGraph;
use crate::objects::{NodeFacts, NodeNumber, Objects as _};

/// Number of nodes, edges or strings that a scan reads at once.
pub(super) const STEP: u32 = 1 << 16;

impl StoredGraph {
    pub(super) fn walk_strings(&self, numbers: Range<u32>, visit: &mut dyn FnMut(u32, &[u8])) {
        /// Number of text bytes read at once; a longer string is read alone.
        const TEXT_BYTES: u64 = 4 << 20;
        let (mut first, last) = (numbers.start, numbers.end.min(self.string_count()));
        let (mut ends, mut text) = (Vec::new(), Vec::new());
        while first < last {
            let end = first.saturating_add(STEP).min(last);
            self.blocks.read_numbers(Column::StringEnds, u64::from(first)..u64::from(end), &mut ends);
            let mut begin = self.text_range(first).start;
            let all: Vec<u64> =
                (first..).zip(&ends).map(|(number, &low)| self.string_end(number, low)).collect();
            let mut at = 0;
            while at < all.len() {
                let fitting =
                    all[at..].partition_point(|&end| end <= begin.saturating_add(TEXT_BYTES)).max(1);
                let text_end = all[at + fitting - 1];
                self.blocks.read_bytes(Column::StringText, begin..text_end, &mut text);
                let mut from = begin;
                for (number, &end) in (first + at as u32..).zip(&all[at..at + fitting]) {
                    let range = from.saturating_sub(begin) as usize..end.saturating_sub(begin) as usize;
                    visit(number, text.get(range).unwrap_or_default());
                    from = end;
                }
                begin = text_end;
                at += fitting;
            }
            if ends.is_empty() {
                return;
            }
            first = end;
        }
    }

    pub(super) fn walk_nodes(&self, nodes: Range<u32>, visit: &mut dyn FnMut(NodeFacts)) {
        let columns = [Column::Names, Column::Ids, Column::SelfBytes, Column::Classes, Column::Retained];
        let mut numbers: [Vec<u32>; 5] = Default::default();
        let mut kinds = Vec::new();
        let (mut first, last) = (nodes.start, nodes.end.min(self.node_count()));
        while first < last {
            let end = first.saturating_add(STEP).min(last);
            let range = u64::from(first)..u64::from(end);
            for (column, numbers) in columns.into_iter().zip(&mut numbers) {
                self.blocks.read_numbers(column, range.clone(), numbers);
            }
            self.blocks.read_bytes(Column::Kinds, range, &mut kinds);
            let [names, ids, self_bytes, classes, retained] = &numbers;
            let rows = names.iter().zip(ids).zip(self_bytes).zip(classes).zip(retained).zip(&kinds);
            for (node, (((((&name_index, &id), &self_bytes), &class), &retained), &kind)) in
                (first..).zip(rows)
            {
                visit(NodeFacts {
                    node,
                    kind: NodeColumns::kind_in(kind),
                    dom_state: NodeColumns::dom_state_in(kind),
                    name_index,
                    class,
                    id: self.widened(id, node, Column::WideIds),
                    self_bytes: self.widened(self_bytes, node, Column::WideSelfBytes),
                    retained_bytes: self.widened(retained, node, Column::WideRetained),
                });
            }
            first = end;
        }
    }

    /// Returns a number for each of some nodes. For many nodes the whole column is read, which is
    /// faster than single lookups.
    pub(super) fn gather(&self, number: NodeNumber, nodes: &[u32]) -> Vec<u64> {
        /// Number of nodes per requested one up to which the column is read: a lookup takes as long
        /// as reading some 30 numbers.
        const DENSE: usize = 32;
        let is_dense = nodes.len().saturating_mul(DENSE) >= self.node_count() as usize;
        let (column, wide) = match number {
            NodeNumber::Kind if is_dense => {
                let all = self.blocks.all_bytes(Column::Kinds);
                let kind = |&node: &u32| all.get(node as usize).copied().unwrap_or(0);
                return nodes.iter().map(|node| NodeColumns::kind_in(kind(node)).number().into()).collect();
            }
            NodeNumber::Kind => return nodes.iter().map(|&node| self.kind(node).number().into()).collect(),
            NodeNumber::Id => (Column::Ids, Column::WideIds),
            NodeNumber::SelfBytes => (Column::SelfBytes, Column::WideSelfBytes),
            NodeNumber::RetainedBytes => (Column::Retained, Column::WideRetained),
            // Columns without a wide counterpart.
            NodeNumber::NameIndex => (Column::Names, Column::Names),
            NodeNumber::Distance => (Column::Distances, Column::Distances),
        };
        let known = |narrow: u32, node: u32| match number {
            NodeNumber::NameIndex => narrow.into(),
            NodeNumber::Distance => NodeNumber::of_distance(narrow as i32),
            _ => self.widened(narrow, node, wide),
        };
        if !is_dense {
            return nodes
                .iter()
                .map(|&node| known(self.blocks.number(column, u64::from(node)), node))
                .collect();
        }
        let all = self.blocks.all_numbers(column);
        nodes.iter().map(|&node| known(all.get(node as usize).copied().unwrap_or(0), node)).collect()
    }

    pub(super) fn walk_edges(&self, nodes: Range<u32>, visit: &mut dyn FnMut(u32, EdgeKind, u32)) {
        let (mut first, last) = (nodes.start, nodes.end.min(self.node_count()));
        let (mut borders, mut names, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        while first < last {
            let end = first.saturating_add(STEP).min(last);
            self.blocks.read_numbers(Column::FirstEdges, u64::from(first)..u64::from(end) + 1, &mut borders);
            let (Some(&begin_edge), Some(&end_edge)) = (borders.first(), borders.last()) else { return };
            let mut at = 0;
            let mut edge = begin_edge;
            while edge < end_edge {
                let step_end = edge.saturating_add(STEP).min(end_edge);
                let range = u64::from(edge)..u64::from(step_end);
                self.blocks.read_numbers(Column::EdgeNames, range.clone(), &mut names);
                self.blocks.read_bytes(Column::EdgeKinds, range, &mut kinds);
                for (edge, (&name, &kind)) in (edge..).zip(names.iter().zip(&kinds)) {
                    while borders.get(at + 1).is_some_and(|&border| border <= edge) {
                        at += 1;
                    }
                    visit(first + at as u32, EdgeKind(kind), name);
                }
                edge = step_end;
            }
            first = end;
        }
    }
}
