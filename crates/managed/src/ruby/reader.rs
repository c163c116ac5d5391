//! Numbers the objects and their references.

use rustc_hash::{FxHashMap, FxHashSet};

use super::class_names::ClassNames;
use super::ids::Ids;
use super::runtime::{Runtime, Tables, is_class};
use super::slots::{Found, Slot, Slots};
use super::values::{CONSTANT_VALUE, HAS_VARIABLES_BESIDE, Values};
use crate::block_table::Blocks;
use crate::error::{Error, Result};
use crate::heap::{Edge, EdgeKind, EdgeName, ManagedHeap, Node};
use crate::pages::Pages;
use crate::request::{HeapRequest, edges_max};

/// Number of objects between two questions whether the reading may continue.
pub(super) const ASK_EACH: usize = 1 << 14;

/// Constant that has the local variables of the program's own file.
const MAIN_BINDING: &str = "TOPLEVEL_BINDING";

/// State of a reading.
pub(super) struct Reader<'p, 'm> {
    pub(super) values: Values<'p, 'm>,
    pub(super) runtime: &'p Runtime,
    pub(super) request: &'p HeapRequest<'p>,
    pub(super) slots: Slots,
    /// Sizes of the slots of the objects, which are the first nodes of the heap, by number.
    pub(super) slot_bytes: Vec<u16>,
    /// Numbers of objects that are dead and not swept, in order.
    dead: Vec<u32>,
    pub(super) ids: Ids,
    pub(super) tables: Tables,
    pub(super) classes: ClassNames,
    /// Variables of objects that have them beside: address of the table by that of the object.
    pub(super) beside: FxHashMap<u64, u64>,
    /// Names of the members of structs, by class.
    pub(super) members: FxHashMap<u64, Option<u64>>,
    /// Names of references by the numbers of ids.
    attributes: FxHashMap<u64, EdgeName>,
    pub(super) heap: ManagedHeap,
    /// Blocks of the C library's heap, and the node of each that is one.
    pub(super) blocks: Blocks<'p>,
    pub(super) block_nodes: FxHashMap<u64, u32>,
    /// Parts of the memory of contents that soon move, by their number.
    pub(super) passing: FxHashSet<u64>,
    /// Constant that has the local variables of the program's own file, whose frame has them, too.
    pub(super) main_binding: u64,
    edges_max: usize,
}

impl<'p, 'm> Reader<'p, 'm> {
    /// Finds the objects.
    pub(super) fn of(
        pages: &'p Pages<'m>,
        runtime: &'p Runtime,
        request: &'p HeapRequest<'p>,
    ) -> Result<Self> {
        let values = Values { pages, layout: runtime.layout };
        let other = |what| Error::OtherRuby { version: runtime.layout.version, what };
        let mut slots = Slots::find(values, request.mappings, request.goes_on)?;
        if slots.is_empty() {
            return Err(other("its heap"));
        }
        let found = slots.number(values);
        if slots.get(runtime.object_class).is_none() || !is_class(values, runtime.object_class) {
            return Err(other("the class Object"));
        }
        let data = Runtime::data_of(pages, request.mappings, &runtime.module);
        let (tables, ids) = Tables::find(values, &slots, runtime, &data)?;
        let mut beside = FxHashMap::default();
        if tables.variables_beside != 0 {
            values.entries(tables.variables_beside, |object, table| {
                if slots.get(object).is_some() && values.flags(object) & HAS_VARIABLES_BESIDE != 0 {
                    beside.insert(object, table);
                }
            });
        }
        let heap = ManagedHeap {
            runtime_pages: slots.runtime_pages(),
            runtime: format!("Ruby {}", runtime.version_text),
            language: "ruby",
            ..ManagedHeap::default()
        };
        let mut reader = Self {
            values,
            runtime,
            request,
            slots,
            slot_bytes: Vec::new(),
            dead: Vec::new(),
            ids,
            tables,
            classes: ClassNames::default(),
            beside,
            members: FxHashMap::default(),
            attributes: FxHashMap::default(),
            heap,
            blocks: Blocks::of(request.blocks),
            block_nodes: FxHashMap::default(),
            passing: FxHashSet::default(),
            main_binding: 0,
            edges_max: edges_max(request.mappings),
        };
        reader.main_binding = reader.constant(runtime.object_class, MAIN_BINDING);
        reader.add_nodes(&found)?;
        Ok(reader)
    }

