//! Objects that may be others at the addresses of earlier ones.
//!
//! ```text
//!  before   Quote @16 ── symbol ──> "A" @64     ── price ──> 1.5 @96     both held by it alone
//!  after    Quote @16 ── symbol ──> "B" @64     ── price ──> 2.5 @128    nothing is left of them
//! ```
//! Address and class are the same, and nothing else is: it is another object, or the same one with
//! other contents. Memory does not tell which.

use std::cell::OnceCell;

use rustc_hash::FxHashSet;

use super::{HeapView, Matching, NOT_THERE};
use crate::{EdgeKind, NodeKind};

/// Finds the nodes of the later snapshot whose named references show other contents.
pub(super) fn refilled(before: &impl HeapView, after: &impl HeapView, matching: &Matching) -> Vec<u32> {
    let Some(dialect) = after.meta().dialect.as_ref() else { return Vec::new() };
    let graph = before.graph();
    let mut holders = vec![0_u8; graph.node_count() as usize];
    for edge in (0..graph.node_count()).flat_map(|node| graph.edges(node)) {
        let count = &mut holders[graph.target(edge) as usize];
        *count = count.saturating_add(1);
    }
    let is_told = |id: u64| dialect.is_told_by_contents(id);
    let is_refilled = |&new: &u32| {
        let old = matching.earlier[new as usize];
        if old == NOT_THERE || is_told(after.id(new)) || after.kind(new) != NodeKind::OBJECT {
            return false;
        }
        // A large dict that was filled anew may have lost each of its values to another one.
        let held: OnceCell<FxHashSet<u32>> = OnceCell::new();
        let mut lost_count = 0;
        for edge in graph.edges(old) {
            let is_named = matches!(before.edge_kind(edge), EdgeKind::PROPERTY | EdgeKind::CONTEXT);
            let target = graph.target(edge);
            // What others hold, too, says nothing, and neither does what may be refilled itself.
            if !is_named || holders[target as usize] != 1 || !is_told(before.id(target)) {
                continue;
            }
            let later = matching.later[target as usize];
            let held = || held.get_or_init(|| after.graph().targets_of(new).collect());
            if later != NOT_THERE && held().contains(&later) {
                return false;
            }
            lost_count += 1;
        }
        lost_count > 0
    };
    (0..after.graph().node_count()).filter(is_refilled).collect()
}
