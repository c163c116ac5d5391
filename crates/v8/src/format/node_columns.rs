//! Nodes, one column per field.

use std::sync::Mutex;

use rustc_hash::FxHashMap;

use crate::Result;
use crate::format::digits::Numbers;
use crate::format::meta::NodeFields;
use crate::format::row_text::RowText;
use crate::format::section::Rows;
use crate::kinds::{DomState, NodeKind};

/// Fields of each node, indexed by its number.
///
/// ```text
///  name      u32   string number
///  id        u32   u32::MAX: see wide_ids
///  self      u32   bytes; u32::MAX: see wide_sizes
///  kind      u8    kind in the lower six bits, DOM state in the upper two
///  trace     u32   only in files of an allocation trace
/// ```
#[derive(Debug, Default)]
pub(crate) struct NodeColumns {
    pub(crate) names: Vec<u32>,
    pub(crate) kinds: Vec<u8>,
    pub(crate) trace_node_ids: Vec<u32>,
    ids: Vec<u32>,
    self_bytes: Vec<u32>,
    wide_ids: FxHashMap<u32, u64>,
    wide_sizes: FxHashMap<u32, u64>,
}

const KIND_BITS: u8 = 0x3f;
const DOM_SHIFT: u8 = 6;

impl NodeColumns {
    pub(crate) fn with_rows(count: usize, has_trace: bool) -> Self {
        Self {
            names: vec![0; count],
            kinds: vec![0; count],
            trace_node_ids: vec![0; if has_trace { count } else { 0 }],
            ids: vec![0; count],
            self_bytes: vec![0; count],
            ..Self::default()
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        for column in [&mut self.names, &mut self.ids, &mut self.self_bytes, &mut self.trace_node_ids] {
            column.truncate(count);
            column.shrink_to_fit();
        }
        self.kinds.truncate(count);
        self.kinds.shrink_to_fit();
    }

    #[inline]
    pub(crate) fn kind(&self, node: u32) -> NodeKind {
        NodeKind(self.kinds[node as usize] & KIND_BITS)
    }

    pub(crate) fn dom_state(&self, node: u32) -> DomState {
        DomState::from_number(self.kinds[node as usize] >> DOM_SHIFT)
    }

    pub(crate) fn set_dom_state(&mut self, node: u32, state: DomState) {
        let byte = &mut self.kinds[node as usize];
        *byte = *byte & KIND_BITS | (state as u8) << DOM_SHIFT;
    }

    /// Whether any node has a DOM state.
    pub(crate) fn has_dom_states(&self) -> bool {
        self.kinds.iter().fold(0, |seen, &byte| seen | byte) > KIND_BITS
    }

    #[inline]
    pub(crate) fn id(&self, node: u32) -> u64 {
        wide_or(&self.wide_ids, node, self.ids[node as usize])
    }

    #[inline]
    pub(crate) fn self_bytes(&self, node: u32) -> u64 {
        wide_or(&self.wide_sizes, node, self.self_bytes[node as usize])
    }

    pub(crate) fn set_self_bytes(&mut self, node: u32, bytes: u64) {
        let slot = &mut self.self_bytes[node as usize];
        if *slot == u32::MAX {
            self.wide_sizes.remove(&node);
        }
        *slot = u32::try_from(bytes).unwrap_or(u32::MAX);
        if *slot == u32::MAX {
            self.wide_sizes.insert(node, bytes);
        }
    }

    /// Stored ids and sizes; `u32::MAX` stands for a number in [`Self::wide_ids`] or
    /// [`Self::wide_sizes`].
    pub(crate) fn narrow(&self) -> (&[u32], &[u32]) {
        (&self.ids, &self.self_bytes)
    }

    /// Ids that need more than 32 bits, by node.
    pub(crate) fn wide_ids(&self) -> &FxHashMap<u32, u64> {
        &self.wide_ids
    }

    /// Sizes that need more than 32 bits, by node.
    pub(crate) fn wide_sizes(&self) -> &FxHashMap<u32, u64> {
        &self.wide_sizes
    }

    /// Builds the columns from parts of equal length.
    pub(crate) fn from_parts(
        names: Vec<u32>,
        kinds: Vec<u8>,
        trace_node_ids: Vec<u32>,
        (ids, wide_ids): (Vec<u32>, FxHashMap<u32, u64>),
        (self_bytes, wide_sizes): (Vec<u32>, FxHashMap<u32, u64>),
    ) -> Self {
        Self { names, kinds, trace_node_ids, ids, self_bytes, wide_ids, wide_sizes }
    }

    /// Kind in a byte of the column.
    pub(crate) fn kind_in(byte: u8) -> NodeKind {
        NodeKind(byte & KIND_BITS)
    }

    /// DOM state in a byte of the column.
    pub(crate) fn dom_state_in(byte: u8) -> DomState {
        DomState::from_number(byte >> DOM_SHIFT)
    }

    /// Returns the columns to be filled, with edge counts going to `edge_counts`.
    pub(crate) fn rows<'a>(
        &'a mut self,
        edge_counts: &'a mut [u32],
        filling: &'a NodeFilling,
    ) -> NodeRows<'a> {
        NodeRows {
            names: &mut self.names,
            kinds: &mut self.kinds,
            ids: &mut self.ids,
            self_bytes: &mut self.self_bytes,
            trace_node_ids: &mut self.trace_node_ids,
            edge_counts,
            filling,
        }
    }

    /// Takes over the large numbers that were found while the columns were filled.
    pub(crate) fn take_wide(&mut self, filling: NodeFilling) {
        let wide = filling.wide.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (node, field, value) in wide {
            let map = if field == WideField::Id { &mut self.wide_ids } else { &mut self.wide_sizes };
            map.insert(node, value);
        }
    }
}

