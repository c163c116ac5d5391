//! The node of the cached stack. It is found by the hash of its path; if it is new, it is made
//! together with missing outer nodes.

use crate::frames::cached_stack::CachedStack;
use crate::modules;
use crate::tree;

/// Prefetches the entry of a path that is about to be looked up among the nodes that the thread
/// remembers. (Prefetching the large table's entry too is no faster on clang than waiting for it
/// later. The miss is that of the address translation.)
#[inline(always)]
pub(crate) fn prefetch(kept: &CachedStack, hash: u64) {
    // SAFETY: null, or a table of this level alone, which is never unmapped.
    if let Some(shortcuts) = unsafe { kept.shortcuts.as_ref() } {
        shortcuts.prefetch_node(hash);
    }
}

/// Gives the fresh frames, which are stored innermost first, the hashes of their paths, as frames
/// that follow the `base` cached ones. The cached stack gets the hash of the innermost one.
///
/// # Safety
/// 1. `base` frames are cached and `fresh` ones unwound.
#[inline(always)]
pub(crate) unsafe fn hash_fresh(kept: &mut CachedStack, base: usize, fresh: usize) {
    let salt = modules::salt();
    if kept.hashed < base {
        kept.settle_hashes();
    }
    let mut hash = match base.checked_sub(1) {
        // SAFETY: (1).
        Some(top) => unsafe { kept.frame(top).hash },
        None => tree::ROOT_HASH,
    };
    for number in 0..fresh {
        // SAFETY: (1).
        let frame = unsafe { &mut *kept.fresh.add(fresh - 1 - number) };
        hash = tree::path_hash(hash, base.wrapping_add(number), frame.pc as u64, salt);
        frame.hash = hash;
    }
    kept.path_hash = hash;
    // The frames are moved while the entry is loaded.
    prefetch(kept, hash);
}

/// Finds or makes the node of the cached stack, of which the outer `shared` frames have nodes. A
/// stack that gets no node is dropped from the cache, so that the next such stack is counted as
/// lost again.
#[inline(always)]
pub(crate) fn enter(kept: &mut CachedStack, shared: usize) {
    kept.last_suffix = core::ptr::null();
    kept.node = if kept.depth == 0 { tree::ROOT } else { of(kept, shared) };
    if kept.node == tree::ROOT {
        kept.depth = 0;
    }
    kept.proof_epoch = if kept.depth == 0 || kept.is_unprovable { 0 } else { kept.code_epoch };
}

/// Returns the node of the cached stack, of which the outer `shared` frames have nodes.
#[inline(always)]
fn of(kept: &mut CachedStack, shared: usize) -> u32 {
    let hash = kept.path_hash;
    // SAFETY: null, or a table of this level alone, which is never unmapped.
    let known = match unsafe { kept.shortcuts.as_mut() } {
        Some(shortcuts) => shortcuts.node(hash),
        None => tree::find(hash),
    };
    known.unwrap_or_else(|| add_nodes(kept, shared))
}

/// Makes the missing nodes of the cached stack, and returns the innermost one's. A node's ancestors
/// exist wherever it exists itself. So of those that the stack shares with the one before only the
/// innermost is looked up.
#[cold]
#[inline(never)]
fn add_nodes(kept: &mut CachedStack, shared: usize) -> u32 {
    kept.settle_hashes();
    // SAFETY: below the depth.
    let hash_of = |index: usize| unsafe { kept.frame(index).hash };
    let known = shared.checked_sub(1).and_then(|index| tree::find(hash_of(index)));
    let (mut node, mut first_new) = match known {
        Some(node) => (node, shared),
        None => (tree::ROOT, 0),
    };
    // The innermost is known to be new.
    while first_new.wrapping_add(1) < kept.depth
        && let Some(known) = tree::find(hash_of(first_new))
    {
        node = known;
        first_new = first_new.wrapping_add(1);
    }
    (first_new..kept.depth).for_each(|index| tree::prefetch_node(hash_of(index)));
    for index in first_new..kept.depth {
        // SAFETY: below the depth.
        let (pc, hash) = unsafe { (kept.frame(index).pc, kept.frame(index).hash) };
        let Some(added) = tree::add(node, pc as u64, hash) else { return tree::ROOT };
        node = added;
    }
    node
}
