//! Texts of concatenated strings. A log that was built line by line is one string per line, each
//! containing the previous one. Common pieces are collected once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::format::utf16_length;
use crate::objects::Objects;
use crate::{EdgeKind, NodeKind};

/// Number of stored pieces above which all lists are dropped and built again on demand.
const MOST_PIECES: usize = 16 << 20;

/// Texts of concatenated strings, each up to a length in UTF-16 units.
#[derive(Debug)]
pub(crate) struct ConsTexts {
    most_units: usize,
    known: FxHashMap<u32, Pieces>,
    known_count: usize,
    /// Most recent text: thousands of lines of one log begin with the same pieces.
    last: (Pieces, Vec<u8>),
}

/// Non-empty pieces that a text begins with, shared with all texts that begin with the same pieces.
#[derive(Debug, Clone, Default)]
struct Pieces {
    /// Nodes of the pieces, each with its length in UTF-16 units.
    nodes: Arc<[(u32, u32)]>,
    units: usize,
}

/// String whose pieces are being collected.
struct Open {
    node: u32,
    /// Remaining parts, the next one last.
    parts: Vec<u32>,
    begun: Option<Pieces>,
}

impl ConsTexts {
    pub(crate) fn up_to(most_units: usize) -> Self {
        Self { most_units, known: FxHashMap::default(), known_count: 0, last: Default::default() }
    }

    /// Returns the text of a concatenated string as WTF-8.
    pub(crate) fn text<H: Objects + ?Sized>(&mut self, heap: &H, node: u32) -> Vec<u8> {
        if self.known_count > MOST_PIECES {
            self.known.clear();
            self.known_count = 0;
        }
        let pieces = self.pieces(heap, node);
        if !Arc::ptr_eq(&pieces.nodes, &self.last.0.nodes) {
            let mut text = Vec::new();
            for &(piece, _) in pieces.nodes.iter() {
                text.extend_from_slice(&heap.string_bytes(heap.name_index(piece)));
            }
            self.last = (pieces, text);
        }
        self.last.1.clone()
    }

    fn pieces<H: Objects + ?Sized>(&mut self, heap: &H, node: u32) -> Pieces {
        let mut open = vec![Open { node, parts: parts_of(heap, node), begun: None }];
        // In a damaged file a string may be a part of itself: an open string has no pieces.
        self.know(node, Pieces::default());
        while let Some(top) = open.last_mut() {
            let units = top.begun.as_ref().map_or(0, |begun| begun.units);
            let Some(&part) = top.parts.last().filter(|_| units < self.most_units) else {
                let Some(Open { node, begun, .. }) = open.pop() else { break };
                self.know(node, begun.unwrap_or_default());
                continue;
            };
            let pieces = match self.known.get(&part) {
                Some(pieces) => pieces.clone(),
                None if heap.kind(part) == NodeKind::CONS_STRING => {
                    self.know(part, Pieces::default());
                    open.push(Open { node: part, parts: parts_of(heap, part), begun: None });
                    continue;
                }
                None => {
                    let units = utf16_length(&heap.string_bytes(heap.name_index(part)));
                    let piece = (units > 0).then_some((part, units as u32));
                    Pieces { nodes: piece.into_iter().collect(), units }
                }
            };
            top.parts.pop();
            top.begun = Some(match top.begun.take() {
                None => pieces,
                Some(begun) => begun.with(&pieces, self.most_units),
            });
        }
        self.known.get(&node).cloned().unwrap_or_default()
    }

    fn know(&mut self, node: u32, pieces: Pieces) {
        self.known_count += pieces.nodes.len() + 2;
        self.known.insert(node, pieces);
    }
}

impl Pieces {
    /// Appends pieces of `others` until the length is reached.
    fn with(self, others: &Self, most_units: usize) -> Self {
        let mut units = self.units;
        let mut nodes = self.nodes.to_vec();
        for &(node, length) in others.nodes.iter() {
            if units >= most_units {
                break;
            }
            nodes.push((node, length));
            units += length as usize;
        }
        Self { nodes: nodes.into(), units }
    }
}

/// Returns the second part, then the first.
fn parts_of<H: Objects + ?Sized>(heap: &H, node: u32) -> Vec<u32> {
    let (mut first, mut second) = (None, None);
    for edge in heap.edges(node) {
        if heap.edge_kind(edge) == EdgeKind::INTERNAL {
            match &*heap.string_bytes(heap.edge_name_index(edge)) {
                b"first" => first = first.or(Some(heap.target(edge))),
                b"second" => second = second.or(Some(heap.target(edge))),
                _ => {}
            }
        }
    }
    [second, first].into_iter().flatten().collect()
}