#[inline]
fn wide_or(wide: &FxHashMap<u32, u64>, node: u32, value: u32) -> u64 {
    if value == u32::MAX { wide.get(&node).copied().unwrap_or(u64::from(u32::MAX)) } else { u64::from(value) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WideField {
    Id,
    Size,
}

/// Data that the threads share while they fill the columns.
#[derive(Debug)]
pub(crate) struct NodeFilling {
    fields: NodeFields,
    kinds: Vec<NodeKind>,
    has_trace: bool,
    wide: Mutex<Vec<(u32, WideField, u64)>>,
}

impl NodeFilling {
    pub(crate) fn new(fields: NodeFields, kinds: Vec<NodeKind>, has_trace: bool) -> Self {
        Self { fields, kinds, has_trace, wide: Mutex::default() }
    }

    /// Kind of each number in the file.
    fn kind_numbers(&self) -> [u8; 256] {
        let mut kind_of = [NodeKind::UNKNOWN.number(); 256];
        for (slot, kind) in kind_of.iter_mut().zip(&self.kinds) {
            *slot = kind.number();
        }
        kind_of
    }
}

/// Some rows of the columns.
pub(crate) struct NodeRows<'a> {
    names: &'a mut [u32],
    kinds: &'a mut [u8],
    ids: &'a mut [u32],
    self_bytes: &'a mut [u32],
    edge_counts: &'a mut [u32],
    trace_node_ids: &'a mut [u32],
    filling: &'a NodeFilling,
}

impl Rows for NodeRows<'_> {
    fn row_count(&self) -> usize {
        self.names.len()
    }

    fn split_at(self, count: usize) -> (Self, Self) {
        let (names, more_names) = self.names.split_at_mut(count);
        let (kinds, more_kinds) = self.kinds.split_at_mut(count);
        let (ids, more_ids) = self.ids.split_at_mut(count);
        let (self_bytes, more_self_bytes) = self.self_bytes.split_at_mut(count);
        let (edge_counts, more_edge_counts) = self.edge_counts.split_at_mut(count);
        let traced = if self.filling.has_trace { count } else { 0 };
        let (trace_node_ids, more_trace_node_ids) = self.trace_node_ids.split_at_mut(traced);
        let filling = self.filling;
        (
            Self { names, kinds, ids, self_bytes, edge_counts, trace_node_ids, filling },
            Self {
                names: more_names,
                kinds: more_kinds,
                ids: more_ids,
                self_bytes: more_self_bytes,
                edge_counts: more_edge_counts,
                trace_node_ids: more_trace_node_ids,
                filling,
            },
        )
    }

    fn store_common(&mut self, text: &RowText<'_>, ends: &[u32], stride: usize) -> bool {
        match stride {
            6 => self.store_rows::<6>(text, ends),
            7 => self.store_rows::<7>(text, ends),
            _ => false,
        }
    }

    fn store(self, numbers: &Numbers, stride: usize, first_row: usize) -> Result<()> {
        let fields = &self.filling.fields;
        let kind_of = self.filling.kind_numbers();
        let values = numbers.values();
        column(values, stride, fields.name, self.names);
        column(values, stride, fields.id, self.ids);
        column(values, stride, fields.self_size, self.self_bytes);
        column(values, stride, fields.edge_count, self.edge_counts);
        if let Some(field) = fields.trace_node_id.filter(|_| self.filling.has_trace) {
            column(values, stride, field, self.trace_node_ids);
        }
        for (kind, row) in self.kinds.iter_mut().zip(values.chunks_exact(stride)) {
            let state = fields.detachedness.map_or(0, |field| (row[field] as u8).min(3));
            *kind = kind_of[row[fields.kind].min(255) as usize] | state << DOM_SHIFT;
        }
        let row_count = self.names.len();
        for &(index, value) in numbers.wide() {
            let (row, field) = (index / stride, index % stride);
            let wide = match field {
                _ if row >= row_count => continue,
                field if field == fields.id => WideField::Id,
                field if field == fields.self_size => WideField::Size,
                _ => continue,
            };
            let mut all = self.filling.wide.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            all.push(((first_row + row) as u32, wide, value));
        }
        Ok(())
    }
}

