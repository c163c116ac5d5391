//! Finds the objects, and numbers them and their references.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::name_cache::NameCache;
use super::objects::{self, flag, is_count, is_pointer, type_of};
use super::runtime::Runtime;
use super::text::Text;
use super::types::{Form, Type, Types};
use super::{arenas, collector, dict};
use crate::block_table::{Blocks, InsideWord};
use crate::error::{Error, Result};
use crate::heap::{Edge, EdgeName, Label, ManagedHeap, Node, NodeKind};
use crate::object_map::ObjectMap;
use crate::pages::Pages;
pub(super) use crate::request::COUNT_MAX;
use crate::request::{HeapRequest, edges_max};
use heapr_known::cpython::Layout;

/// Number of objects between two questions whether the reading may continue.
pub(super) const ASK_EACH: usize = 1 << 14;
/// Number of pools between two such questions.
const ASK_EACH_POOLS: usize = 1 << 6;

/// Bytes that the checks of memory put before a block: its size, its kind, and guards. Half as many
/// guards are behind it, at least.
const DEBUG_PREFIX_BYTES: u64 = 16;
/// Number of the collector's objects that show where objects are in their blocks.
const PREFIX_VOTERS: usize = 256;

/// State of a reading.
pub(super) struct Reader<'p, 'm> {
    pub(super) pages: &'p Pages<'m>,
    pub(super) runtime: &'p Runtime,
    pub(super) layout: &'p Layout,
    pub(super) request: &'p HeapRequest<'p>,
    pub(super) types: Types<'p, 'm>,
    pub(super) names: NameCache,
    pub(super) map: ObjectMap,
    pub(super) heap: ManagedHeap,
    /// Owner of each dict whose entries are shown as the owner's attributes, by the dict's node.
    pub(super) folded: FxHashMap<u32, u32>,
    /// Blocks of the C library's heap.
    pub(super) blocks: Blocks<'p>,
    /// Node of each block that is one, by its address.
    pub(super) block_nodes: FxHashMap<u64, u32>,
    /// Label of each type's instances, by the type's address.
    pub(super) of_types: FxHashMap<u64, u32>,
    /// Types by the number of the class, from 1.
    classes: Vec<Rc<Type>>,
    /// Type of the node that was added last, and the label of its instances.
    last_type: (u64, u32),
    /// Bytes that the interpreter's checks of memory put before each block; 0 without these checks.
    pub(super) block_prefix: u64,
    /// Words that lead inside of blocks of which nothing was known.
    pub(super) inside_words: Vec<InsideWord>,
    /// Largest number of references.
    edges_max: usize,
    /// Number of references of roots.
    root_edge_count: usize,
}

