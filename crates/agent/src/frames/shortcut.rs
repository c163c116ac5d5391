//! What a thread remembers of its recent stacks: their suffixes ([`crate::frames::suffix`]), their
//! nodes and their frames' rules; and the kept one's words in pairs.

use heapr_ring::sys;

use crate::frames::known_rules::KnownRules;
use crate::frames::suffix_table::SuffixTable;
use crate::frames::word_pairs::WordPairs;
use crate::tree;
use crate::x86_64::prefetch;

/// Stacks whose nodes a thread remembers: 64 KiB, which stay in the second-level cache where the
/// tree's table does not (clang: 146,000 stacks all over 32 MiB, 70 ns a lookup).
const NODES: usize = 1 << 12;

/// A stack's node. All zero: none.
#[derive(Clone, Copy)]
#[repr(C)]
struct KnownNode {
    hash: u64,
    node: u32,
}

/// What a thread remembers. All zero: nothing.
#[repr(C, align(64))]
pub(crate) struct Shortcuts {
    pub(crate) suffixes: SuffixTable,
    nodes: [KnownNode; NODES],
    pub(crate) rules: KnownRules,
    /// The kept stack's words, if it says so.
    pub(crate) pairs: WordPairs,
}

impl Shortcuts {
    #[cold]
    #[inline(never)]
    pub(crate) fn allocate() -> *mut Self {
        let Ok(memory) = sys::map_anonymous(size_of::<Self>(), false) else { return core::ptr::null_mut() };
        let shortcuts = memory.cast::<Self>();
        // SAFETY: a mapping of this size, all zero: valid, and of this level alone.
        if unsafe { (*shortcuts).suffixes.prepare() } {
            return shortcuts;
        }
        // SAFETY: the mapping made above, to which nothing refers.
        unsafe { sys::unmap(memory, size_of::<Self>()) };
        core::ptr::null_mut()
    }

    /// The node of the path with this hash is about to be looked up: its entry is pulled into the
    /// caches.
    #[inline(always)]
    pub(crate) fn prefetch_node(&self, hash: u64) {
        if let Some(known) = self.nodes.get((hash >> 32) as usize % NODES) {
            prefetch(core::ptr::from_ref(known).addr());
        }
    }

    /// The node of the path with this hash, looked up in the tree only if it is not remembered.
    #[inline(always)]
    pub(crate) fn node(&mut self, hash: u64) -> Option<u32> {
        let Some(known) = self.nodes.get_mut((hash >> 32) as usize % NODES) else { return tree::find(hash) };
        if known.hash != hash {
            *known = KnownNode { hash, node: tree::find(hash)? };
        }
        Some(known.node)
    }
}
