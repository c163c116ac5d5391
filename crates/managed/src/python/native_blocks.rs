//! Blocks of the C library's heap beside the objects: what Python objects and modules hold of it.
//!
//! ```text
//! sqlite3.Connection ── +0x10 ──> (native block) ──> (native block)
//! (data of libexpat.so) ────────> (native block)
//! ```
//! A block that is an object, or a part of one, is no node of its own. A word that is exactly the
//! start of a block counts; one that leads inside counts where no other word leads to the block.

use super::dict::{Attributes, DICT_KEYS, DICT_VALUES};
use super::fields::{DEQUE_BLOCK_BYTES, DEQUE_FIRST_BLOCK, ITEMS, MODULE_STATE, SET_TABLE};
use super::objects::{self, flag, is_pointer};
use super::reader::{COUNT_MAX, Reader};
use super::types::{Form, Type};
use crate::error::{Error, Result};
use crate::heap::{Edge, EdgeName, Label, NativeBlock, Node, NodeKind, RootKind};
use heapr_known::cpython::Values;

/// Name of a block.
const BLOCK: &str = "(native block)";
/// Name of a block's reference to an object.
pub(super) const NATIVE: &str = "(native)";
/// Largest number of words that are read of one block.
const WORDS_MAX: u64 = 1 << 20;

impl Reader<'_, '_> {
    /// Marks the block at an address as a part of an object.
    fn claim(&mut self, address_avma: u64) {
        if let Some(number) = self.blocks.at(address_avma.wrapping_sub(self.block_prefix)) {
            self.blocks.learn(number);
        }
    }

    /// Marks the blocks that are known objects, or parts of them.
    pub(super) fn claim_blocks(&mut self) {
        if self.blocks.is_empty() {
            return;
        }
        for number in 0..self.heap.nodes.len() {
            let avma = self.heap.nodes[number].address_avma;
            if let Some(of) = self.type_of_node(number as u32) {
                self.claim_parts(avma, &of);
            }
        }
    }

    fn claim_parts(&mut self, avma: u64, of: &Type) {
        if !self.map.is_in_pool(avma) {
            self.claim(avma.saturating_sub(of.bytes_before()));
        }
        let pages = self.pages;
        let word = |offset: u64| pages.word_or_zero(avma + offset);
        match of.form {
            Form::List | Form::Array => self.claim(word(ITEMS)),
            Form::Dict => {
                self.claim(word(DICT_KEYS));
                self.claim_values(word(DICT_VALUES));
            }
            Form::Set => self.claim(word(SET_TABLE)),
            Form::Deque => self.claim_blocks_of_deque(word(DEQUE_FIRST_BLOCK), word(objects::SIZE)),
            Form::Module => self.claim(word(MODULE_STATE)),
            Form::Type => self.claim(word(self.layout.type_cached_keys)),
            _ if of.has(flag::MANAGED_DICT) => {
                if let Attributes::Values { first_avma, .. } = self.attributes_of(avma, of) {
                    self.claim_values(first_avma);
                }
            }
            _ => {}
        }
    }

    /// `first_avma`: address of the first value of a table of values, which may have its length
    /// before it.
    fn claim_values(&mut self, first_avma: u64) {
        let before_bytes = match self.layout.values {
            Values::None => 0,
            Values::Beside | Values::Tagged => self.pages.byte(first_avma.wrapping_sub(1)).unwrap_or(0),
            Values::Inline => return,
        };
        if is_pointer(first_avma) {
            self.claim(first_avma.wrapping_sub(before_bytes.into()));
        }
    }

    /// `count`: items of the deque, which bound the number of its blocks.
    fn claim_blocks_of_deque(&mut self, first_avma: u64, count: u64) {
        let mut block_avma = first_avma;
        for _ in 0..=count / 64 + 1 {
            let start_avma = block_avma.wrapping_sub(self.block_prefix);
            let Some(number) = self.blocks.at(start_avma) else { return };
            if !self.blocks.learn(number) {
                return;
            }
            block_avma = self.pages.word_or_zero(block_avma.wrapping_add(DEQUE_BLOCK_BYTES - 8));
        }
    }

    /// Returns the node of the block that begins at an address, which is added if it is new. `None`
    /// if no block begins there, or it belongs to an object.
    pub(super) fn block_at(&mut self, word: u64) -> Result<Option<u32>> {
        let Some(number) = self.blocks.at(word) else { return Ok(None) };
        if let Some(&known) = self.block_nodes.get(&word) {
            return Ok(Some(known));
        }
        if self.blocks.is_known(number) {
            return Ok(None);
        }
        self.add_block(number).map(Some)
    }

