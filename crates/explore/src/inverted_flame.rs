//! Flame graphs from the allocating frame up to its callers.
//!
//! A node is a set of positions in the frame tree whose inner frames are equal. It is split by the
//! next caller; positions with the same caller node are merged. The greatest node is split first,
//! and nodes below the limit are never split. (The whole tree would have as many nodes as all
//! stacks have frames.)

use std::collections::BinaryHeap;

use heapr_query::engine::depth_first;
use heapr_query::{CullList, GroupBy, Result};
use heapr_trace::Estimate;

use crate::explorer::Explorer;
use crate::flame::{FlameNode, FlameQuery, FlameTree, FrameTree, OUTSIDE, Sides, add, wider};
use crate::frame_number::FrameNumber;
use crate::selection::Selection;

/// A position in the frame tree: the next frame of stacks that are equal up to there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) node: u32,
    /// Innermost node of one of the stacks. Together with the number of frames it identifies the
    /// graph's node.
    pub(crate) start: u32,
    pub(crate) amounts: Sides,
}

pub(crate) type Places = Vec<Place>;

/// A node that has not been split yet; ordered by value.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    value: u64,
    /// Number of the node; of equal values the first node comes first.
    number: std::cmp::Reverse<usize>,
    places: Places,
}

impl Explorer {
    pub(crate) fn inverted_flame(
        &self,
        selection: &Selection,
        cull: &CullList,
        query: &FlameQuery,
    ) -> Result<FlameTree> {
        let tree = self.frame_tree(query.collapses_recursion, None);
        // The innermost occurrence of the focus in each stack, as in `report --callers`: searched
        // before culling.
        let nearest = query.focus.map(|focus| tree.nearest(focus.0));
        let mut places: Places = Vec::new();
        let list = if nearest.is_some() { &CullList::empty() } else { cull };
        self.culled(selection, list, GroupBy::Stacks)?.for_each(|row, stack| {
            let node = tree.node_of[stack as usize];
            let node = nearest.as_ref().map_or(node, |nearest| nearest[node as usize]);
            let value = query.value.estimate(&row.amounts);
            if node != OUTSIDE && value.value > 0 {
                places.push(Place { node, start: node, amounts: [value, Estimate::default()] });
            }
        })?;
        Ok(inverted(&tree, places, query).0)
    }
}

impl FrameTree {
    /// Innermost occurrence of a frame on the path of each node, or [`OUTSIDE`].
    pub(crate) fn nearest(&self, frame: u32) -> Vec<u32> {
        let mut nearest = vec![OUTSIDE; self.frames.len()];
        for node in 1..nearest.len() {
            let is_it = self.frames[node] == frame;
            nearest[node] = if is_it { node as u32 } else { nearest[self.parents[node] as usize] };
        }
        nearest
    }
}

/// The graph, and the amounts of both sides for each node. A node is as wide as the greater of its
/// sides. With a focus, all positions have its frame.
pub(crate) fn inverted(tree: &FrameTree, mut places: Places, query: &FlameQuery) -> (FlameTree, Vec<Sides>) {
    let mut depth = 0;
    let mut frame = None;
    if let Some(focus) = query.focus {
        frame = Some(focus);
        depth = 1;
        step_up(tree, &mut places);
    }
    if let Some((node, root_depth)) = query.root {
        // The common frames of the root's positions are those of the position in its key.
        let mut common = node;
        for level in 0..root_depth {
            if common == 0 || common as usize >= tree.frames.len() {
                return (FlameTree::default(), Vec::new());
            }
            let wanted = tree.frames[common as usize];
            frame = Some(FrameNumber(wanted));
            common = tree.parents[common as usize];
            if level < depth {
                continue;
            }
            places.retain(|place| place.node != 0 && tree.frames[place.node as usize] == wanted);
            step_up(tree, &mut places);
        }
        depth = depth.max(root_depth);
    }
    let value = sum(&places);
    let least = ((value.value as f64 * query.least_share) as u64).max(1);
    let key = query.root.unwrap_or((0, 0));
    let none = Estimate::default();
    let mut nodes = vec![FlameNode { key, parent: None, frame, value, self_value: none, left_out: none }];
    let mut sides = vec![both(&places)];
    let mut depths = vec![depth];
    let mut waiting =
        BinaryHeap::from([Waiting { value: value.value, number: std::cmp::Reverse(0), places }]);
    let mut node_count = 1;
    while let Some(Waiting { number: std::cmp::Reverse(number), mut places, .. }) = waiting.pop() {
        places.sort_unstable_by_key(|place| (tree.frames[place.node as usize], place.node));
        for alike in places.chunk_by(|a, b| tree.frames[a.node as usize] == tree.frames[b.node as usize]) {
            let (value, place) = (sum(alike), alike[0]);
            if place.node == 0 {
                nodes[number].self_value = value;
                continue;
            }
            node_count += 1;
            if value.value < least || nodes.len() >= query.nodes_max {
                nodes[number].left_out += value;
                continue;
            }
            let mut above = alike.to_vec();
            step_up(tree, &mut above);
            let next = std::cmp::Reverse(nodes.len());
            waiting.push(Waiting { value: value.value, number: next, places: above });
            nodes.push(FlameNode {
                key: (place.start, depths[number] + 1),
                parent: Some(number),
                frame: Some(FrameNumber(tree.frames[place.node as usize])),
                value,
                self_value: none,
                left_out: none,
            });
            depths.push(depths[number] + 1);
            sides.push(both(alike));
        }
    }
    in_order(&nodes, &sides, node_count)
}

/// Sums of both sides.
fn both(places: &[Place]) -> Sides {
    let mut sides = Sides::default();
    places.iter().for_each(|place| add(&mut sides, place.amounts));
    sides
}

/// Width of the positions together.
fn sum(places: &[Place]) -> Estimate {
    wider(both(places))
}

/// Moves each position to its caller; positions that meet are merged.
fn step_up(tree: &FrameTree, places: &mut Places) {
    for place in places.iter_mut() {
        place.node = tree.parents[place.node as usize];
    }
    places.sort_unstable();
    places.dedup_by(|next, kept| {
        let meets = next.node == kept.node;
        if meets {
            kept.amounts = both(&[*kept, *next]);
        }
        meets
    });
}

/// The nodes in depth-first order, the greatest first.
fn in_order(found: &[FlameNode], sides: &[Sides], node_count: usize) -> (FlameTree, Vec<Sides>) {
    let mut order: Vec<u32> = (1..found.len() as u32).collect();
    order.sort_by_key(|&number| {
        (std::cmp::Reverse(found[number as usize].value.value), found[number as usize].frame)
    });
    let parent_of = |number: u32| found[number as usize].parent.map_or(0, |parent| parent as u32);
    let placed = depth_first(0, &order, parent_of);
    let nodes =
        placed.iter().map(|place| FlameNode { parent: place.parent, ..found[place.node as usize] }).collect();
    (FlameTree { nodes, node_count }, placed.iter().map(|place| sides[place.node as usize]).collect())
}
