//! A thread's memory of its recent stacks: their suffixes ([`crate::frames::suffix`]), their nodes
//! and their frames' rules.

use heapr_ring::sys;

use crate::arch::prefetch;
use crate::frames::known_rules::KnownRules;
use crate::frames::suffix_table::SuffixTable;
use crate::tree;

/// Number of stacks whose nodes a thread remembers: 64 KiB, which stay in the second-level cache.
/// The tree's table does not (clang: 146,000 stacks spread over 32 MiB, 70 ns a lookup).
const NODES: usize = 1 << 12;

/// A stack's node. All zero: free.
#[derive(Clone, Copy)]
#[repr(C)]
struct KnownNode {
    hash: u64,
    node: u32,
}

/// The tables of a thread. All zero: empty.
#[repr(C, align(64))]
pub(crate) struct Shortcuts {
    pub(crate) suffixes: SuffixTable,
    nodes: [KnownNode; NODES],
    pub(crate) rules: KnownRules,
}

impl Shortcuts {
    #[cold]
    #[inline(never)]
    pub(crate) fn allocate() -> *mut Self {
        let Ok(memory) = sys::map_anonymous(size_of::<Self>(), false) else { return core::ptr::null_mut() };
        let shortcuts = memory.cast::<Self>();
        // SAFETY: a mapping of this size, all zero, which is a valid value, and used by this level
        // alone.
        if unsafe { (*shortcuts).suffixes.prepare() } {
            return shortcuts;
        }
        // SAFETY: the mapping made above, to which no reference exists.
        unsafe { sys::unmap(memory, size_of::<Self>()) };
        core::ptr::null_mut()
    }

    /// Prefetches the entry of the path with this hash, because its node is about to be looked up.
    #[inline(always)]
    pub(crate) fn prefetch_node(&self, hash: u64) {
        if let Some(known) = self.nodes.get((hash >> 32) as usize % NODES) {
            prefetch(core::ptr::from_ref(known).addr());
        }
    }

    /// Returns the node of the path with this hash, which is looked up in the tree only if it is
    /// not remembered.
    #[inline(always)]
    pub(crate) fn node(&mut self, hash: u64) -> Option<u32> {
        let Some(known) = self.nodes.get_mut((hash >> 32) as usize % NODES) else { return tree::find(hash) };
        if known.hash != hash {
            *known = KnownNode { hash, node: tree::find(hash)? };
        }
        Some(known.node)
    }
}
