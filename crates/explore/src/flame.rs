//! Flame graphs: amounts allocated below each frame, from the program's start down.
//!
//! The symbol tree is already the graph. Amounts are added at the node of each stack and carried
//! up, because callers have smaller numbers. Recursion may be collapsed, or the graph limited to a
//! frame's descendants. Then nodes are first mapped to those of a smaller tree. The mapping is
//! independent of the filter, so that a node's number is stable.

use std::borrow::Cow;

use heapr_query::engine::{depth_first, greatest};
use heapr_query::{CullList, GroupBy, Metric, Result};
use heapr_trace::Estimate;

use crate::explorer::Explorer;
use crate::frame_number::FrameNumber;
pub(crate) use crate::frame_tree::{FrameTree, OUTSIDE};
use crate::selection::Selection;

/// Options of a flame graph.
#[derive(Debug, Clone, PartialEq)]
pub struct FlameQuery {
    /// Metric of the values.
    pub value: Metric,
    /// True for a graph from the allocating frame to its callers, instead of from the program's
    /// start down.
    pub is_bottom_up: bool,
    /// True if direct recursion is shown as one frame.
    pub collapses_recursion: bool,
    /// Limits the graph to the part below this frame (bottom up: above it). The part begins at the
    /// outermost (bottom up: innermost) occurrence in each stack.
    pub focus: Option<FrameNumber>,
    /// Limits the graph to the part below this node of an earlier answer.
    pub root: Option<(u32, u32)>,
    /// Least share of the root; smaller nodes are left out.
    pub least_share: f64,
    /// Largest number of nodes.
    pub nodes_max: usize,
}

/// A node of a [`FlameTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlameNode {
    /// Key for [`FlameQuery::root`].
    pub key: (u32, u32),
    /// Index of the node above; `None` for the first.
    pub parent: Option<usize>,
    /// Frame of the node; `None` for the whole.
    pub frame: Option<FrameNumber>,
    /// Amount allocated below the node.
    pub value: Estimate,
    /// Amount of stacks that end in the node.
    pub self_value: Estimate,
    /// Amount of nodes below that were left out.
    pub left_out: Estimate,
}

/// Nodes, each after the one above; siblings are ordered by value, the greatest first. Node 0 is
/// the whole, the focus or the root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlameTree {
    /// The nodes.
    pub nodes: Vec<FlameNode>,
    /// Number of all nodes, including those left out; bottom up only the examined nodes.
    pub node_count: usize,
}

impl Explorer {
    /// The tree of frames for a flame graph; cached without a focus.
    pub(crate) fn frame_tree(
        &self,
        collapses_recursion: bool,
        focus: Option<FrameNumber>,
    ) -> Cow<'_, FrameTree> {
        let make = || FrameTree::new(self.tree(), collapses_recursion, focus);
        match focus {
            Some(_) => Cow::Owned(make()),
            None => Cow::Borrowed(self.frame_trees[usize::from(collapses_recursion)].get_or_init(make)),
        }
    }

    /// A flame graph of a selection.
    ///
    /// # Errors
    /// Never fails for results of [`Explorer::select`].
    pub fn flame(&self, selection: &Selection, cull: &CullList, query: &FlameQuery) -> Result<FlameTree> {
        if query.is_bottom_up {
            return self.inverted_flame(selection, cull, query);
        }
        let tree = self.frame_tree(query.collapses_recursion, query.focus);
        let mut own = vec![Sides::default(); tree.parents.len()];
        self.culled(selection, cull, GroupBy::Stacks)?.for_each(|row, stack| {
            let node = tree.node_of[stack as usize];
            if node != OUTSIDE {
                own[node as usize][0] += query.value.estimate(&row.amounts);
            }
        })?;
        Ok(tree.top_down(&own, query).0)
    }
}

impl FrameTree {
    /// The graph of amounts that end in nodes, and the amounts of both sides for each node. A node
    /// is as wide as the greater of its sides.
    pub(crate) fn top_down(&self, own: &[Sides], query: &FlameQuery) -> (FlameTree, Vec<Sides>) {
        let mut whole = own.to_vec();
        for node in (1..whole.len()).rev() {
            let sides = whole[node];
            add(&mut whole[self.parents[node] as usize], sides);
        }
        let root = query.root.map_or(0, |(node, _)| node);
        if root as usize >= whole.len() {
            return (FlameTree::default(), Vec::new());
        }
        let width = |node: u32| wider(whole[node as usize]).value;
        // Only nodes below the root.
        let mut is_inside = vec![false; whole.len()];
        is_inside[root as usize] = true;
        let least = ((width(root) as f64 * query.least_share) as u64).max(1);
        let mut kept: Vec<u32> = Vec::new();
        let mut node_count = 1;
        for node in root + 1..whole.len() as u32 {
            is_inside[node as usize] = is_inside[self.parents[node as usize] as usize] && width(node) > 0;
            if is_inside[node as usize] {
                node_count += 1;
                if width(node) >= least {
                    kept.push(node);
                }
            }
        }
        let order = greatest(kept, query.nodes_max.saturating_sub(1), width);
        let placed = depth_first(root, &order, |node| self.parents[node as usize]);
        let mut nodes: Vec<FlameNode> = Vec::with_capacity(placed.len());
        for place in &placed {
            let [value, self_value] = [&whole[..], own].map(|sides| wider(sides[place.node as usize]));
            if let Some(parent) = place.parent {
                let above: &mut FlameNode = &mut nodes[parent];
                above.left_out = above.left_out.without(value);
            }
            let frame = self.frames[place.node as usize];
            nodes.push(FlameNode {
                key: (place.node, 0),
                parent: place.parent,
                frame: (frame != OUTSIDE).then_some(FrameNumber(frame)),
                value,
                self_value,
                left_out: value.without(self_value),
            });
        }
        let sides = placed.iter().map(|place| whole[place.node as usize]).collect();
        (FlameTree { nodes, node_count }, sides)
    }
}

/// Amounts of the two sides of a comparison; for a single selection the second is 0.
pub(crate) type Sides = [Estimate; 2];

/// Adds the amounts of both sides.
pub(crate) fn add(sum: &mut Sides, more: Sides) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// The greater side.
pub(crate) fn wider([one, other]: Sides) -> Estimate {
    if other.value > one.value { other } else { one }
}
