//! The node of the kept stack: found by the hash of its path, made with those outwards of it if it
//! is new.

use crate::frames::kept_stack::Kept;
use crate::modules;
use crate::tree;

/// The node of the path with this hash is about to be looked up among those that the thread
/// remembers. (To prefetch the large table's entry too took clang as much time as waiting for it
/// does where it is needed: what it misses is the translation of the address.)
#[inline(always)]
pub(crate) fn prefetch(kept: &Kept, hash: u64) {
    // SAFETY: null, or a table of this level alone, which is never unmapped.
    if let Some(shortcuts) = unsafe { kept.shortcuts.as_ref() } {
        shortcuts.prefetch_node(hash);
    }
}

/// Gives the fresh frames, which lie innermost first, the hashes of their paths, as those that
/// follow the `base` kept ones, and the kept stack the innermost one's.
///
/// # Safety
/// 1. `base` frames are kept and `fresh` ones unwound.
#[inline(always)]
pub(crate) unsafe fn hash_fresh(kept: &mut Kept, base: usize, fresh: usize) {
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
    // The frames are moved while the entry is on its way.
    prefetch(kept, hash);
}

/// Numbers the kept stack, of which the outer `shared` frames have nodes. One that gets none is no
/// longer kept, so that the next such stack is counted as lost again.
#[inline(always)]
pub(crate) fn enter(kept: &mut Kept, shared: usize) {
    (kept.comparing, kept.last_suffix) = (0, core::ptr::null());
    kept.node = if kept.depth == 0 { tree::ROOT } else { of(kept, shared) };
    if kept.node == tree::ROOT {
        kept.depth = 0;
    }
    kept.proof_epoch = if kept.depth == 0 || kept.is_unprovable { 0 } else { kept.code_epoch };
}

/// The node of the kept stack, of which the outer `shared` frames have nodes.
#[inline(always)]
fn of(kept: &mut Kept, shared: usize) -> u32 {
    let hash = kept.path_hash;
    // SAFETY: null, or a table of this level alone, which is never unmapped.
    let known = match unsafe { kept.shortcuts.as_mut() } {
        Some(shortcuts) => shortcuts.node(hash),
        None => tree::find(hash),
    };
    known.unwrap_or_else(|| add_nodes(kept, shared))
}

/// Makes the nodes of the kept stack that do not exist yet, and gives the innermost one's. A node's
/// ancestors are there wherever it is itself, so that those which the stack shares with the one
/// before are not looked up, but for the innermost of them.
#[cold]
#[inline(never)]
fn add_nodes(kept: &mut Kept, shared: usize) -> u32 {
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
