//! Edges: names in columns, kinds and targets in the words of the graph.

use crate::format::digits::Numbers;
use crate::format::edge_names::NameRows;
use crate::format::meta::EdgeFields;
use crate::format::row_text::RowText;
use crate::format::section::Rows;
use crate::kinds::EdgeKind;
use crate::{Error, Result};

/// Number of bits of an edge's word that hold its kind; the target is above.
pub(crate) const KIND_BITS: u32 = 4;
/// Number of nodes that a snapshot must stay below: their numbers stand above the kind.
pub(crate) const MOST_NODES: u64 = (u32::MAX >> KIND_BITS) as u64;

/// Word of an edge in the graph.
#[inline]
pub(crate) fn edge_word(kind: EdgeKind, target: u32) -> u32 {
    target << KIND_BITS | u32::from(kind.0.min(EdgeKind::UNKNOWN.0))
}

/// Turns targets into the words of the graph. Returns `None` if a target is too large.
pub(crate) fn edge_words(mut targets: Vec<u32>, kinds: impl Iterator<Item = EdgeKind>) -> Option<Vec<u32>> {
    let mut greatest = 0;
    for (word, kind) in targets.iter_mut().zip(kinds) {
        greatest = greatest.max(*word);
        *word = edge_word(kind, *word);
    }
    (u64::from(greatest) < MOST_NODES).then_some(targets)
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
    pub(crate) names: NameRows<'a>,
    pub(crate) words: &'a mut [u32],
    pub(crate) filling: &'a EdgeFilling,
}

impl Rows for EdgeRows<'_> {
    fn row_count(&self) -> usize {
        self.words.len()
    }

    fn split_at(self, count: usize) -> (Self, Self) {
        let (names, more_names) = self.names.split_at(count);
        let (words, more_words) = self.words.split_at_mut(count);
        let filling = self.filling;
        (Self { names, words, filling }, Self { names: more_names, words: more_words, filling })
    }

    fn store_common(&mut self, text: &RowText<'_>, ends: &[u32], stride: usize) -> bool {
        let fields = &self.filling.fields;
        if stride != 3 || (fields.kind, fields.name, fields.to_node) != (0, 1, 2) {
            return false;
        }
        let rows = ends.as_chunks::<3>().0.iter();
        let mut kind_of = [EdgeKind::UNKNOWN; 256];
        kind_of.iter_mut().zip(&self.filling.kinds).for_each(|(slot, &kind)| *slot = kind);
        let are_narrow = self.names.store_narrow(rows.clone().map(|row| text.number(row[1])));
        let word_ends = rows.map(|row| (kind_of[usize::from(text.digit(row[0]))], text.number(row[2])));
        let bad = store_words(self.words, word_ends, self.filling.node_stride);
        are_narrow && bad == usize::MAX && !text.is_uncommon()
    }

    fn store(self, numbers: &Numbers, stride: usize, first_row: usize) -> Result<()> {
        let fields = &self.filling.fields;
        let node_stride = self.filling.node_stride;
        let mut kind_of = [EdgeKind::UNKNOWN; 256];
        kind_of.iter_mut().zip(&self.filling.kinds).for_each(|(slot, &kind)| *slot = kind);
        let values = numbers.values();
        // Common case with a constant stride, which makes the loop several times as fast.
        let bad = if stride == 3 && (fields.kind, fields.name, fields.to_node) == (0, 1, 2) {
            let rows = values.as_chunks::<3>().0.iter();
            self.names.store(rows.clone().map(|row| row[1]), first_row);
            store_words(self.words, rows.map(|row| (kind_of[row[0].min(255) as usize], row[2])), node_stride)
        } else {
            let rows = values.chunks_exact(stride);
            self.names.store(rows.clone().map(|row| row[fields.name]), first_row);
            let ends = rows.map(|row| (kind_of[row[fields.kind].min(255) as usize], row[fields.to_node]));
            store_words(self.words, ends, node_stride)
        };
        // Handles a `to_node` of more than 32 bits. Current files have no such lists, but the rule
        // is the same.
        let mut bad = bad;
        for &(index, value) in numbers.wide() {
            let row = index / stride;
            if index % stride != fields.to_node || row >= self.words.len() {
                continue;
            }
            let target = value / u64::from(node_stride);
            if value.is_multiple_of(u64::from(node_stride)) && target < MOST_NODES {
                let kind = self.words[row] & ((1 << KIND_BITS) - 1);
                self.words[row] = (target as u32) << KIND_BITS | kind;
            } else {
                bad = bad.min(row);
            }
        }
        if bad < self.words.len() {
            let to_node = numbers.get(bad * stride + fields.to_node);
            return Err(Error::BadTarget { edge: (first_row + bad) as u64, to_node });
        }
        Ok(())
    }
}

/// Converts positions in the list of nodes to node numbers, and joins them with the kinds. Returns
/// the index of the first edge without a target node, or `usize::MAX`.
fn store_words(
    words: &mut [u32],
    ends: impl Iterator<Item = (EdgeKind, u32)> + Clone,
    node_stride: u32,
) -> usize {
    // A constant divisor becomes a multiplication.
    match node_stride {
        6 => store_words_of(words, ends, |to_node| (to_node / 6, to_node % 6 == 0)),
        7 => store_words_of(words, ends, |to_node| (to_node / 7, to_node % 7 == 0)),
        _ => store_words_of(words, ends, |to_node| {
            (to_node / node_stride, to_node.is_multiple_of(node_stride))
        }),
    }
}

#[inline(always)]
fn store_words_of(
    words: &mut [u32],
    ends: impl Iterator<Item = (EdgeKind, u32)> + Clone,
    node_of: impl Fn(u32) -> (u32, bool),
) -> usize {
    let is_good = |to_node: u32| {
        let (target, is_whole) = node_of(to_node);
        is_whole && u64::from(target) < MOST_NODES || to_node == u32::MAX
    };
    let mut are_good = true;
    for (word, (kind, to_node)) in words.iter_mut().zip(ends.clone()) {
        are_good &= is_good(to_node);
        *word = edge_word(kind, node_of(to_node).0);
    }
    if are_good {
        return usize::MAX;
    }
    let bad = ends.take(words.len()).position(|(_, to_node)| !is_good(to_node));
    bad.unwrap_or(usize::MAX)
}
