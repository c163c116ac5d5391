//! Texts of concatenated strings. A log that was built line by line is one string per line, each
//! containing the previous one. Common pieces are collected once.

use rustc_hash::FxHashMap;

use crate::format::utf16_length;
use crate::objects::Objects;
use crate::{EdgeKind, NodeKind};

/// Number of joints from which all are dropped and made again on demand.
const MOST_JOINTS: usize = 16 << 20;

/// Texts of concatenated strings, each up to a length in UTF-16 units.
#[derive(Debug)]
pub(crate) struct ConsTexts {
    most_units: usize,
    known: FxHashMap<u32, Pieces>,
    /// Two texts, one after the other. Both are longer than 0, and the first does not reach the
    /// length.
    joints: Vec<[Text; 2]>,
    /// Most recent text: thousands of lines of one log begin with the same pieces.
    last: (Text, Vec<u8>),
}

/// Beginning of a text, shared with all texts that begin with the same pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Text {
    #[default]
    Empty,
    /// Text of one node.
    Node(u32),
    /// Number of a joint.
    Joint(u32),
}

/// Beginning of a text, and its length in UTF-16 units.
#[derive(Debug, Clone, Copy, Default)]
struct Pieces {
    text: Text,
    units: usize,
}

/// String whose pieces are being collected.
struct Open {
    node: u32,
    /// Remaining parts, the next one last.
    parts: Vec<u32>,
    begun: Pieces,
}

impl ConsTexts {
    pub(crate) fn up_to(most_units: usize) -> Self {
        Self { most_units, known: FxHashMap::default(), joints: Vec::new(), last: Default::default() }
    }

    /// Returns the text of a concatenated string as WTF-8.
    pub(crate) fn text<H: Objects + ?Sized>(&mut self, heap: &H, node: u32) -> Vec<u8> {
        if self.joints.len() + self.known.len() > MOST_JOINTS {
            self.known.clear();
            self.joints.clear();
            self.last = Default::default();
        }
        let text = self.pieces(heap, node).text;
        if text != self.last.0 {
            self.last = (text, self.joined(heap, text));
        }
        self.last.1.clone()
    }

    fn joined<H: Objects + ?Sized>(&self, heap: &H, text: Text) -> Vec<u8> {
        let (mut joined, mut units) = (Vec::new(), 0);
        let mut pending = vec![text];
        while let Some(text) = pending.pop().filter(|_| units < self.most_units) {
            match text {
                Text::Empty => {}
                Text::Node(node) => {
                    let piece = heap.string_bytes(heap.name_index(node));
                    units += utf16_length(&piece);
                    joined.extend_from_slice(&piece);
                }
                Text::Joint(joint) => {
                    let [first, second] = self.joints[joint as usize];
                    pending.extend([second, first]);
                }
            }
        }
        joined
    }

    fn pieces<H: Objects + ?Sized>(&mut self, heap: &H, node: u32) -> Pieces {
        let mut open = vec![Open { node, parts: parts_of(heap, node), begun: Pieces::default() }];
        // In a damaged file a string may be a part of itself: an open string has no pieces.
        self.known.insert(node, Pieces::default());
        while let Some(top) = open.last_mut() {
            let Some(&part) = top.parts.last().filter(|_| top.begun.units < self.most_units) else {
                self.known.insert(top.node, top.begun);
                open.pop();
                continue;
            };
            let pieces = match self.known.get(&part) {
                Some(&pieces) => pieces,
                None if heap.kind(part) == NodeKind::CONS_STRING => {
                    self.known.insert(part, Pieces::default());
                    open.push(Open { node: part, parts: parts_of(heap, part), begun: Pieces::default() });
                    continue;
                }
                None => {
                    let units = utf16_length(&heap.string_bytes(heap.name_index(part)));
                    Pieces { text: if units > 0 { Text::Node(part) } else { Text::Empty }, units }
                }
            };
            top.parts.pop();
            top.begun = join(&mut self.joints, top.begun, pieces);
        }
        self.known.get(&node).copied().unwrap_or_default()
    }
}

fn join(joints: &mut Vec<[Text; 2]>, first: Pieces, second: Pieces) -> Pieces {
    match (first.text, second.text) {
        (Text::Empty, _) => second,
        (_, Text::Empty) => first,
        (first_text, second_text) => {
            joints.push([first_text, second_text]);
            let text = Text::Joint(joints.len() as u32 - 1);
            Pieces { text, units: first.units.saturating_add(second.units) }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devtools::Heap;
    use crate::{GraphColumns, NODE_KINDS, Snapshot, snapshot_header};

    /// A chain of concatenated strings, each with a piece and the next; node 1 is the whole.
    fn chain(count: u32, is_next_first: bool) -> Heap {
        let mut columns = GraphColumns::default();
        let names = ["", "piece", "first", "second"];
        let [none, piece, first, second] = names.map(|name| columns.strings.push(name.as_bytes()).unwrap());
        columns.first_edges = vec![0, 0];
        (columns.names, columns.kinds) = (vec![none], vec![NodeKind::SYNTHETIC]);
        for at in 0..count {
            let node = 1 + 2 * at;
            let next = if at + 1 < count { node + 2 } else { node + 1 };
            let [one, other] = if is_next_first { [next, node + 1] } else { [node + 1, next] };
            columns.targets.extend([one, other]);
            columns.edge_names.extend([first, second]);
            columns.edge_kinds.extend([EdgeKind::INTERNAL; 2]);
            columns.first_edges.extend([columns.targets.len() as u32; 2]);
            columns.names.extend([none, piece]);
            columns.kinds.extend([NodeKind::CONS_STRING, NodeKind::STRING]);
        }
        columns.ids = (0..2 * count + 1).collect();
        columns.own_bytes = vec![16; columns.ids.len()];
        let header = snapshot_header(&NODE_KINDS, u64::from(2 * count + 1), columns.targets.len() as u64);
        Heap::new(Snapshot::of_columns(&header, columns).unwrap()).unwrap()
    }

    #[test]
    fn the_texts_of_a_long_chain_take_memory_in_proportion_to_its_length() {
        const COUNT: u32 = 20_000;
        for is_next_first in [true, false] {
            let heap = chain(COUNT, is_next_first);
            let mut texts = ConsTexts::up_to(1024);
            for at in 0..COUNT {
                let text = texts.text(&heap, 1 + 2 * at);
                let pieces = (COUNT - at + 1).min(1024_u32.div_ceil(5)) as usize;
                assert_eq!(text, b"piece".repeat(pieces), "{at}");
            }
            assert!(texts.joints.len() + texts.known.len() <= 4 * COUNT as usize);
        }
    }
}
