//! Rows of roots before the objects of a dump.

use heapr_v8::{EdgeKind, GraphColumns, NodeKind};

use super::texts::Texts;
use crate::dump_error::{DumpError, Result};

/// Group of references from outside, to objects by their numbers.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Native for rows that own what they lead to, synthetic for others.
    pub(crate) kind: NodeKind,
    /// Whether distances count from the row.
    pub(crate) is_owner: bool,
    pub(crate) targets: Vec<u32>,
}

/// Puts the root and its rows before the objects. The ids are left out.
pub(crate) fn with_rows(
    texts: &mut Texts,
    rows: &[Row],
    columns: GraphColumns,
    own_bytes: impl Iterator<Item = u64>,
) -> Result<GraphColumns> {
    let first_node = 1 + rows.len() as u32;
    let mut heap = GraphColumns::default();
    heap.kinds.push(NodeKind::SYNTHETIC);
    heap.names.push(0);
    heap.first_edges.push(0);
    for (number, row) in (1..).zip(rows) {
        let name = texts.number(&row.name)?;
        heap.names.push(name);
        heap.kinds.push(row.kind);
        heap.targets.push(number);
        heap.edge_names.push(if row.kind == NodeKind::NATIVE { name } else { number - 1 });
        heap.edge_kinds.push(if row.is_owner { EdgeKind::SHORTCUT } else { EdgeKind::ELEMENT });
    }
    for row in rows {
        heap.first_edges.push(heap.targets.len() as u32);
        for (position, &target) in (0..).zip(&row.targets) {
            heap.targets.push(first_node + target);
            heap.edge_names.push(position);
            heap.edge_kinds.push(EdgeKind::ELEMENT);
        }
    }
    if heap.targets.len() + columns.targets.len() >= u32::MAX as usize {
        return Err(DumpError::TooMany { what: "references" });
    }
    let first_edge = heap.targets.len() as u32;
    heap.names.extend(columns.names);
    heap.kinds.extend(columns.kinds);
    heap.first_edges.extend(columns.first_edges.iter().map(|&edge| first_edge + edge));
    heap.targets.extend(columns.targets.iter().map(|&target| first_node + target));
    heap.first_edges.push(heap.targets.len() as u32);
    heap.edge_names.extend(columns.edge_names);
    heap.edge_kinds.extend(columns.edge_kinds);
    heap.own_bytes = vec![0; first_node as usize];
    for (number, bytes) in (first_node..).zip(own_bytes) {
        let narrow = u32::try_from(bytes).unwrap_or(u32::MAX);
        if narrow == u32::MAX {
            heap.wide_bytes.insert(number, bytes);
        }
        heap.own_bytes.push(narrow);
    }
    Ok(heap)
}