    /// Constant of a class by its name; 0 without it.
    fn constant(&self, class: u64, name: &str) -> u64 {
        let table = self.values.word(self.values.class_rest(class), self.values.layout.constants);
        let mut found = 0;
        self.values.id_entries(table, |key, entry| {
            if found == 0 && self.ids.name(self.values, key).as_deref() == Some(name) {
                found = self.values.word(entry, CONSTANT_VALUE);
            }
        });
        found
    }

    pub(super) fn check(&self) -> Result<()> {
        if (self.request.goes_on)() { Ok(()) } else { Err(Error::GivenUp) }
    }

    fn add_nodes(&mut self, found: &[Found]) -> Result<()> {
        for (number, &Found { avma, slot_bytes, is_dead }) in found.iter().enumerate() {
            if number.is_multiple_of(ASK_EACH) {
                self.check()?;
            }
            let label = self.label_of(avma);
            self.heap.nodes.push(Node::new(avma, label));
            self.slot_bytes.push(slot_bytes);
            self.dead.extend(is_dead.then_some(number as u32));
        }
        Ok(())
    }

    /// Addresses of all objects, by number.
    pub(super) fn objects(&self) -> impl Iterator<Item = u64> {
        self.heap.nodes[..self.slot_bytes.len()].iter().map(|node| node.address_avma)
    }

    /// Whether the collector has found that nothing refers to an object.
    pub(super) fn is_dead(&self, node: u32) -> bool {
        self.dead.binary_search(&node).is_ok()
    }

    /// Follows the references of all nodes, also of those that are found meanwhile.
    pub(super) fn follow_references(&mut self) -> Result<()> {
        self.claim_pages();
        let mut node = 0;
        while node < self.heap.nodes.len() {
            if node.is_multiple_of(ASK_EACH) {
                self.check()?;
            }
            self.heap.first_edges.push(self.heap.edges.len() as u32);
            let avma = self.heap.nodes[node].address_avma;
            match self.slot_bytes.get(node).copied() {
                Some(slot_bytes) => self.read_object(node as u32, Slot { avma, bytes: slot_bytes.into() })?,
                None => self.read_block(node as u32)?,
            }
            node += 1;
        }
        self.heap.first_edges.push(self.heap.edges.len() as u32);
        Ok(())
    }

    /// Adds a reference of the node under work, if the word is an object.
    pub(super) fn refer(&mut self, word: u64, name: EdgeName) -> Result<bool> {
        let Some(target) = self.slots.get(word) else { return Ok(false) };
        self.push_edge(target, name)?;
        Ok(true)
    }

    pub(super) fn push_edge(&mut self, target: u32, name: EdgeName) -> Result<()> {
        if self.heap.edges.len() >= self.edges_max {
            return Err(Error::TooLarge);
        }
        self.heap.edges.push(Edge { target, name });
        Ok(())
    }

    pub(super) fn internal(&mut self, name: &str) -> EdgeName {
        EdgeName::text(EdgeKind::Internal, self.heap.strings.number(name))
    }

    pub(super) fn named(&mut self, kind: EdgeKind, name: &str) -> EdgeName {
        EdgeName::text(kind, self.heap.strings.number(name))
    }

    /// Name of a reference by the number of its id: a constant or a variable. What Ruby keeps under
    /// names of its own is plumbing.
    pub(super) fn attribute(&mut self, number: u64) -> EdgeName {
        if let Some(&known) = self.attributes.get(&number) {
            return known;
        }
        let name = self.ids.name(self.values, number).unwrap_or_default();
        let is_shown = name.starts_with(['@', '$']) || name.starts_with(char::is_uppercase);
        let attribute = if is_shown {
            self.named(EdgeKind::Attribute, &name)
        } else {
            self.internal(&format!("({name})"))
        };
        self.attributes.insert(number, attribute);
        attribute
    }

    pub(super) fn finish(mut self) -> ManagedHeap {
        self.heap.collections.sort_unstable();
        self.heap.collections.dedup();
        self.heap
    }
}
