//! Export of a heap, or of the objects that one object dominates, as a graph for Graphviz or in
//! JSON.

use heapr_table::plain::is_harmless;
use std::io::{self, Write};

use heapr_graph::{DominatorTree, Dominators, retained_bytes};
use serde_json::json;

use crate::Snapshot;
use crate::devtools::keeps_alive;
use crate::kinds::EdgeKind;

/// Format of an exported graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphForm {
    /// Graphviz's DOT language.
    Dot,
    /// `heapr.heap-graph/1`: nodes and edges, one per line.
    Json,
}

/// Largest length of a label in characters; longer ones make unreadable boxes.
const LABEL_CHARS_MAX: usize = 100;

impl Snapshot {
    /// Writes the whole graph, or the nodes that `node` dominates with the edges between them.
    pub fn write_graph(&self, node: Option<u32>, form: GraphForm, out: &mut impl Write) -> io::Result<()> {
        let dominators = Dominators::of(self.graph(), self.root(), keeps_alive(self));
        let retained = retained_bytes(&dominators, |node| self.self_bytes(node));
        let tree = DominatorTree::of(&dominators);
        let is_written = |other: u32| node.is_none_or(|node| tree.is_dominated_by(other, node));
        let nodes = || (0..self.node_count()).filter(|&other| is_written(other));
        let edges = || {
            let of_node = |from: u32| self.graph().edges(from).map(move |edge| (from, edge));
            nodes().flat_map(of_node).filter(|&(_, edge)| is_written(self.graph().target(edge)))
        };
        match form {
            GraphForm::Dot => {
                writeln!(out, "digraph heap {{\n  rankdir=LR;\n  node [shape=box];")?;
                for node in nodes() {
                    let name: String = self.name_text(node).chars().take(LABEL_CHARS_MAX).collect();
                    let (id, own, all) = (self.id(node), self.self_bytes(node), retained[node as usize]);
                    let label = quoted(&format!("{name}\n@{id}: {own} B, keeps {all} B"));
                    writeln!(out, "  n{node} [label={label}];")?;
                }
                for (from, edge) in edges() {
                    let weak = if self.edge_kind(edge) == EdgeKind::WEAK { ", style=dashed" } else { "" };
                    let (label, to) = (quoted(&self.edge_name(edge)), self.graph().target(edge));
                    writeln!(out, "  n{from} -> n{to} [label={label}{weak}];")?;
                }
                writeln!(out, "}}")
            }
            GraphForm::Json => {
                write!(out, "{{\"schema\":\"heapr.heap-graph/1\",\"nodes\":[")?;
                for (number, node) in nodes().enumerate() {
                    let row = json!({
                        "id": self.id(node),
                        "kind": self.meta().node_kind_name(self.kind(node)),
                        "name": self.name_text(node),
                        "self_bytes": self.self_bytes(node),
                        "retained_bytes": retained[node as usize],
                    });
                    write!(out, "{}{row}", if number == 0 { "\n" } else { ",\n" })?;
                }
                write!(out, "],\n\"edges\":[")?;
                for (number, (from, edge)) in edges().enumerate() {
                    let row = json!({
                        "from": self.id(from),
                        "to": self.id(self.graph().target(edge)),
                        "name": self.edge_name(edge),
                        "is_weak": self.edge_kind(edge) == EdgeKind::WEAK,
                    });
                    write!(out, "{}{row}", if number == 0 { "\n" } else { ",\n" })?;
                }
                writeln!(out, "]}}")
            }
        }
    }
}

/// Returns the text as a quoted string of the DOT language.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' | '\\' => quoted.extend(['\\', sign]),
            '\n' => quoted.push_str("\\n"),
            _ if !is_harmless(sign) => quoted.push(' '),
            _ => quoted.push(sign),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_language_of_signs_means_by_them_is_quoted() {
        assert_eq!(quoted("a \"b\" \\ c\n\td"), "\"a \\\"b\\\" \\\\ c\\n d\"");
    }
}
