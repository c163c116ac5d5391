//! Heaps that a program has of its own (pools, arenas) and tells of: their names, and what is in
//! them, so that all of it is free when they go.

use std::collections::{HashMap, HashSet};

use heapr_trace::{HeapId, HeapName, ProcessIndex};
use heapr_wire::HEAP_MMAP;

/// Bytes of a name: four parts of sixteen.
const NAME_BYTES_MAX: usize = 64;
/// Names that one number is written with; a program that makes a new one for each arena is not
/// followed further.
const NAMES_MAX: usize = 64;

/// One number's heap.
#[derive(Debug, Default)]
struct OwnHeap {
    /// Parts of a name whose heap is not there yet.
    parts: Vec<u8>,
    /// Names that it had, in the file already.
    names: Vec<String>,
    blocks: HashSet<u64>,
}

/// The heaps of one process, by number.
#[derive(Debug, Default)]
pub(crate) struct OwnHeaps {
    heaps: HashMap<u8, OwnHeap>,
}

impl OwnHeaps {
    /// Whether a heap is the program's own.
    #[inline(always)]
    pub(crate) fn is_own(heap: u8) -> bool {
        heap > HEAP_MMAP
    }

    /// A part of a name: they come in order.
    pub(crate) fn name_part(&mut self, heap: u8, part: u64, bytes: [u8; 16]) {
        let heap = self.heaps.entry(heap).or_default();
        if part == 0 {
            heap.parts.clear();
        }
        if heap.parts.len() < NAME_BYTES_MAX {
            heap.parts.extend(bytes.iter().take_while(|&&byte| byte != 0));
        }
    }

    /// A heap was made; its name, if the file does not have it yet. What an earlier one of the
    /// number left is told too: its end was lost.
    pub(crate) fn created(
        &mut self,
        process: ProcessIndex,
        heap: u8,
        first_ns: u64,
    ) -> (Option<HeapName>, Vec<u64>) {
        let own = self.heaps.entry(heap).or_default();
        let left = std::mem::take(&mut own.blocks).into_iter().collect();
        let name = String::from_utf8_lossy(&std::mem::take(&mut own.parts)).into_owned();
        if own.names.len() >= NAMES_MAX || own.names.contains(&name) {
            return (None, left);
        }
        own.names.push(name.clone());
        (Some(HeapName { process, heap: HeapId(heap), name, first_ns }), left)
    }

    pub(crate) fn added(&mut self, heap: u8, address_avma: u64) {
        self.heaps.entry(heap).or_default().blocks.insert(address_avma);
    }

    pub(crate) fn removed(&mut self, heap: u8, address_avma: u64) {
        if let Some(own) = self.heaps.get_mut(&heap) {
            own.blocks.remove(&address_avma);
        }
    }

    /// A heap is gone: its blocks, in order.
    pub(crate) fn destroyed(&mut self, heap: u8) -> Vec<u64> {
        let blocks = self.heaps.get_mut(&heap).map(|own| std::mem::take(&mut own.blocks)).unwrap_or_default();
        let mut blocks: Vec<u64> = blocks.into_iter().collect();
        blocks.sort_unstable();
        blocks
    }

    /// The names that a forked child goes on with. Its blocks are its parent's, as with any heap.
    pub(crate) fn for_child(&self, child: ProcessIndex, first_ns: u64) -> (Self, Vec<HeapName>) {
        let mut heaps = Self::default();
        let mut names = Vec::new();
        for (&heap, own) in &self.heaps {
            let known = OwnHeap { names: own.names.clone(), ..OwnHeap::default() };
            heaps.heaps.insert(heap, known);
            let name =
                |name: &String| HeapName { process: child, heap: HeapId(heap), name: name.clone(), first_ns };
            names.extend(own.names.iter().map(name));
        }
        names.sort_by_key(|name| name.heap);
        (heaps, names)
    }
}
