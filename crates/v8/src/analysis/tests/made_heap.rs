//! Heap that a test builds node by node, in the form that V8 would write.

use serde_json::json;

use crate::devtools::Heap;
use crate::kinds::NODE_KINDS;
use crate::{ReadOptions, Snapshot};

const EDGE_KINDS: [&str; 7] = ["context", "element", "property", "internal", "hidden", "shortcut", "weak"];

/// Nodes in order; the first is the root.
#[derive(Debug)]
pub(super) struct MadeHeap {
    strings: Vec<String>,
    /// Kind, name, id, bytes, detachedness.
    nodes: Vec<(usize, usize, u64, u64, u64)>,
    /// Source, kind, name or index, target.
    edges: Vec<(u32, usize, usize, u32)>,
    /// Node, number of the script, line.
    locations: Vec<(u32, usize, u32)>,
    scripts: Vec<String>,
    /// Member of the header that describes a heap of another language.
    dialect: Option<serde_json::Value>,
}

/// Number of a node that the heap leaves out.
const LEFT_OUT: u32 = u32::MAX;

impl MadeHeap {
    pub(super) fn new() -> Self {
        let mut heap = Self {
            strings: vec!["<dummy>".to_owned()],
            nodes: Vec::new(),
            edges: Vec::new(),
            locations: Vec::new(),
            scripts: Vec::new(),
            dialect: None,
        };
        heap.node_with_id("synthetic", "", 0, 1, false);
        heap
    }

    pub(super) fn node(&mut self, kind: &str, name: &str, bytes: u64) -> u32 {
        let id = 2 * self.nodes.len() as u64 + 9;
        self.node_with_id(kind, name, bytes, id, false)
    }

    pub(super) fn node_with_id(
        &mut self,
        kind: &str,
        name: &str,
        bytes: u64,
        id: u64,
        is_left_out: bool,
    ) -> u32 {
        if is_left_out {
            return LEFT_OUT;
        }
        let kind = NODE_KINDS.iter().position(|&known| known == kind).expect("a kind of V8's");
        let name = self.string(name);
        self.nodes.push((kind, name, id, bytes, 0));
        self.nodes.len() as u32 - 1
    }

    /// Makes it a heap whose ids are addresses, with contents from bit 47 on.
    pub(super) fn with_addresses(mut self) -> Self {
        self.dialect = Some(json!({"runtime": "made", "ids": "addresses", "identity_bit": 47}));
        self
    }

    /// Makes it a heap of Java with tables.
    pub(super) fn with_tables(mut self, collections: &[&str]) -> Self {
        let table = json!({"header_bytes": 16, "slot_bytes": 4});
        self.dialect = Some(
            json!({"runtime": "made", "language": "java", "ids": "positions", "table": table, "collections": collections}),
        );
        self
    }

    pub(super) fn detached(&mut self, name: &str, bytes: u64) -> u32 {
        let node = self.node("native", name, bytes);
        self.nodes[node as usize].4 = 2;
        node
    }

    /// Sets the source location where an object was constructed or a function is defined.
    pub(super) fn place(&mut self, node: u32, script: &str, line: u32) {
        let known = self.scripts.iter().position(|known| known == script);
        let number = known.unwrap_or_else(|| {
            self.scripts.push(script.to_owned());
            // Only functions lead to the paths of scripts.
            let function = self.node("closure", "", 0);
            let shared = self.node("code", "", 0);
            let script = self.node("code", script, 0);
            self.edge(function, "internal", "shared", shared);
            self.edge(shared, "internal", "script", script);
            self.locations.push((function, self.scripts.len() - 1, 0));
            self.scripts.len() - 1
        });
        self.locations.push((node, number, line));
    }

    /// Adds an edge; for elements the name is the index.
    pub(super) fn edge(&mut self, from: u32, kind: &str, name: &str, to: u32) {
        if from == LEFT_OUT || to == LEFT_OUT {
            return;
        }
        let kind_number = EDGE_KINDS.iter().position(|&known| known == kind).expect("a kind of V8's");
        let name = match kind {
            "element" | "hidden" => name.parse().expect("an index"),
            _ => self.string(name),
        };
        self.edges.push((from, kind_number, name, to));
    }

    fn string(&mut self, text: &str) -> usize {
        // A map would be faster. Long lists mostly repeat the last string.
        if self.strings.last().is_some_and(|last| last == text) {
            return self.strings.len() - 1;
        }
        if let Some(at) = self.strings.iter().take(64).position(|known| known == text) {
            return at;
        }
        self.strings.push(text.to_owned());
        self.strings.len() - 1
    }

    /// Writes the heap and reads it again with `thread_count` threads.
    pub(super) fn open(mut self, thread_count: usize) -> Heap {
        self.edges.sort_by_key(|&(from, ..)| from);
        let mut edge_counts = vec![0u32; self.nodes.len()];
        for &(from, ..) in &self.edges {
            edge_counts[from as usize] += 1;
        }
        let nodes: Vec<u64> = self
            .nodes
            .iter()
            .zip(&edge_counts)
            .flat_map(|(&(kind, name, id, bytes, detachedness), &edge_count)| {
                [kind as u64, name as u64, id, bytes, u64::from(edge_count), 0, detachedness]
            })
            .collect();
        let edges: Vec<u64> = self
            .edges
            .iter()
            .flat_map(|&(_, kind, name, to)| [kind as u64, name as u64, u64::from(to) * 7])
            .collect();
        let locations: Vec<u64> = self
            .locations
            .iter()
            .flat_map(|&(node, script, line)| [u64::from(node) * 7, script as u64 + 1, u64::from(line), 0])
            .collect();
        let fields = ["type", "name", "id", "self_size", "edge_count", "trace_node_id", "detachedness"];
        let (node_types, edge_types) =
            (json!([NODE_KINDS, "string"]), json!([EDGE_KINDS, "string_or_number", "node"]));
        let meta = json!({
            "node_fields": fields,
            "node_types": node_types,
            "edge_fields": ["type", "name_or_index", "to_node"],
            "edge_types": edge_types,
            "location_fields": ["object_index", "script_id", "line", "column"],
        });
        let (node_count, edge_count) = (self.nodes.len(), self.edges.len());
        let mut head = json!({ "meta": meta, "node_count": node_count, "edge_count": edge_count, "trace_function_count": 0 });
        if let Some(dialect) = self.dialect {
            head["heapr"] = dialect;
        }
        // The members have V8's order; serde_json would sort the keys.
        let text = format!(
            "{{\"snapshot\":{head},\"nodes\":{},\"edges\":{},\"trace_function_infos\":[],\"trace_tree\":[],\
             \"samples\":[],\"locations\":{},\"strings\":{}}}",
            json!(nodes),
            json!(edges),
            json!(locations),
            json!(self.strings)
        );
        let options = ReadOptions { thread_count, ..ReadOptions::default() };
        let snapshot = Snapshot::read(std::io::Cursor::new(text.into_bytes()), &options).expect("a snapshot");
        Heap::with_summary(snapshot).expect("a heap")
    }
}
