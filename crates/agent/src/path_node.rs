//! The node of the kept stack: found by the hash of its path, made with those outwards of it if it is new.

use crate::kept_stack::Kept;
use crate::tree;

/// The node of the path with this hash is looked up soon, among those that the thread remembers. (To prefetch the large table's entry too
/// took clang as much time as waiting for it does where it is needed: what it misses is the translation of the address.)
#[inline(always)]
pub(crate) fn soon(kept: &Kept, hash: u64) {
    // SAFETY: null, or a table of this level alone, which is never unmapped.
    if let Some(shortcuts) = unsafe { kept.shortcuts.as_ref() } {
        shortcuts.node_soon(hash);
    }
}

/// The node of the kept stack.
#[inline(always)]
pub(crate) fn of(kept: &mut Kept) -> u32 {
    let hash = kept.path_hash;
    // SAFETY: null, or a table of this level alone, which is never unmapped.
    let known = match unsafe { kept.shortcuts.as_mut() } {
        Some(shortcuts) => shortcuts.node(hash),
        None => tree::find(hash),
    };
    known.unwrap_or_else(|| add_nodes(kept))
}

/// Makes the nodes of the kept stack that do not exist yet, and gives the innermost one's.
#[cold]
#[inline(never)]
fn add_nodes(kept: &mut Kept) -> u32 {
    kept.settle_hashes();
    let mut first_new = kept.depth;
    let mut node = tree::ROOT;
    while let Some(index) = first_new.checked_sub(1) {
        // SAFETY: below the depth.
        if let Some(known) = tree::find(unsafe { kept.frame(index).hash }) {
            node = known;
            break;
        }
        first_new = index;
    }
    for index in first_new..kept.depth {
        // SAFETY: below the depth.
        let (pc, hash) = unsafe { (kept.frame(index).pc, kept.frame(index).hash) };
        let Some(added) = tree::add(node, pc as u64, hash) else { return tree::ROOT };
        node = added;
    }
    node
}
