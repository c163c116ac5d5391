//! Native memory by what holds it: the variable of a module, class or frame below which blocks are.
//!
//! ```text
//! (modules) ── module app ── THUMBS (dict) ── ndarray ── block    all blocks are held by THUMBS
//! (data of libz.so) ── block                                      by the data of libz.so
//! ```

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::heap_view::HeapView;
use super::naming::Naming;
use crate::{CallFunction, NodeKind};

/// Name of what holds blocks to which several ways lead.
const SEVERAL: &str = "(several together)";
/// Beginning of the name of a module's object.
const MODULE: &str = "module ";

/// Holder of native memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeHolder {
    /// Name of the holder.
    pub name: String,
    /// A node of that name.
    pub node: u32,
    /// Bytes of native blocks that would be freed with it.
    pub native_bytes: u64,
    /// Number of these blocks.
    pub block_count: u64,
    /// Bytes of all that would be freed with it.
    pub retained_bytes: u64,
    /// Functions that allocated most of the blocks, the innermost first; empty if unknown. (A heap
    /// that knows them has no index.)
    #[serde(skip)]
    pub allocated_by: Vec<CallFunction>,
    /// Bytes of blocks that these functions allocated.
    pub allocated_by_bytes: u64,
}

/// Sums of one holder's node.
#[derive(Debug, Default)]
struct Held {
    bytes: u64,
    count: u64,
    retained_bytes: u64,
    stacks: Stacks,
}

/// Bytes of blocks by the stack that allocated them, and an example.
type Stacks = FxHashMap<u32, (u64, u32)>;

/// Returns all holders of native blocks, those of most bytes first.
pub fn native_holders<H: HeapView>(heap: &H, naming: &Naming<'_, H>) -> Vec<NativeHolder> {
    let dominators = heap.dominators();
    let root = heap.root();
    // Holder of each node; at first the root.
    let mut holder = vec![root; heap.graph().node_count() as usize];
    let mut held: FxHashMap<u32, Held> = FxHashMap::default();
    for &node in dominators.order().iter().filter(|&&node| node != root) {
        let above = dominators.idom(node);
        let of = match () {
            () if above == root || is_passed(heap, above, dominators.idom(above) == root) => node,
            () => holder[above as usize],
        };
        holder[node as usize] = of;
        if is_block(heap, node) {
            // A block that no object holds belongs to what holds it, with all blocks below it.
            let is_outermost = is_block(heap, of);
            let owner = if is_outermost { dominators.idom(of) } else { of };
            let sums = held.entry(owner).or_default();
            sums.bytes = sums.bytes.saturating_add(heap.self_bytes(node));
            sums.count += 1;
            if is_outermost && of == node {
                sums.retained_bytes = sums.retained_bytes.saturating_add(heap.retained_bytes(node));
            }
            let stack = heap.trace_node_id(node);
            if stack != 0 {
                sums.stacks.entry(stack).or_insert((0, node)).0 += heap.self_bytes(node);
            }
        }
    }
    let mut by_name: FxHashMap<String, (NativeHolder, Stacks)> = FxHashMap::default();
    for (node, sums) in held {
        let name = match node == root {
            true => SEVERAL.to_owned(),
            false if is_row(heap, node) => heap.name(node).into_owned(),
            false => naming.call(node).whole(None),
        };
        let (found, stacks) = by_name.entry(name.clone()).or_insert_with(|| {
            let holder = NativeHolder {
                name,
                node,
                native_bytes: 0,
                block_count: 0,
                retained_bytes: 0,
                allocated_by: Vec::new(),
                allocated_by_bytes: 0,
            };
            (holder, Stacks::default())
        });
        found.native_bytes = found.native_bytes.saturating_add(sums.bytes);
        found.block_count += sums.count;
        let retained_bytes =
            if sums.retained_bytes > 0 { sums.retained_bytes } else { heap.retained_bytes(node) };
        found.retained_bytes = found.retained_bytes.saturating_add(retained_bytes);
        for (stack, (bytes, example)) in sums.stacks {
            let all = stacks.entry(stack).or_insert((0, example));
            *all = (all.0.saturating_add(bytes), all.1.min(example));
        }
    }
    let with_most = |(mut holder, stacks): (NativeHolder, Stacks)| {
        let most = stacks.values().max_by_key(|(bytes, example)| (*bytes, std::cmp::Reverse(*example)));
        if let Some(&(bytes, example)) = most {
            holder.allocated_by = heap.allocation_stack(example);
            holder.allocated_by_bytes = bytes;
        }
        holder
    };
    let mut all: Vec<NativeHolder> = by_name.into_values().map(with_most).collect();
    all.sort_by(|a, b| (b.native_bytes, &a.name).cmp(&(a.native_bytes, &b.name)));
    all
}

/// Whether a node is native memory: roots of that kind have no size.
fn is_block(heap: &impl HeapView, node: u32) -> bool {
    heap.kind(node) == NodeKind::NATIVE && heap.self_bytes(node) > 0
}

/// Whether a node is a row of the roots: modules, a thread, a frame.
pub(super) fn is_row(heap: &impl HeapView, node: u32) -> bool {
    let kind = heap.kind(node);
    kind == NodeKind::SYNTHETIC || kind == NodeKind::NATIVE && heap.self_bytes(node) == 0
}

/// Whether a holder is looked for below a node: rows of roots, and modules.
fn is_passed(heap: &impl HeapView, node: u32, is_below_root: bool) -> bool {
    let is_module = || heap.meta().dialect.is_some() && heap.name(node).starts_with(MODULE);
    is_below_root && is_row(heap, node) || is_module()
}
