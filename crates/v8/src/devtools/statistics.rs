//! Statistics view: heap bytes by kind.

use crate::devtools::Heap;
use crate::devtools::name_set::NameSet;
use crate::{EdgeKind, NodeKind};

/// Bytes by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Statistics {
    /// Bytes of all nodes, and the native bytes without a node.
    pub total_bytes: u64,
    /// Bytes outside of V8's heap.
    pub native_bytes: u64,
    /// Bytes of array buffers' contents, a part of the native bytes.
    pub typed_array_bytes: u64,
    /// Bytes in V8's heap: all but the native bytes.
    pub v8_heap_bytes: u64,
    /// Bytes of compiled code.
    pub code_bytes: u64,
    /// Bytes of strings.
    pub string_bytes: u64,
    /// Bytes of arrays with their elements.
    pub js_array_bytes: u64,
    /// Bytes of V8's own objects.
    pub system_bytes: u64,
}

impl Statistics {
    /// Bytes in V8's heap of other kinds than the listed ones.
    pub fn other_js_bytes(&self) -> u64 {
        let named = self.code_bytes + self.string_bytes + self.js_array_bytes + self.system_bytes;
        self.v8_heap_bytes.saturating_sub(named)
    }

    /// Bytes outside of V8's heap, without array buffers' contents.
    pub fn other_native_bytes(&self) -> u64 {
        self.native_bytes.saturating_sub(self.typed_array_bytes)
    }
}

impl Heap {
    /// Computes the heap bytes by kind.
    pub fn statistics(&self) -> Statistics {
        let snapshot = self.snapshot();
        let buffers = NameSet::of(&snapshot.strings, |text| text == b"system / JSArrayBufferData");
        let arrays = NameSet::of(&snapshot.strings, |text| text == b"Array");
        let elements = NameSet::of(&snapshot.strings, |text| text == b"elements");
        let extra = snapshot.meta.extra_native_bytes;
        let mut found = Statistics { native_bytes: extra, total_bytes: extra, ..Statistics::default() };
        let is_shared = shared_targets(self);
        for node in 0..snapshot.node_count() {
            let bytes = snapshot.self_bytes(node);
            found.total_bytes = found.total_bytes.saturating_add(bytes);
            let name = snapshot.name_number(node);
            let sum = match snapshot.kind(node) {
                NodeKind::HIDDEN => &mut found.system_bytes,
                NodeKind::NATIVE => {
                    if buffers.contains(name) {
                        found.typed_array_bytes = found.typed_array_bytes.saturating_add(bytes);
                    }
                    &mut found.native_bytes
                }
                NodeKind::CODE => &mut found.code_bytes,
                kind if kind.is_string() => &mut found.string_bytes,
                _ if arrays.contains(name) => {
                    let mut edges = snapshot.graph.edges(node);
                    let held = edges.find(|&edge| {
                        snapshot.edge_kind(edge) == EdgeKind::INTERNAL
                            && elements.contains(snapshot.edge_name_number(edge))
                    });
                    let held = held
                        .map(|edge| snapshot.graph.target(edge))
                        .filter(|&target| is_shared[target as usize] == 1);
                    let held_bytes = held.map_or(0, |target| snapshot.self_bytes(target));
                    found.js_array_bytes = found.js_array_bytes.saturating_add(held_bytes);
                    &mut found.js_array_bytes
                }
                _ => continue,
            };
            *sum = sum.saturating_add(bytes);
        }
        found.v8_heap_bytes = found.total_bytes.saturating_sub(found.native_bytes);
        found
    }
}

/// Number of edges to each node, at most 2.
fn shared_targets(heap: &Heap) -> Vec<u8> {
    let graph = heap.snapshot().graph();
    let mut counts = vec![0u8; graph.node_count() as usize];
    for target in graph.targets() {
        let count = &mut counts[target as usize];
        *count = (*count + 1).min(2);
    }
    counts
}
