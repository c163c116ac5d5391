//! Flame graphs: how much was allocated below each frame, from the program's start down.
//!
//! The symbol tree is the graph already: amounts are added at the node of each stack and carried up, as callers have smaller
//! numbers. Where recursion is collapsed or only what lies below one frame is wanted, the nodes are mapped to those of a
//! smaller tree first, whatever the filter, so that a node keeps its number.

use hashbrown::HashMap;

use heapr_query::engine::SymbolTree;
use heapr_query::{CullList, GroupBy, Metrics, Result};

use crate::explorer::{Explorer, FrameNumber, Node};
use crate::selection::Selection;

/// What a flame graph is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// Bytes not freed.
    OutstandingBytes,
    /// Allocations not freed.
    OutstandingCount,
    /// Bytes.
    TotalBytes,
    /// Allocations.
    TotalCount,
    /// Bytes live at the peak.
    PeakBytes,
    /// Allocations live at the peak.
    PeakCount,
    /// Temporary allocations.
    TemporaryCount,
    /// Reallocations.
    ReallocCount,
}

impl Value {
    /// The amount.
    #[must_use]
    pub fn of(self, metrics: &Metrics) -> u64 {
        match self {
            Self::OutstandingBytes => metrics.outstanding_bytes,
            Self::OutstandingCount => metrics.outstanding_count,
            Self::TotalBytes => metrics.total_bytes,
            Self::TotalCount => metrics.total_count,
            Self::PeakBytes => metrics.peak_bytes,
            Self::PeakCount => metrics.peak_count,
            Self::TemporaryCount => metrics.temporary_count,
            Self::ReallocCount => metrics.realloc_count,
        }
    }
}

/// What of a flame graph is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct FlameQuery {
    /// Of what.
    pub value: Value,
    /// From the allocating frame to its callers, in place of from the program's start down.
    pub is_bottom_up: bool,
    /// A frame that calls itself directly is one.
    pub collapses_recursion: bool,
    /// Only what lies below (bottom up: above) this frame: from its outermost (innermost) occurrence in each stack.
    pub focus: Option<FrameNumber>,
    /// Only what lies below this node of an earlier answer.
    pub root: Option<(u32, u32)>,
    /// Nodes with less than this share of the root are left out.
    pub least_share: f64,
    /// Most nodes.
    pub nodes_max: usize,
}

/// A node of a [`FlameTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlameNode {
    /// For [`FlameQuery::root`].
    pub key: (u32, u32),
    /// Index of the node above; `None` for the first.
    pub parent: Option<usize>,
    /// Its frame; `None` for the whole.
    pub frame: Option<FrameNumber>,
    /// What was allocated below it.
    pub value: u64,
    /// What ends in it.
    pub self_value: u64,
    /// What belongs to nodes below it that were left out.
    pub left_out: u64,
}

/// Nodes, each after the one above it, siblings by value, the greatest first. Node 0 is the whole, the focus or the root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlameTree {
    /// The nodes.
    pub nodes: Vec<FlameNode>,
    /// Nodes in all, those left out among them; bottom up only those that were looked at.
    pub node_count: usize,
}

/// A tree of frames: parents have smaller numbers than their children; node 0 is above all.
pub(crate) struct FrameTree {
    pub(crate) parents: Vec<u32>,
    pub(crate) frames: Vec<u32>,
    /// By node of the symbol tree; [`OUTSIDE`]: it is not in this tree.
    pub(crate) node_of: Vec<u32>,
}

/// No frame, no node.
pub(crate) const OUTSIDE: u32 = u32::MAX;

