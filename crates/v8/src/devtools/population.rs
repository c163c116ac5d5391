//! Data of a heap for comparisons: a few numbers per object, so that two large heaps need not be in
//! memory at once.

use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashMap, FxHasher};

use crate::NodeKind;
use crate::devtools::Heap;
use crate::devtools::classes::Classes;
use crate::devtools::interfaces::InterfaceDefinition;
use crate::objects::{CaptureMode, Class, ScriptPaths};

/// Objects of a heap with their classes, ids and sizes.
#[derive(Debug)]
pub struct Population {
    classes: Vec<Class>,
    class_of: Vec<u32>,
    ids: Wide,
    self_bytes: Wide,
    /// Hash of each node's kind and name; 0 for native nodes, whose names may change.
    likes: Vec<u32>,
    /// Whether ids are numbers that V8 gives; ids of other languages' heaps are addresses.
    is_numbered: bool,
    mode: CaptureMode,
    script_paths: ScriptPaths,
    interfaces: Vec<InterfaceDefinition>,
    greatest_own_id: u64,
}

/// Numbers of which few need more than 32 bits.
#[derive(Debug, Default)]
struct Wide {
    narrow: Vec<u32>,
    wide: FxHashMap<u32, u64>,
}

impl Wide {
    fn of(node_count: u32, number: impl Fn(u32) -> u64) -> Self {
        let mut wide = FxHashMap::default();
        let narrow = (0..node_count).map(|node| {
            let number = number(node);
            u32::try_from(number).ok().filter(|&narrow| narrow != u32::MAX).unwrap_or_else(|| {
                wide.insert(node, number);
                u32::MAX
            })
        });
        Self { narrow: narrow.collect(), wide }
    }

    #[inline]
    fn get(&self, node: u32) -> u64 {
        match self.narrow[node as usize] {
            u32::MAX => self.wide.get(&node).copied().unwrap_or(0),
            narrow => u64::from(narrow),
        }
    }
}

impl Population {
    /// Collects the objects of `heap`. Plain objects are classified by the heap's own interfaces,
    /// or by those of the heap that it is compared with.
    pub fn of(heap: &Heap, interfaces: Option<&[InterfaceDefinition]>) -> Self {
        let own;
        let classes = match interfaces {
            None => heap.classes(),
            Some(_) => {
                own = Classes::of(heap.snapshot(), interfaces);
                &own
            }
        };
        let snapshot = heap.snapshot();
        let node_count = snapshot.node_count();
        let hashes: Vec<u32> = (0..snapshot.strings().count())
            .map(|number| {
                let mut hasher = FxHasher::default();
                snapshot.strings().get(number).hash(&mut hasher);
                (hasher.finish() >> 32) as u32
            })
            .collect();
        let likes = (0..node_count).map(|node| match snapshot.kind(node) {
            NodeKind::NATIVE => 0,
            kind => {
                let name = hashes.get(snapshot.name_number(node) as usize).copied().unwrap_or(0);
                (name ^ u32::from(kind.number()).wrapping_mul(0x9e37_79b9)).max(1)
            }
        });
        let ids = Wide::of(node_count, |node| snapshot.id(node));
        Self {
            class_of: classes.of_nodes().to_vec(),
            likes: likes.collect(),
            is_numbered: snapshot.meta().dialect.is_none(),
            greatest_own_id: heap.max_js_id(),
            ids,
            self_bytes: Wide::of(node_count, |node| snapshot.self_bytes(node)),
            mode: heap.mode(),
            script_paths: ScriptPaths::of(snapshot).with_maps(heap.source_maps()),
            interfaces: classes.interfaces().to_vec(),
            classes: classes.all().to_vec(),
        }
    }

    /// Number of nodes.
    pub fn node_count(&self) -> u32 {
        self.class_of.len() as u32
    }

    /// Interfaces by which plain objects were classified.
    pub fn interfaces(&self) -> &[InterfaceDefinition] {
        &self.interfaces
    }

    /// Capture mode of the snapshot.
    pub fn mode(&self) -> CaptureMode {
        self.mode
    }

    /// Paths of the snapshot's scripts.
    pub fn script_paths(&self) -> &ScriptPaths {
        &self.script_paths
    }

    /// Greatest id of a JavaScript object.
    pub fn max_js_id(&self) -> u64 {
        self.greatest_own_id
    }

    /// Returns each class that has objects, with their number and bytes.
    pub fn class_sizes(&self) -> Vec<(&Class, u64, u64)> {
        let mut sizes = vec![(0u64, 0u64); self.classes.len()];
        for node in 0..self.node_count() {
            let bytes = self.self_bytes(node);
            if bytes != 0 {
                let size = &mut sizes[self.class_of(node) as usize];
                *size = (size.0 + 1, size.1.saturating_add(bytes));
            }
        }
        let named = self.classes.iter().zip(sizes).filter(|&(_, (count, _))| count > 0);
        named.map(|(class, (count, bytes))| (class, count, bytes)).collect()
    }

    /// Whether ids are numbers that V8 gives.
    pub fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    pub(crate) fn classes(&self) -> &[Class] {
        &self.classes
    }

    #[inline]
    pub(crate) fn class_of(&self, node: u32) -> u32 {
        self.class_of[node as usize]
    }

    #[inline]
    pub(crate) fn self_bytes(&self, node: u32) -> u64 {
        self.self_bytes.get(node)
    }

    #[inline]
    pub(crate) fn id(&self, node: u32) -> u64 {
        self.ids.get(node)
    }

    /// Value that is equal for objects of one kind and name; `None` for native nodes, whose names
    /// may change.
    pub(crate) fn likeness(&self, node: u32) -> Option<u32> {
        match self.likes[node as usize] {
            0 => None,
            like => Some(like),
        }
    }
}
