//! Blocks of the C library's heap that objects hold, and objects that only native memory leads to.

use rustc_hash::FxHashSet;

use super::fields::PASSING_BYTES;
use super::reader::{ASK_EACH, Reader};
use super::runtime::Runtime;
use crate::error::{Error, Result};
use crate::heap::{Edge, EdgeName, Label, NativeBlock, Node, NodeKind, Root, RootKind};
use crate::reach::reach;
use crate::symbols::module_starts;

/// Name of a block.
const BLOCK: &str = "(native block)";
/// Largest number of words that are read of one block.
const WORDS_MAX: u64 = 1 << 20;
/// Offset of the first slot's address in the record of a page, which is no reference.
const RECORD_START: u64 = 32;

impl Reader<'_, '_> {
    /// Marks the block at an address as a part of an object.
    pub(super) fn claim(&mut self, address_avma: u64) {
        if let Some(number) = self.blocks.at(address_avma) {
            self.blocks.learn(number);
        }
    }

    /// Marks a block as a part of an object. Returns whether it was not yet.
    pub(super) fn claim_new(&mut self, address_avma: u64) -> bool {
        self.blocks.at(address_avma).is_some_and(|number| self.blocks.learn(number))
    }

    /// Marks the pages of slots and their records.
    pub(super) fn claim_pages(&mut self) {
        let bodies: Vec<u64> = self.slots.bodies().collect();
        for body_avma in bodies {
            if let Some(around) = self.blocks.around(body_avma) {
                self.blocks.learn(around);
            }
            self.claim(self.values.word(body_avma, 0));
        }
    }

    /// Adds a reference to the block that begins at an address, unless it belongs to an object.
    pub(super) fn refer_to_block(&mut self, word: u64, name: EdgeName) -> Result<()> {
        let Some(number) = self.blocks.at(word) else { return Ok(()) };
        let node = match self.block_nodes.get(&word) {
            Some(&known) => known,
            None if self.blocks.is_known(number) => return Ok(()),
            None => self.add_block(number)?,
        };
        self.push_edge(node, name)
    }

    fn add_block(&mut self, number: usize) -> Result<u32> {
        let NativeBlock { address_avma, usable_bytes } = self.blocks.block(number);
        self.blocks.learn(number);
        let node = self.heap.nodes.len();
        if node >= u32::MAX as usize - 1 {
            return Err(Error::TooLarge);
        }
        let name = self.heap.strings.number(BLOCK);
        let label = self.heap.label(Label { name, kind: NodeKind::Block, ..Label::default() });
        self.heap.nodes.push(Node::new(address_avma, label));
        self.heap.set_own_bytes(node as u32, usable_bytes);
        self.block_nodes.insert(address_avma, node as u32);
        Ok(node as u32)
    }

    /// Adds the references of a block that an object holds.
    pub(super) fn read_block(&mut self, node: u32) -> Result<()> {
        let address_avma = self.heap.nodes[node as usize].address_avma;
        let words = (self.heap.own_bytes(node) / 8).min(WORDS_MAX);
        let name = self.internal("(native)");
        for number in 0..words {
            if !self.values.pages.spend(1) {
                break;
            }
            let word = self.values.word(address_avma, number * 8);
            if word != address_avma && !self.refer(word, name)? {
                self.refer_to_block(word, name)?;
            }
        }
        Ok(())
    }

    /// Memory besides objects, by the name of the root that has its references.
    fn native_ranges(&self) -> Vec<(String, u64, u64)> {
        let mappings = self.request.mappings;
        let mut modules: Vec<&str> = module_starts(mappings).map(|(_, name)| name).collect();
        modules.sort_unstable();
        modules.dedup();
        let mut ranges = Vec::new();
        let mut of_modules = FxHashSet::default();
        for module in modules.into_iter().filter(|&module| module != self.runtime.module) {
            let short = module.rsplit('/').next().unwrap_or_default();
            for (start, end) in Runtime::data_of(self.values.pages, mappings, module) {
                ranges.push((format!("(data of {short})"), start, end));
                of_modules.insert(start);
            }
        }
        let own = Runtime::data_of(self.values.pages, mappings, &self.runtime.module);
        of_modules.extend(own.iter().map(|&(start, _)| start));
        for mapping in mappings.iter().filter(|it| it.is_writable && !it.is_shared && it.inode == 0) {
            if of_modules.contains(&mapping.start_avma) {
                continue;
            }
            // Of memory that malloc manages, blocks in use alone.
            let blocks = self.blocks.in_range(mapping.start_avma, mapping.end_avma);
            if blocks.is_empty() {
                ranges.push(("(native memory)".to_owned(), mapping.start_avma, mapping.end_avma));
            }
            ranges.extend(blocks.iter().map(|block| {
                let end_avma = block.address_avma.saturating_add(block.usable_bytes);
                ("(native memory)".to_owned(), block.address_avma, end_avma)
            }));
        }
        ranges
    }

    /// Adds references from native memory to objects that nothing else leads to.
    pub(super) fn add_native_references(&mut self, reached: &mut [bool]) -> Result<()> {
        let records: FxHashSet<u64> = self.slots.bodies().map(|body| self.values.word(body, 0)).collect();
        let name = self.internal("(native)");
        let mut roots: Vec<Root> = Vec::new();
        for (of, start_avma, end_avma) in self.native_ranges() {
            self.check()?;
            let mut edges = Vec::new();
            let mut at_avma = start_avma.next_multiple_of(8);
            while at_avma < end_avma {
                if at_avma.is_multiple_of(ASK_EACH as u64 * 8) {
                    self.check()?;
                }
                if at_avma.is_multiple_of(4096) && self.is_of_objects(at_avma) {
                    at_avma += 4096;
                    continue;
                }
                let Some(word) = self.values.pages.word(at_avma) else {
                    at_avma = (at_avma + 1).next_multiple_of(4096);
                    continue;
                };
                let unreached = |node: &u32| !reached[*node as usize] && !self.is_dead(*node);
                if word != 0
                    && let Some(target) = self.slots.get(word).filter(unreached)
                    && !self.is_of_objects(at_avma)
                    && !records.contains(&at_avma.wrapping_sub(RECORD_START))
                {
                    edges.push(Edge { target, name });
                    reach(&self.heap, &[target], reached);
                }
                at_avma += 8;
            }
            match roots.iter_mut().find(|root| root.name == of) {
                Some(root) => root.edges.extend(edges),
                None => roots.push(Root { name: of, kind: RootKind::Runtime, place: 0, edges }),
            }
        }
        roots.retain(|root| !root.edges.is_empty());
        self.heap.roots.extend(roots);
        Ok(())
    }

    /// Whether an address lies in a slot, or among contents that soon move.
    fn is_of_objects(&self, avma: u64) -> bool {
        self.slots.is_in_page(avma) || self.passing.contains(&(avma / PASSING_BYTES))
    }

    /// Adds the blocks that no object holds, as a root of their own.
    pub(super) fn add_other_blocks(&mut self, reached: &mut Vec<bool>) -> Result<()> {
        let mut edges = Vec::new();
        for number in 0..self.blocks.count() {
            if !self.blocks.is_known(number) {
                let target = self.add_block(number)?;
                self.heap.first_edges.push(self.heap.edges.len() as u32);
                edges.push(Edge { target, name: EdgeName::item(edges.len() as u64) });
            }
        }
        reached.resize(self.heap.nodes.len(), true);
        if !edges.is_empty() {
            let name = "(native blocks)".to_owned();
            self.heap.roots.push(Root { name, kind: RootKind::Runtime, place: 0, edges });
        }
        Ok(())
    }
}
