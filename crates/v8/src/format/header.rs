//! Header of the snapshots that heapr writes.

use serde_json::json;

use crate::kinds::EDGE_KINDS;

/// Number of numbers in a node's row: kind, name, id, self size, number of edges, two unused ones.
pub const NODE_FIELDS: u64 = 7;

/// Returns the value of `snapshot` in a file with the usual fields. `node_kinds`: names of the
/// kinds of nodes, by number.
#[must_use]
pub fn snapshot_header(node_kinds: &[&str], node_count: u64, edge_count: u64) -> serde_json::Value {
    // The last kind is DevTools' own, and never in a file.
    let [edge_kinds @ .., _] = &EDGE_KINDS;
    json!({
        "meta": {
            "node_fields": ["type", "name", "id", "self_size", "edge_count", "trace_node_id", "detachedness"],
            "node_types": [node_kinds, "string", "number", "number", "number", "number", "number"],
            "edge_fields": ["type", "name_or_index", "to_node"],
            "edge_types": [edge_kinds, "string_or_number", "node"],
            "trace_function_info_fields": ["function_id", "name", "script_name", "script_id", "line", "column"],
            "trace_node_fields": ["id", "function_info_index", "count", "size", "children"],
            "sample_fields": ["timestamp_us", "last_assigned_id"],
            "location_fields": ["object_index", "script_id", "line", "column"],
        },
        "node_count": node_count,
        "edge_count": edge_count,
        "trace_function_count": 0,
    })
}
