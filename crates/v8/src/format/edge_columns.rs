//! Edges, one column per field.

use crate::format::digits::Numbers;
use crate::format::meta::EdgeFields;
use crate::format::section::Rows;
use crate::kinds::EdgeKind;
use crate::{Error, Result};

/// Fields of each edge, indexed by its number; the graph holds the targets.
#[derive(Debug, Default)]
pub(crate) struct EdgeColumns {
    /// Number of a string, or index of an element.
    pub(crate) names: Vec<u32>,
    pub(crate) kinds: Vec<u8>,
}

impl EdgeColumns {
    #[inline]
    pub(crate) fn kind(&self, edge: u32) -> EdgeKind {
        EdgeKind(self.kinds[edge as usize])
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        self.names.truncate(count);
        self.names.shrink_to_fit();
        self.kinds.truncate(count);
        self.kinds.shrink_to_fit();
    }
}

/// Data that the threads share while they fill the columns.
#[derive(Debug)]
pub(crate) struct EdgeFilling {
    fields: EdgeFields,
    kinds: Vec<EdgeKind>,
    node_stride: u32,
}

impl EdgeFilling {
    pub(crate) fn new(fields: EdgeFields, kinds: Vec<EdgeKind>, node_stride: usize) -> Self {
        Self { fields, kinds, node_stride: node_stride as u32 }
    }
}

/// Some rows of the columns.
pub(crate) struct EdgeRows<'a> {
    pub(crate) names: &'a mut [u32],
    pub(crate) kinds: &'a mut [u8],
    pub(crate) targets: &'a mut [u32],
    pub(crate) filling: &'a EdgeFilling,
}

impl Rows for EdgeRows<'_> {
    fn row_count(&self) -> usize {
        self.names.len()
    }

    fn split_at(self, count: usize) -> (Self, Self) {
        let (names, more_names) = self.names.split_at_mut(count);
        let (kinds, more_kinds) = self.kinds.split_at_mut(count);
        let (targets, more_targets) = self.targets.split_at_mut(count);
        let filling = self.filling;
        (
            Self { names, kinds, targets, filling },
            Self { names: more_names, kinds: more_kinds, targets: more_targets, filling },
        )
    }

    fn store(self, numbers: &Numbers, stride: usize, first_row: usize) -> Result<()> {
        let fields = &self.filling.fields;
        let mut kind_of = [EdgeKind::UNKNOWN.0; 256];
        for (slot, kind) in kind_of.iter_mut().zip(&self.filling.kinds) {
            *slot = kind.0;
        }
        let values = numbers.values();
        // Common case with a constant stride, which makes the loop several times as fast.
        let bad = if stride == 3 && (fields.kind, fields.name, fields.to_node) == (0, 1, 2) {
            let rows = values.as_chunks::<3>().0;
            for ((kind, name), &[row_kind, row_name, _]) in self.kinds.iter_mut().zip(self.names).zip(rows) {
                *kind = kind_of[row_kind.min(255) as usize];
                *name = row_name;
            }
            store_targets(self.targets, rows.iter().map(|row| row[2]), self.filling.node_stride)
        } else {
            let rows = values.chunks_exact(stride);
            for ((kind, name), row) in self.kinds.iter_mut().zip(self.names).zip(rows.clone()) {
                *kind = kind_of[row[fields.kind].min(255) as usize];
                *name = row[fields.name];
            }
            store_targets(self.targets, rows.map(|row| row[fields.to_node]), self.filling.node_stride)
        };
        // Handles a `to_node` of more than 32 bits. Current files have no such lists, but the rule
        // is the same.
        let mut bad = bad;
        for &(index, value) in numbers.wide() {
            if index % stride != fields.to_node || index / stride >= self.targets.len() {
                continue;
            }
            let ordinal = value / u64::from(self.filling.node_stride);
            match u32::try_from(ordinal) {
                Ok(ordinal) if value.is_multiple_of(u64::from(self.filling.node_stride)) => {
                    self.targets[index / stride] = ordinal;
                }
                _ => bad = bad.min(index / stride),
            }
        }
        if bad < self.targets.len() {
            let to_node = numbers.get(bad * stride + fields.to_node);
            return Err(Error::BadTarget { edge: (first_row + bad) as u64, to_node });
        }
        Ok(())
    }
}

/// Converts positions in the list of nodes to node numbers. Returns the index of the first edge
/// without a target node, or `usize::MAX`.
fn store_targets(
    targets: &mut [u32],
    to_nodes: impl Iterator<Item = u32> + Clone,
    node_stride: u32,
) -> usize {
    match node_stride {
        6 => store_targets_of::<6>(targets, to_nodes),
        7 => store_targets_of::<7>(targets, to_nodes),
        _ => {
            let mut is_good = true;
            for (target, to_node) in targets.iter_mut().zip(to_nodes.clone()) {
                *target = to_node / node_stride;
                is_good &= *target * node_stride == to_node || to_node == u32::MAX;
            }
            first_bad(is_good, to_nodes, node_stride)
        }
    }
}

/// Converts with a constant stride: the compiler turns the division into a multiplication.
fn store_targets_of<const STRIDE: u32>(
    targets: &mut [u32],
    to_nodes: impl Iterator<Item = u32> + Clone,
) -> usize {
    let mut is_good = true;
    for (target, to_node) in targets.iter_mut().zip(to_nodes.clone()) {
        *target = to_node / STRIDE;
        is_good &= *target * STRIDE == to_node || to_node == u32::MAX;
    }
    first_bad(is_good, to_nodes, STRIDE)
}

fn first_bad(is_good: bool, mut to_nodes: impl Iterator<Item = u32>, stride: u32) -> usize {
    if is_good {
        return usize::MAX;
    }
    to_nodes.position(|to_node| !to_node.is_multiple_of(stride) && to_node != u32::MAX).unwrap_or(usize::MAX)
}
