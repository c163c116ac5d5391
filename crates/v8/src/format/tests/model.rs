//! Model of a snapshot, and its text.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{EdgeKind, NodeKind, Snapshot};

const NODE_FIELDS: [&str; 7] =
    ["type", "name", "id", "self_size", "edge_count", "trace_node_id", "detachedness"];
const EDGE_FIELDS: [&str; 3] = ["type", "name_or_index", "to_node"];

/// Snapshot as rows of fields by name; the order of fields in the file is chosen when it is
/// written.
#[derive(Debug, Clone)]
pub(super) struct Model {
    /// kind, name, id, self size, edge count, detachedness
    pub(super) nodes: Vec<[u64; 6]>,
    /// kind, name, target node
    pub(super) edges: Vec<[u64; 3]>,
    pub(super) strings: Vec<String>,
    pub(super) node_order: Vec<usize>,
    pub(super) edge_order: Vec<usize>,
    pub(super) members: Vec<usize>,
    pub(super) space: &'static str,
}

impl Model {
    pub(super) fn text(&self) -> String {
        let node_fields: Vec<&str> = self.node_order.iter().map(|&at| NODE_FIELDS[at]).collect();
        let edge_fields: Vec<&str> = self.edge_order.iter().map(|&at| EDGE_FIELDS[at]).collect();
        let types = |fields: &[&str], names: Value| -> Value {
            fields
                .iter()
                .map(|&field| if field == "type" { names.clone() } else { json!("number") })
                .collect()
        };
        let header = json!({
            "meta": {
                "node_fields": node_fields,
                "node_types": types(&node_fields, json!(["hidden", "object", "string", "synthetic", "of the future"])),
                "edge_fields": edge_fields,
                "edge_types": types(&edge_fields, json!(["element", "property", "weak"])),
                "location_fields": ["object_index", "script_id", "line", "column"],
            },
            "node_count": self.nodes.len(),
            "edge_count": self.edges.len(),
        });
        let list = |numbers: Vec<u64>| {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            format!("[{0}{1}{0}]", self.space, numbers.join(&format!("{0},{0}", self.space)))
        };
        let node_row = |node: &[u64; 6]| {
            let fields = [node[0], node[1], node[2], node[3], node[4], 0, node[5]];
            self.node_order.iter().map(|&at| fields[at]).collect::<Vec<u64>>()
        };
        let edge_row = |edge: &[u64; 3]| {
            let fields = [edge[0], edge[1], edge[2] * self.node_order.len() as u64];
            self.edge_order.iter().map(|&at| fields[at]).collect::<Vec<u64>>()
        };
        let members = [
            ("snapshot", header.to_string()),
            ("nodes", list(self.nodes.iter().flat_map(node_row).collect())),
            ("edges", list(self.edges.iter().flat_map(edge_row).collect())),
            ("strings", json!(self.strings).to_string()),
            ("unknown", json!([{ "a": [1, "]}", -2.5e3, null, true] }]).to_string()),
        ];
        let members: Vec<String> = self
            .members
            .iter()
            .map(|&at| format!("{0}\"{1}\"{0}:{0}{2}{0}", self.space, members[at].0, members[at].1))
            .collect();
        format!("{0}{{{1}}}{0}", self.space, members.join(","))
    }

    pub(super) fn assert_is(&self, snapshot: &Snapshot) {
        const KINDS: [NodeKind; 4] =
            [NodeKind::HIDDEN, NodeKind::OBJECT, NodeKind::STRING, NodeKind::SYNTHETIC];
        const EDGE_KINDS: [EdgeKind; 3] = [EdgeKind::ELEMENT, EdgeKind::PROPERTY, EdgeKind::WEAK];
        assert_eq!(snapshot.node_count() as usize, self.nodes.len());
        assert_eq!(snapshot.edge_count() as usize, self.edges.len());
        for (at, node) in self.nodes.iter().enumerate() {
            let at = at as u32;
            match KINDS.get(node[0] as usize) {
                Some(&kind) => assert_eq!(snapshot.kind(at), kind),
                None => assert_eq!(snapshot.meta().node_kind_name(snapshot.kind(at)), "of the future"),
            }
            assert_eq!(snapshot.name(at), self.strings[node[1] as usize].as_bytes());
            assert_eq!((snapshot.id(at), snapshot.self_bytes(at)), (node[2], node[3]));
            assert_eq!(snapshot.graph().edges(at).len() as u64, node[4]);
            assert_eq!(snapshot.dom_state(at) as u64, node[5]);
        }
        for (at, edge) in self.edges.iter().enumerate() {
            let at = at as u32;
            assert_eq!(snapshot.edge_kind(at), EDGE_KINDS[edge[0] as usize]);
            assert_eq!(u64::from(snapshot.edge_name_number(at)), edge[1]);
            assert_eq!(u64::from(snapshot.graph().target(at)), edge[2]);
        }
    }
}

pub(super) fn models() -> impl Strategy<Value = Model> {
    let sizes = prop_oneof![0u64..100, Just(u64::from(u32::MAX)), Just(5_000_000_000), 0u64..1 << 48];
    let node = (0u64..5, 0u64..4, prop_oneof![0u64..1 << 20, 0u64..1 << 40], sizes, 0u64..4, 0u64..3);
    let nodes = prop::collection::vec(node, 1..40);
    let edges = prop::collection::vec((0u64..3, 0u64..4, 0u64..1 << 32), 160);
    let strings = prop::collection::vec(any::<String>(), 4);
    let node_order = Just((0..7).collect::<Vec<usize>>()).prop_shuffle();
    let edge_order = Just((0..3).collect::<Vec<usize>>()).prop_shuffle();
    let members = Just((0..5).collect::<Vec<usize>>()).prop_shuffle();
    let space = prop::sample::select(vec!["", " ", "\n", "\r\n\t "]);
    (nodes, edges, strings, node_order, edge_order, members, space).prop_map(
        |(nodes, edges, strings, node_order, edge_order, members, space)| {
            let nodes: Vec<[u64; 6]> =
                nodes.into_iter().map(|(a, b, c, d, e, f)| [a, b, c, d, e, f]).collect();
            let edge_count: u64 = nodes.iter().map(|node| node[4]).sum();
            let count = nodes.len() as u64;
            let edges = edges.into_iter().take(edge_count as usize);
            let edges = edges.map(|(kind, name, target)| [kind, name, target % count]).collect();
            Model { nodes, edges, strings, node_order, edge_order, members, space }
        },
    )
}

pub(super) fn small() -> String {
    let model = Model {
        nodes: vec![[3, 0, 1, 0, 2, 0], [1, 1, 3, 16, 1, 0], [2, 2, 5, 24, 0, 0]],
        edges: vec![[0, 1, 1], [1, 3, 2], [1, 3, 2]],
        strings: ["", "Object", "text", "field"].map(str::to_owned).to_vec(),
        node_order: (0..7).collect(),
        edge_order: (0..3).collect(),
        members: vec![0, 1, 2, 4, 3],
        space: "",
    };
    model.text()
}