    pub(super) fn add_block(&mut self, number: usize) -> Result<u32> {
        let NativeBlock { address_avma, usable_bytes } = self.blocks.block(number);
        let name = self.heap.strings.number(BLOCK);
        self.blocks.learn(number);
        self.add_native_node(address_avma, usable_bytes, name)
    }

    /// Adds a node of native memory, or names the one that is known.
    pub(super) fn add_native_node(&mut self, address_avma: u64, bytes: u64, name: u32) -> Result<u32> {
        if let Some(&known) = self.block_nodes.get(&address_avma) {
            self.heap.relabel(known, |label| label.name = name);
            return Ok(known);
        }
        let node = self.heap.nodes.len();
        if node >= COUNT_MAX {
            return Err(Error::TooLarge);
        }
        let label = self.heap.label(Label { name, kind: NodeKind::Block, ..Label::default() });
        self.heap.nodes.push(Node::new(address_avma, label));
        self.heap.set_own_bytes(node as u32, bytes);
        self.block_nodes.insert(address_avma, node as u32);
        if let Some(number) = self.blocks.at(address_avma) {
            self.blocks.learn(number);
        }
        Ok(node as u32)
    }

    /// Adds the references of a block: words that are exactly the start of another, or an object.
    pub(super) fn read_block(&mut self, node: u32) -> Result<()> {
        let facts = self.heap.nodes[node as usize];
        let address_avma = facts.address_avma;
        let Some(number) = self.blocks.at(address_avma) else { return Ok(()) };
        if self.heap.name_of(&facts) != BLOCK {
            return Ok(());
        }
        let words = self.blocks.block(number).usable_bytes / 8;
        for number in 0..words.min(WORDS_MAX) {
            let Some(word) = self.pages.word(address_avma + number * 8) else { break };
            if !is_pointer(word) || word == address_avma {
                continue;
            }
            let found = match self.map.get(word) {
                Some(object) => Some((object, self.weak(NATIVE))),
                None => self.block_at(word)?.map(|block| (block, self.offset(number * 8))),
            };
            match found {
                Some((target, name)) => self.push_edge(target, name)?,
                None => self.note_inside(node, word, number * 8)?,
            }
        }
        Ok(())
    }

    /// Marks the blocks around objects that were found after the others, and their parts.
    pub(super) fn claim_late_objects(&mut self) {
        if self.blocks.is_empty() {
            return;
        }
        for number in 0..self.heap.nodes.len() {
            let facts = self.heap.nodes[number];
            if self.map.is_in_pool(facts.address_avma) || self.heap.label_of(&facts).kind == NodeKind::Block {
                continue;
            }
            if let Some(around) = self.blocks.around(facts.address_avma) {
                self.blocks.learn(around);
            }
            // Of dicts that the collector does not know, nothing was claimed yet.
            if let Some(of) = self.type_of_node(number as u32) {
                self.claim_parts(facts.address_avma, &of);
            }
        }
    }

    /// Adds the blocks that no object and no module holds, as a root of their own.
    pub(super) fn add_other_blocks(&mut self, reached: &mut Vec<bool>) -> Result<()> {
        if self.blocks.is_empty() {
            return Ok(());
        }
        let first = self.heap.nodes.len();
        for number in 0..self.blocks.count() {
            if !self.blocks.is_known(number) {
                self.add_block(number)?;
            }
        }
        self.read_late_nodes()?;
        let count = self.heap.nodes.len();
        reached.resize(count, false);
        let mut is_inner = vec![false; count - first];
        for node in first..count {
            for edge in self.heap.edges_of(node as u32) {
                if let Some(inner) =
                    (edge.target as usize).checked_sub(first).and_then(|at| is_inner.get_mut(at))
                {
                    *inner = true;
                }
            }
        }
        // Blocks that no other leads to come first; the rest leads around.
        let outer = (first..count).filter(|node| !is_inner[node - first]);
        let order: Vec<usize> = outer.chain(first..count).collect();
        let mut edges = Vec::new();
        for node in order {
            if !reached[node] {
                edges.push(Edge { target: node as u32, name: EdgeName::item(edges.len() as u64) });
                self.reach(&[node as u32], reached);
            }
        }
        self.push_root("(native memory)".to_owned(), RootKind::Runtime, 0, edges);
        Ok(())
    }
}
