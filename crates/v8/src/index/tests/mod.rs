//! Tests that an index gives the same answers as its heap, or reports that it is damaged.

mod same_answers;
mod stored_files;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;

use super::{IndexStore, StoredGraph};
use crate::devtools::Heap;
use crate::fingerprint::Fingerprint;
use crate::{ReadOptions, Snapshot, StoredSummary};

/// Small generator of pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Node that very many edges lead to.
fn popular(node_count: u64) -> u64 {
    node_count / 2
}

/// Snapshot with all kinds of nodes and edges, plain objects, long strings and large numbers, which
/// fills several blocks of an index.
fn text(node_count: u64, seed: u64) -> String {
    let mut dice = Dice(seed);
    let strings: Vec<String> =
        ["", "Object", "global", "__proto__", "elements", "first", "second", "system / Context"]
            .into_iter()
            .map(str::to_owned)
            .chain((0..300).map(|number| format!("name {number} {}", "x".repeat(number % 97))))
            .collect();
    let mut nodes = Vec::new();
    let mut edges = Vec::new();
    for node in 0..node_count {
        let node_kind = if node == 0 { 9 } else { dice.below(15) };
        let name = if node_kind == 3 && dice.below(2) == 0 { 1 } else { dice.below(strings.len() as u64) };
        let id = if node == 77 { 1 << 40 } else { node * 2 + 1 };
        let bytes = if node == 99 { 5_000_000_000 } else { dice.below(3) * 24 };
        let edge_count = dice.below(6) + u64::from(node == 0) * 40;
        nodes.push(json!([node_kind, name, id, bytes, edge_count, 0, dice.below(3)]));
        for edge in 0..edge_count {
            // Edge to a piece of a concatenated string, or of a random kind.
            let is_piece = node_kind == 10 && edge < 2;
            let kind = if is_piece { 3 } else { dice.below(7) };
            let name = match kind {
                _ if is_piece => 5 + edge,
                1 | 4 => edge,
                _ => dice.below(strings.len() as u64),
            };
            // Most edges lead forward, so that most nodes are reached.
            let to = if dice.below(4) == 0 {
                // Node with many referrers.
                let any = dice.below(node_count);
                if any % 4 == 1 { popular(node_count) } else { any }
            } else {
                (node + 1 + dice.below(40)).min(node_count - 1)
            };
            edges.push(json!([kind, name, to * 7]));
        }
    }
    let flat = |rows: &[serde_json::Value]| {
        rows.iter().flat_map(|row| row.as_array().unwrap().clone()).collect::<Vec<_>>()
    };
    let locations: Vec<u64> =
        (0..node_count).step_by(7).flat_map(|node| [node * 7, node % 5, node % 100, node % 80]).collect();
    let kinds = &crate::kinds::NODE_KINDS[..15];
    let header = json!({
        "meta": {
            "node_fields": ["type", "name", "id", "self_size", "edge_count", "trace_node_id", "detachedness"],
            "node_types": [kinds, "string", "number", "number", "number", "number", "number"],
            "edge_fields": ["type", "name_or_index", "to_node"],
            "edge_types": [["context", "element", "property", "internal", "hidden", "shortcut", "weak"], "string_or_number", "node"],
            "location_fields": ["object_index", "script_id", "line", "column"],
        },
        "node_count": node_count,
        "edge_count": edges.len(),
        "trace_function_count": 0,
    });
    let (nodes, edges, strings) = (json!(flat(&nodes)), json!(flat(&edges)), json!(strings));
    format!(
        "{{\"snapshot\":{header},\"nodes\":{nodes},\"edges\":{edges},\"locations\":{},\"strings\":{strings}}}",
        json!(locations)
    )
}

struct Indexed {
    _folder: tempfile::TempDir,
    file: PathBuf,
    store: IndexStore,
    heap: Arc<Heap>,
}

fn indexed(node_count: u64, seed: u64) -> Indexed {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.heapsnapshot");
    fs::write(&file, text(node_count, seed)).unwrap();
    let store = IndexStore::new(folder.path().join("cache/heapr"));
    assert!(store.open(&file).is_none());
    let read = Fingerprint::of(&file).unwrap();
    let snapshot = Snapshot::open(&file, &ReadOptions::default()).unwrap();
    let heap = Arc::new(Heap::with_summary(snapshot).unwrap());
    assert!(store.store(&file, &read, &heap, &StoredSummary::of(&heap)).unwrap());
    Indexed { _folder: folder, file, store, heap }
}

impl Indexed {
    fn open(&self) -> StoredGraph {
        self.store.open(&self.file).unwrap()
    }

    fn entry(&self) -> PathBuf {
        let mut entries = fs::read_dir(self.file.with_file_name("cache/heapr")).unwrap();
        let entry = entries.next().unwrap().unwrap().path();
        assert!(entries.next().is_none(), "nothing else is left behind");
        entry
    }
}