impl<'p, 'm> Reader<'p, 'm> {
    pub(super) fn of(pages: &'p Pages<'m>, runtime: &'p Runtime, request: &'p HeapRequest<'p>) -> Self {
        let heap =
            ManagedHeap { runtime: format!("CPython {}", runtime.version_text), ..ManagedHeap::default() };
        Self {
            pages,
            runtime,
            layout: &runtime.layout,
            request,
            types: Types::of(pages, runtime),
            names: NameCache::default(),
            map: ObjectMap::new(runtime.layout.pool_bytes),
            heap,
            folded: FxHashMap::default(),
            blocks: Blocks::of(request.blocks),
            block_nodes: FxHashMap::default(),
            of_types: FxHashMap::default(),
            classes: Vec::new(),
            last_type: (0, 0),
            block_prefix: 0,
            inside_words: Vec::new(),
            edges_max: edges_max(request.mappings),
            root_edge_count: 0,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        if (self.request.goes_on)() { Ok(()) } else { Err(Error::GivenUp) }
    }

    /// Returns the type of an object, if the address has one. `in_block`: size of the block that
    /// must hold it.
    pub(super) fn type_of_object(&self, object_avma: u64, in_block: Option<u64>) -> Option<Rc<Type>> {
        if !is_pointer(object_avma) {
            return None;
        }
        let found = self.types.at(type_of(self.pages, object_avma)?)?;
        let count = self.pages.word(object_avma)?;
        // A program at low addresses has its heap below 4 GiB, where addresses look like counts.
        let is_address = count >= 1 << 16 && self.map.is_in_pool(count);
        if !is_count(count) || is_address {
            return None;
        }
        if let Some(block_bytes) = in_block {
            if found.form == Form::Text {
                let bytes = Text::at(self.pages, object_avma)?.bytes(self.layout);
                return (bytes <= block_bytes).then_some(found);
            }
            let items = if found.item_bytes > 0 && found.form != Form::Int {
                let count = (self.pages.word(object_avma + objects::SIZE)? as i64).unsigned_abs();
                count.checked_mul(found.item_bytes)?
            } else {
                0
            };
            let needed = found.bytes_before().checked_add(found.basic_bytes)?.checked_add(items)?;
            // An int's size is not that of its items in all versions, and bytes count one more.
            (needed <= block_bytes + 1).then_some(())?;
        }
        Some(found)
    }

    /// Finds the objects of the collector and of the arenas.
    pub(super) fn find_objects(&mut self) -> Result<()> {
        let mut collected = Vec::new();
        collector::walk(self.pages, self.runtime, |object_avma| {
            collected.push(object_avma);
            !collected.len().is_multiple_of(ASK_EACH) || (self.request.goes_on)()
        });
        self.check()?;
        self.find_in_pools(&collected)?;
        for avma in collected {
            if self.map.get(avma).is_none()
                && let Some(of) = self.type_of_object(avma, None)
            {
                self.add(avma, &of)?;
            }
        }
        self.find_types()
    }

    /// Finds types that are in no list of the collector, as in the middle of a collection: those of
    /// known objects, and those in modules. Their dicts are shown as their attributes.
    fn find_types(&mut self) -> Result<()> {
        for number in 0..self.classes.len() {
            let type_avma = self.classes[number].avma;
            self.node_at(type_avma)?;
        }
        let mut found = Vec::new();
        for node in 0..self.heap.nodes.len() as u32 {
            if self.type_of_node(node).is_some_and(|of| of.form == Form::Module) {
                let avma = self.heap.nodes[node as usize].address_avma;
                let dict_avma = self.pages.word_or_zero(avma + objects::MODULE_DICT);
                if is_pointer(dict_avma) {
                    dict::entries(self.pages, self.layout, dict_avma, |_, _, value| found.push(value));
                }
            }
        }
        for value in found {
            if self.map.get(value).is_none() && self.types.at(value).is_some() {
                self.node_at(value)?;
            }
        }
        Ok(())
    }

    /// Finds the objects of the arenas, by address. `collected`: the collector's objects.
    fn find_in_pools(&mut self, collected: &[u64]) -> Result<()> {
        let arenas = arenas::find(self.pages, self.runtime, self.request.mappings, collected);
        // Pools first: whether a word is a count or an address shows by them.
        let mut pools = Vec::new();
        for arena in &arenas {
            self.check()?;
            arenas::add_pools(self.pages, self.layout, arena, &mut pools);
        }
        for pool in &pools {
            self.map.add_pool(pool.avma);
        }
        self.block_prefix = self.prefix_of_blocks(collected);
        let mut used = Vec::new();
        for (number, pool) in pools.iter().enumerate() {
            if number.is_multiple_of(ASK_EACH_POOLS) {
                self.check()?;
            }
            pool.read_used(self.pages, &mut used);
            for number in (0..used.len()).filter(|&number| used[number]) {
                if let Some((avma, of)) = self.object_in(pool.block(number), pool.block_bytes) {
                    self.add(avma, &of)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the bytes before the contents of each block: none, or those of `PYTHONMALLOC=debug`,
    /// `-X dev` and debug builds. The places of the collector's objects show them.
    fn prefix_of_blocks(&self, collected: &[u64]) -> u64 {
        let step = (collected.len() / PREFIX_VOTERS).max(1);
        let (mut plain_count, mut debug_count) = (0, 0);
        for &avma in collected.iter().step_by(step) {
            let Some(of) = self.type_of_object(avma, None) else { continue };
            match self.offset_in_block(avma.wrapping_sub(of.bytes_before())) {
                Some(0) => plain_count += 1,
                Some(DEBUG_PREFIX_BYTES) => debug_count += 1,
                _ => {}
            }
        }
        if debug_count > plain_count { DEBUG_PREFIX_BYTES } else { 0 }
    }

    /// Distance of an address from the start of its block, in a pool or in the C library's heap.
    fn offset_in_block(&self, avma: u64) -> Option<u64> {
        if self.map.is_in_pool(avma) {
            let pool_avma = avma / self.layout.pool_bytes * self.layout.pool_bytes;
            let pool = arenas::Pool::at(self.pages, self.layout, pool_avma)?;
            return Some(pool.offset_in_block(avma));
        }
        let block = self.blocks.block(self.blocks.around(avma)?);
        Some(avma - block.address_avma)
    }

    /// Returns the object in a block of a pool: its type says how far from the block's start it is.
    fn object_in(&self, block_avma: u64, block_bytes: u64) -> Option<(u64, Rc<Type>)> {
        let block_avma = block_avma + self.block_prefix;
        let block_bytes = block_bytes.saturating_sub(self.block_prefix / 2 * 3);
        [0, objects::COLLECTOR_BYTES, objects::COLLECTOR_BYTES + objects::MANAGED_BYTES]
            .into_iter()
            .filter(|before| before + objects::HEAD_BYTES <= block_bytes)
            .find_map(|before| {
                let avma = block_avma + before;
                let found = self.type_of_object(avma, Some(block_bytes))?;
                (found.bytes_before() == before).then_some((avma, found))
            })
    }

    /// Adds a node for a new object.
    pub(super) fn add(&mut self, avma: u64, of: &Rc<Type>) -> Result<u32> {
        let node = self.heap.nodes.len();
        if node >= COUNT_MAX {
            return Err(Error::TooLarge);
        }
        let label = self.label_of_instances(of);
        self.heap.nodes.push(Node::new(avma, label));
        self.map.insert(avma, node as u32);
        Ok(node as u32)
    }

    fn label_of_instances(&mut self, of: &Rc<Type>) -> u32 {
        if self.last_type.0 == of.avma {
            return self.last_type.1;
        }
        if let Some(&known) = self.of_types.get(&of.avma) {
            self.last_type = (of.avma, known);
            return known;
        }
        let name = self.heap.strings.number(&of.name);
        let place = if of.has(flag::HEAP_TYPE) { self.place_of_type(of) } else { 0 };
        if is_collection(of.form) {
            self.heap.collections.push(name);
            self.add_slots(name, of);
        }
        if matches!(of.form, Form::Text | Form::Int | Form::Bytes) {
            self.heap.fixed.push(name);
        }
        self.classes.push(Rc::clone(of));
        let class = self.classes.len() as u32;
        let label = self.heap.label(Label { name, kind: NodeKind::Object, place, class });
        self.of_types.insert(of.avma, label);
        label
    }

    /// Type that a node had when it was added; `None` of native memory.
    pub(super) fn type_of_node(&self, node: u32) -> Option<Rc<Type>> {
        let label = self.heap.label_of(self.heap.nodes.get(node as usize)?);
        self.classes.get((label.class as usize).checked_sub(1)?).map(Rc::clone)
    }

    /// Returns the node of an object, which is added if it is new.
    pub(super) fn node_at(&mut self, word: u64) -> Result<Option<u32>> {
        if let Some(known) = self.map.get(word) {
            return Ok(Some(known));
        }
        if !is_pointer(word) || self.map.is_in_pool(word) {
            return Ok(None);
        }
        match self.type_of_object(word, None) {
            Some(of) => self.add(word, &of).map(Some),
            None => Ok(None),
        }
    }

    /// Adds a reference of the node under work.
    pub(super) fn refer(&mut self, word: u64, name: EdgeName) -> Result<bool> {
        let Some(target) = self.node_at(word)? else { return Ok(false) };
        self.push_edge(target, name)?;
        Ok(true)
    }

    pub(super) fn push_edge(&mut self, target: u32, name: EdgeName) -> Result<()> {
        self.check_room(self.heap.edges.len())?;
        self.heap.edges.push(Edge { target, name });
        Ok(())
    }

    /// Refuses more references than any memory has.
    pub(super) fn check_room(&self, edge_count: usize) -> Result<()> {
        if edge_count < self.edges_max { Ok(()) } else { Err(Error::TooLarge) }
    }

    /// Adds a reference of the root under work.
    pub(super) fn push_root_edge(
        &mut self,
        edges: &mut Vec<Edge>,
        target: u32,
        name: EdgeName,
    ) -> Result<()> {
        if self.root_edge_count >= self.edges_max {
            return Err(Error::TooLarge);
        }
        self.root_edge_count += 1;
        edges.push(Edge { target, name });
        Ok(())
    }

    /// Follows the references of all nodes, also of those that are found meanwhile.
    pub(super) fn follow_references(&mut self) -> Result<()> {
        self.fold_dicts();
        self.claim_blocks();
        let mut node = 0;
        while node < self.heap.nodes.len() {
            if node.is_multiple_of(ASK_EACH) {
                self.check()?;
            }
            self.heap.first_edges.push(self.heap.edges.len() as u32);
            self.read_fields(node as u32)?;
            node += 1;
        }
        self.heap.first_edges.push(self.heap.edges.len() as u32);
        self.lead_to_owners();
        Ok(())
    }

    /// Makes references to a dict that is shown as its owner's attributes lead to the owner.
    fn lead_to_owners(&mut self) {
        let mut is_folded = vec![false; self.heap.nodes.len()];
        for &dict in self.folded.keys() {
            is_folded[dict as usize] = true;
        }
        for node in 0..self.heap.nodes.len() {
            let range = self.heap.first_edges[node] as usize..self.heap.first_edges[node + 1] as usize;
            for edge in &mut self.heap.edges[range] {
                if is_folded[edge.target as usize]
                    && let Some(&owner) = self.folded.get(&edge.target)
                    && owner != node as u32
                {
                    edge.target = owner;
                }
            }
        }
    }

    /// Owner of a dict whose entries are shown as the owner's attributes.
    pub(super) fn owner_of(&self, dict_avma: u64) -> Option<u32> {
        self.folded.get(&self.map.get(dict_avma)?).copied()
    }

    pub(super) fn finish(mut self) -> Result<ManagedHeap> {
        self.heap.collections.sort_unstable();
        self.heap.collections.dedup();
        Ok(self.heap)
    }
}

/// Whether objects of this form hold their contents by position or key.
fn is_collection(form: Form) -> bool {
    matches!(form, Form::List | Form::Tuple | Form::Dict | Form::Set | Form::Deque | Form::NdArray)
}
