//! Search for defects of a snapshot that reading does not show.

use crate::Snapshot;
use crate::format::Problem;
use crate::format::string_text::is_wtf8;
use crate::kinds::{EdgeKind, NodeKind};

impl Snapshot {
    /// Checks the whole snapshot. Defects found while reading come first.
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = self.problems().to_vec();
        problems.extend(self.unknown_kinds());
        problems.extend(self.unknown_edge_kinds());
        problems.extend(self.node_names_outside());
        problems.extend(self.edge_names_outside());
        problems.extend(self.strings_without_unicode());
        problems.extend(self.repeated_ids());
        problems.extend(self.bad_trace());
        problems
    }

    fn unknown_kinds(&self) -> Option<Problem> {
        let mut unknown = (0..self.node_count()).filter(|&node| self.kind(node) == NodeKind::UNKNOWN);
        let first_node = unknown.next()?;
        Some(Problem::UnknownKind { count: 1 + unknown.count() as u64, first_node })
    }

    fn unknown_edge_kinds(&self) -> Option<Problem> {
        let mut unknown = (0..self.edge_count()).filter(|&edge| self.edge_kind(edge) == EdgeKind::UNKNOWN);
        let first_edge = unknown.next()?;
        Some(Problem::UnknownEdgeKind { count: 1 + unknown.count() as u64, first_edge })
    }

    fn node_names_outside(&self) -> Option<Problem> {
        let string_count = self.strings().count();
        let mut outside = (0..self.node_count()).filter(|&node| self.name_number(node) >= string_count);
        let first = outside.next()?;
        let count = 1 + outside.count() as u64;
        Some(Problem::NameOutside { what: "node", count, first, name: self.name_number(first) })
    }

    fn edge_names_outside(&self) -> Option<Problem> {
        let string_count = self.strings().count();
        let mut outside = (0..self.edge_count()).filter(|&edge| {
            self.edge_name_number(edge) >= string_count && self.edge_kind(edge).has_string_name()
        });
        let first = outside.next()?;
        let count = 1 + outside.count() as u64;
        Some(Problem::NameOutside { what: "edge", count, first, name: self.edge_name_number(first) })
    }

    fn strings_without_unicode(&self) -> Option<Problem> {
        let strings = self.strings();
        let mut bad = (0..strings.count()).filter(|&number| !is_wtf8(strings.get(number)));
        let first = bad.next()?;
        Some(Problem::NoUnicode { count: 1 + bad.count() as u64, first })
    }

    fn repeated_ids(&self) -> Option<Problem> {
        let mut ids: Vec<u64> = (0..self.node_count()).map(|node| self.id(node)).collect();
        ids.sort_unstable();
        let mut repeated = ids.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let id = repeated.next()?;
        Some(Problem::RepeatedId { count: 1 + repeated.count() as u64, id })
    }

    fn bad_trace(&self) -> Option<Problem> {
        let trace = self.trace()?;
        let is_bad = trace.nodes.iter().any(|node| node.function_index as usize >= trace.functions.len());
        is_bad.then_some(Problem::BadTrace {
            what: "a node of the tree has a function that is not in the list",
        })
    }
}
