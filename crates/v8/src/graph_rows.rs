//! Rows of V8's format of heap snapshots, for heaps that are not V8's.

use std::io::{self, Write};

use crate::format::NODE_FIELDS;

/// Index of the string kind among the kinds in the header.
pub const STRING: u32 = 2;
/// Index of the kind of objects.
pub const OBJECT: u32 = 3;
/// Index of the kind of functions.
pub const CLOSURE: u32 = 5;
/// Index of the kind of native memory.
pub const NATIVE: u32 = 8;
/// Index of the kind of roots.
pub const SYNTHETIC: u32 = 9;
/// Index of the kind of variables among the kinds of edges.
pub const CONTEXT: u32 = 0;
/// Index of the kind of items.
pub const ELEMENT: u32 = 1;
/// Index of the kind of attributes.
pub const PROPERTY: u32 = 2;
/// Index of the kind of the runtime's own fields.
pub const INTERNAL: u32 = 3;
/// Index of the kind of the root's edges to what the program owns.
pub const SHORTCUT: u32 = 5;
/// Index of the kind of references that hold nothing.
pub const WEAK: u32 = 6;
/// Writes a node: kind, name, id, self size, number of edges.
///
/// # Errors
/// Those of `out`.
pub fn node(out: &mut impl Write, is_first: bool, row: [u64; 5]) -> io::Result<()> {
    let [kind, name, id, self_bytes, edge_count] = row;
    let comma = if is_first { "" } else { "\n," };
    write!(out, "{comma}{kind},{name},{id},{self_bytes},{edge_count},0,0")
}

/// Writes an edge: kind, name, number of the target.
///
/// # Errors
/// Those of `out`.
pub fn edge(out: &mut impl Write, is_first: bool, [kind, name, target]: [u64; 3]) -> io::Result<()> {
    let comma = if is_first { "" } else { "\n," };
    write!(out, "{comma}{kind},{name},{}", target * NODE_FIELDS)
}
