//! Words that lead inside of native blocks, and words of native blocks that are objects.
//!
//! ```text
//! memoryview ── +0x40 (inside) ──> (native block)    no other word leads to the block
//! (native block) ── (native) ──> object          the object's count has room for this reference
//! ```
//! Both are known only when all other references are. So they are added at the end.

use rustc_hash::FxHashMap;

use super::native_blocks::NATIVE;
use super::objects::{is_pointer, reference_count};
use super::reader::Reader;
use crate::block_table::InsideWord;
use crate::error::Result;
use crate::heap::{Edge, EdgeKind, NodeKind};

impl Reader<'_, '_> {
    /// Notes a word that leads inside of a block of which nothing is known yet. `offset`: place of
    /// the word in its node.
    pub(super) fn note_inside(&mut self, node: u32, word: u64, offset: u64) -> Result<()> {
        let Some(block) = self.unknown_around(word) else { return Ok(()) };
        let name = self.inside(offset);
        self.push_inside(InsideWord { node, block, name })
    }

    /// Notes data of an object that lies in a block of which nothing is known yet.
    pub(super) fn note_data_inside(&mut self, node: u32, data_avma: u64) -> Result<()> {
        let Some(block) = self.unknown_around(data_avma) else { return Ok(()) };
        let name = self.internal("(data)");
        self.push_inside(InsideWord { node, block, name })
    }

    fn unknown_around(&self, word: u64) -> Option<u32> {
        let number = if is_pointer(word & !7) { self.blocks.around(word) } else { None };
        number.filter(|&number| !self.blocks.is_known(number)).map(|number| number as u32)
    }

    fn push_inside(&mut self, word: InsideWord) -> Result<()> {
        self.check_room(self.inside_words.len())?;
        self.inside_words.push(word);
        Ok(())
    }

    /// Adds the references of all noted words whose blocks are still unknown.
    pub(super) fn add_inside_references(&mut self, reached: &mut Vec<bool>) -> Result<()> {
        self.claim_late_objects();
        let mut late: Vec<(u32, Edge)> = Vec::new();
        let mut block_nodes: FxHashMap<u32, u32> = FxHashMap::default();
        // Blocks that are added have words of their own.
        while !self.inside_words.is_empty() {
            self.check()?;
            for InsideWord { node, block, name } in std::mem::take(&mut self.inside_words) {
                let target = match block_nodes.get(&block) {
                    Some(&known) => known,
                    None if self.blocks.is_known(block as usize) => continue,
                    None => {
                        let added = self.add_block(block as usize)?;
                        block_nodes.insert(block, added);
                        added
                    }
                };
                self.check_room(self.heap.edges.len() + late.len())?;
                late.push((node, Edge { target, name }));
            }
            self.read_late_nodes()?;
        }
        self.heap.insert_edges(&mut late);
        reached.resize(self.heap.nodes.len(), false);
        let targets: Vec<u32> =
            late.iter().filter(|(node, _)| reached[*node as usize]).map(|(_, edge)| edge.target).collect();
        self.reach(&targets, reached);
        Ok(())
    }

    /// Makes words of held blocks that are objects hold these. An object's count of references must
    /// have room for all such words.
    pub(super) fn count_references_of_blocks(&mut self, reached: &mut [bool]) {
        let is_native = self.weak(NATIVE);
        let mut wanted: FxHashMap<u32, (u64, u64)> = FxHashMap::default();
        let held: Vec<u32> = (0..self.heap.nodes.len() as u32)
            .filter(|&node| {
                reached[node as usize]
                    && self.heap.label_of(&self.heap.nodes[node as usize]).kind == NodeKind::Block
            })
            .collect();
        for &node in &held {
            for edge in self.heap.edges_of(node).iter().filter(|edge| edge.name == is_native) {
                wanted.entry(edge.target).or_default().0 += 1;
            }
        }
        if wanted.is_empty() {
            return;
        }
        let roots = self.heap.roots.iter().flat_map(|root| &root.edges);
        for edge in self.heap.edges.iter().chain(roots) {
            if edge.name.kind() != EdgeKind::Weak
                && let Some((_, known)) = wanted.get_mut(&edge.target)
            {
                *known += 1;
            }
        }
        wanted.retain(|&node, (words, known)| {
            let count = self.pages.word_or_zero(self.heap.nodes[node as usize].address_avma);
            reference_count(count, self.layout.version).is_some_and(|count| count >= *words + *known)
        });
        let strong = self.internal(NATIVE);
        for node in held {
            for edge in self.heap.edges_of_mut(node) {
                if edge.name == is_native && wanted.contains_key(&edge.target) {
                    edge.name = strong;
                }
            }
        }
        let targets: Vec<u32> = wanted.into_keys().collect();
        self.reach(&targets, reached);
    }
}
