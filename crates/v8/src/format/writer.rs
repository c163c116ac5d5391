//! Writer of snapshots that DevTools can open.
//!
//! The writer always writes the usual seven fields, with the types in its own order, whatever
//! fields the original file had.

use std::io::{self, Write};

use crate::Snapshot;
use crate::format::header::{NODE_FIELDS, snapshot_header};
use crate::kinds::{EdgeKind, NODE_KINDS};
use crate::node_set::NodeSet;

/// Changes that are made while writing.
pub(crate) trait Rewriting {
    /// String number of a node's name.
    fn node_name(&self, node: u32) -> u32;
    /// String number of an edge's name; not called for elements.
    fn edge_name(&self, edge: u32) -> u32;
    /// Number of strings.
    fn string_count(&self) -> u32;
    /// Text of a string, WTF-8.
    fn string(&self, number: u32) -> &[u8];
}

/// Whole snapshot, or a part of one.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// Nodes to write, the root included; `None` for all.
    pub(crate) nodes: Option<&'a NodeSet>,
    /// Node that the root's only edge leads to; it replaces all edges of the root.
    pub(crate) new_child: Option<u32>,
}

impl Part<'_> {
    /// Writes the part.
    pub(crate) fn write(&self, rewriting: &impl Rewriting, out: &mut impl Write) -> io::Result<()> {
        let snapshot = self.snapshot;
        // Position of each written node, and the number of those.
        let mut ordinals = vec![u32::MAX; snapshot.node_count() as usize];
        let mut node_count = 0u32;
        for node in self.written() {
            ordinals[node as usize] = node_count;
            node_count += 1;
        }
        let edges_of = |node: u32| self.edges_of(node, &ordinals);
        let edge_count: u64 = self.written().map(|node| edges_of(node).count() as u64).sum();
        write!(out, "{{\"snapshot\":{}", self.header(node_count, edge_count))?;
        let mut line = Vec::new();

        write!(out, ",\n\"nodes\":[")?;
        for (at, node) in self.written().enumerate() {
            line.clear();
            let row = [
                u64::from(self.kind_number(node)),
                u64::from(rewriting.node_name(node)),
                snapshot.id(node),
                snapshot.self_bytes(node),
                edges_of(node).count() as u64,
                0,
                snapshot.dom_state(node) as u64,
            ];
            push_row(&mut line, at == 0, &row);
            out.write_all(&line)?;
        }
        write!(out, "],\n\"edges\":[")?;
        let mut is_first = true;
        for node in self.written() {
            line.clear();
            for (edge, target) in edges_of(node) {
                let (kind, name) = match edge {
                    Some(edge) => {
                        let kind = snapshot.edge_kind(edge);
                        let number = snapshot.edge_name_number(edge);
                        (kind, if kind.has_string_name() { rewriting.edge_name(edge) } else { number })
                    }
                    None => (EdgeKind::ELEMENT, 1),
                };
                let to_node = u64::from(ordinals[target as usize]) * NODE_FIELDS;
                push_row(&mut line, is_first, &[u64::from(kind.0.min(6)), u64::from(name), to_node]);
                is_first = false;
            }
            out.write_all(&line)?;
        }
        write!(
            out,
            "],\n\"trace_function_infos\":[],\n\"trace_tree\":[],\n\"samples\":[],\n\"locations\":["
        )?;
        let mut is_first = true;
        for location in
            snapshot.locations().all().iter().filter(|place| ordinals[place.node as usize] != u32::MAX)
        {
            line.clear();
            let object = u64::from(ordinals[location.node as usize]) * NODE_FIELDS;
            let row =
                [object, u64::from(location.script_id), u64::from(location.line), u64::from(location.column)];
            push_row(&mut line, is_first, &row);
            is_first = false;
            out.write_all(&line)?;
        }
        write!(out, "],\n\"strings\":[")?;
        for number in 0..rewriting.string_count() {
            line.clear();
            line.extend_from_slice(if number == 0 { b"" } else { b",\n" });
            push_string(&mut line, rewriting.string(number));
            out.write_all(&line)?;
        }
        write!(out, "]}}")
    }

    fn written(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.snapshot.node_count()).filter(|&node| self.nodes.is_none_or(|nodes| nodes.contains(node)))
    }

    /// Returns edges (`None` for the new one) with their targets, if these are written.
    fn edges_of<'b>(
        &'b self,
        node: u32,
        ordinals: &'b [u32],
    ) -> impl Iterator<Item = (Option<u32>, u32)> + 'b {
        let graph = self.snapshot.graph();
        let child = self.new_child.filter(|_| node == self.snapshot.root());
        let edges = if child.is_some() { 0..0 } else { graph.edges(node) };
        let kept = edges.map(|edge| (Some(edge), graph.target(edge)));
        kept.filter(|&(_, target)| ordinals[target as usize] != u32::MAX)
            .chain(child.map(|child| (None, child)))
    }

    fn kind_number(&self, node: u32) -> u8 {
        self.snapshot.kind(node).number()
    }

    fn header(&self, node_count: u32, edge_count: u64) -> serde_json::Value {
        let meta = self.snapshot.meta();
        // Kinds that only this file has keep their numbers after the usual ones.
        let mut kinds: Vec<&str> = NODE_KINDS.to_vec();
        let most = self.written().map(|node| self.kind_number(node)).max().unwrap_or(0);
        kinds.extend(
            (NODE_KINDS.len() as u8..=most).map(|number| meta.node_kind_name(crate::NodeKind(number))),
        );
        let mut header = snapshot_header(&kinds, u64::from(node_count), edge_count);
        if let Some(dialect) = meta.dialect_member() {
            header["heapr"] = dialect;
        }
        header["extra_native_bytes"] = if self.nodes.is_none() { meta.extra_native_bytes } else { 0 }.into();
        header
    }
}

fn push_row(line: &mut Vec<u8>, is_first: bool, row: &[u64]) {
    for (at, &value) in row.iter().enumerate() {
        match at {
            0 if is_first => {}
            0 => line.extend_from_slice(b"\n,"),
            _ => line.push(b','),
        }
        push_number(line, value);
    }
}

fn push_number(line: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}

/// Appends a JSON string; lone surrogates and invalid text become escapes.
fn push_string(line: &mut Vec<u8>, text: &[u8]) {
    line.push(b'"');
    for unit in char::decode_utf16(crate::utf16_units(text)) {
        match unit {
            Ok('"') => line.extend_from_slice(b"\\\""),
            Ok('\\') => line.extend_from_slice(b"\\\\"),
            Ok('\n') => line.extend_from_slice(b"\\n"),
            Ok(control) if control < ' ' => {
                line.extend_from_slice(format!("\\u{:04x}", control as u32).as_bytes())
            }
            Ok(character) => line.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => line.extend_from_slice(format!("\\u{:04x}", lone.unpaired_surrogate()).as_bytes()),
        }
    }
    line.push(b'"');
}
