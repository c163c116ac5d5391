//! Objects by class and fields.

use heapr_table::SortRows as _;
use rustc_hash::FxHashMap;

use super::heap_view::HeapView;
use crate::{EdgeKind, NodeKind};

/// Objects that have the same class and the same fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Class of the objects.
    pub class: String,
    /// Names of the fields, in the order of the first object found.
    pub fields: Vec<String>,
    /// Number of objects.
    pub count: u64,
    /// Sum of the objects' self sizes, in bytes.
    pub self_bytes: u64,
    /// Sum of the bytes that would be freed with each object. Memory of one object held by another
    /// of the shape counts twice.
    pub retained_bytes: u64,
    /// Node of one object.
    pub example: u32,
}

/// Largest number of fields. Objects with more are dictionaries: each would have its own shape.
const MAX_FIELDS: usize = 64;

/// Returns the `top` shapes by the bytes of their objects.
pub fn shapes(heap: &impl HeapView, top: usize) -> Vec<Shape> {
    struct Sum {
        count: u64,
        self_bytes: u64,
        retained_bytes: u64,
        example: u32,
    }
    let mut sums: FxHashMap<Box<[u32]>, Sum> = FxHashMap::default();
    let mut key = Vec::new();
    for node in 0..heap.graph().node_count() {
        if heap.kind(node) != NodeKind::OBJECT {
            continue;
        }
        field_indices(heap, node, &mut key);
        if key.is_empty() || key.len() > MAX_FIELDS {
            continue;
        }
        key.sort_unstable();
        key.push(heap.name_index(node));
        let sum = match sums.get_mut(key.as_slice()) {
            Some(sum) => sum,
            None => sums.entry(key.as_slice().into()).or_insert(Sum {
                count: 0,
                self_bytes: 0,
                retained_bytes: 0,
                example: node,
            }),
        };
        sum.count += 1;
        sum.self_bytes = sum.self_bytes.saturating_add(heap.self_bytes(node));
        sum.retained_bytes = sum.retained_bytes.saturating_add(heap.retained_bytes(node));
    }
    let mut sums: Vec<Sum> = sums.into_values().collect();
    sums.sort_rows_by_key(|sum| (std::cmp::Reverse((sum.self_bytes, sum.count)), sum.example));
    sums.truncate(top);
    sums.into_iter()
        .map(|sum| {
            field_indices(heap, sum.example, &mut key);
            Shape {
                class: heap.class_name(sum.example).into_owned(),
                fields: key.iter().map(|&index| heap.string(index).into_owned()).collect(),
                count: sum.count,
                self_bytes: sum.self_bytes,
                retained_bytes: sum.retained_bytes,
                example: sum.example,
            }
        })
        .collect()
}

fn field_indices(heap: &impl HeapView, node: u32, fields: &mut Vec<u32>) {
    fields.clear();
    for edge in heap.graph().edges(node) {
        if heap.edge_kind(edge) != EdgeKind::PROPERTY {
            continue;
        }
        let index = heap.edge_name_index(edge);
        if heap.string(index) != "__proto__" && !fields.contains(&index) {
            fields.push(index);
            if fields.len() > MAX_FIELDS {
                return;
            }
        }
    }
}