impl FrameTree {
    /// The symbol tree as it is, with recursion collapsed, or below a frame.
    pub(crate) fn new(tree: &SymbolTree, collapses_recursion: bool, focus: Option<FrameNumber>) -> Self {
        let count = tree.len() as u32;
        let frame_of = |node: Node| tree.frame(node).map_or(OUTSIDE, |frame| frame.0);
        if !collapses_recursion && focus.is_none() {
            return Self {
                parents: (0..count).map(|node| if node == 0 { 0 } else { tree.parent(node) }).collect(),
                frames: (0..count).map(frame_of).collect(),
                node_of: (0..count).collect(),
            };
        }
        let first_frame = focus.map_or(OUTSIDE, |focus| focus.0);
        let mut made = Self { parents: vec![0], frames: vec![first_frame], node_of: Vec::new() };
        made.node_of.reserve(count as usize);
        made.node_of.push(if focus.is_some() { OUTSIDE } else { 0 });
        let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
        for node in 1..count {
            let (frame, above) = (frame_of(node), made.node_of[tree.parent(node) as usize]);
            let number = if above == OUTSIDE {
                if frame == first_frame { 0 } else { OUTSIDE }
            } else if collapses_recursion && made.frames[above as usize] == frame {
                above
            } else {
                let (parents, frames) = (&mut made.parents, &mut made.frames);
                *numbers.entry((above, frame)).or_insert_with(|| {
                    parents.push(above);
                    frames.push(frame);
                    frames.len() as u32 - 1
                })
            };
            made.node_of.push(number);
        }
        made
    }
}

impl Explorer {
    /// A flame graph of what was selected.
    ///
    /// # Errors
    /// Never for what [`Explorer::select`] made.
    pub fn flame(&self, selection: &Selection, cull: &CullList, query: &FlameQuery) -> Result<FlameTree> {
        if query.is_bottom_up {
            return self.inverted_flame(selection, cull, query);
        }
        let tree = FrameTree::new(self.tree(), query.collapses_recursion, query.focus);
        let mut own = vec![0_u64; tree.parents.len()];
        self.culled(selection, cull, GroupBy::Stacks)?.for_each(|row, stack| {
            let node = tree.node_of[stack as usize];
            if node != OUTSIDE {
                let amount = &mut own[node as usize];
                *amount = amount.saturating_add(query.value.of(&Metrics::of(row)));
            }
        })?;
        Ok(tree.flame(&own, query))
    }
}

impl FrameTree {
    /// The graph of amounts that end in nodes.
    pub(crate) fn flame(&self, own: &[u64], query: &FlameQuery) -> FlameTree {
        let mut whole = own.to_vec();
        for node in (1..whole.len()).rev() {
            let above = self.parents[node] as usize;
            whole[above] = whole[above].saturating_add(whole[node]);
        }
        let root = query.root.map_or(0, |(node, _)| node as usize);
        if root >= whole.len() {
            return FlameTree::default();
        }
        // Only what lies below the root.
        let mut is_inside = vec![false; whole.len()];
        is_inside[root] = true;
        let least = ((whole[root] as f64 * query.least_share) as u64).max(1);
        let mut kept: Vec<u32> = Vec::new();
        let mut node_count = 1;
        for node in root + 1..whole.len() {
            is_inside[node] = is_inside[self.parents[node] as usize] && whole[node] > 0;
            if is_inside[node] {
                node_count += 1;
                if whole[node] >= least {
                    kept.push(node as u32);
                }
            }
        }
        // The greatest; of equal ones the lower number, which is the one above.
        let most = query.nodes_max.saturating_sub(1);
        let order = |&node: &u32| (std::cmp::Reverse(whole[node as usize]), node);
        if kept.len() > most {
            kept.select_nth_unstable_by_key(most, order);
            kept.truncate(most);
        }
        kept.sort_unstable_by_key(order);
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for &node in kept.iter().rev() {
            children.entry(self.parents[node as usize]).or_default().push(node);
        }
        let mut nodes: Vec<FlameNode> = Vec::with_capacity(kept.len() + 1);
        let mut pending: Vec<(u32, Option<usize>)> = vec![(root as u32, None)];
        while let Some((node, parent)) = pending.pop() {
            let at = nodes.len();
            let (value, self_value) = (whole[node as usize], own[node as usize]);
            if let Some(parent) = parent {
                let above: &mut FlameNode = &mut nodes[parent];
                above.left_out = above.left_out.saturating_sub(value);
            }
            let frame = self.frames[node as usize];
            nodes.push(FlameNode {
                key: (node, 0),
                parent,
                frame: (frame != OUTSIDE).then_some(FrameNumber(frame)),
                value,
                self_value,
                left_out: value.saturating_sub(self_value),
            });
            let below = children.remove(&node).unwrap_or_default();
            pending.extend(below.into_iter().map(|child| (child, Some(at))));
        }
        FlameTree { nodes, node_count }
    }
}