impl NodeRows<'_> {
    fn store_rows<const STRIDE: usize>(&mut self, text: &RowText<'_>, ends: &[u32]) -> bool {
        let (fields, kind_of) = (&self.filling.fields, self.filling.kind_numbers());
        let rows = ends.as_chunks::<STRIDE>().0;
        common_column(text, rows, fields.id, self.ids);
        // Ids that are addresses are all too large.
        if text.is_uncommon() {
            return false;
        }
        common_column(text, rows, fields.name, self.names);
        common_column(text, rows, fields.self_size, self.self_bytes);
        common_column(text, rows, fields.edge_count, self.edge_counts);
        if let Some(field) = fields.trace_node_id.filter(|_| self.filling.has_trace) {
            common_column(text, rows, field, self.trace_node_ids);
        }
        let unkept = fields.trace_node_id.filter(|_| !self.filling.has_trace);
        for (kind, row) in self.kinds.iter_mut().zip(rows) {
            let state = fields.detachedness.map_or(0, |field| text.digit(row[field]).min(3));
            // The general method refuses a number that is too long, also where it is not kept.
            if let Some(field) = unkept {
                text.digit(row[field]);
            }
            *kind = kind_of[usize::from(text.two_digits(row[fields.kind]))] | state << DOM_SHIFT;
        }
        !text.is_uncommon()
    }
}

fn common_column<const STRIDE: usize>(
    text: &RowText<'_>,
    rows: &[[u32; STRIDE]],
    field: usize,
    into: &mut [u32],
) {
    for (slot, row) in into.iter_mut().zip(rows) {
        *slot = text.number(row[field]);
    }
}

fn column(values: &[u32], stride: usize, field: usize, into: &mut [u32]) {
    for (slot, row) in into.iter_mut().zip(values.chunks_exact(stride)) {
        *slot = row[field];
    }
}
