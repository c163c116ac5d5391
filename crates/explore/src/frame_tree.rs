//! Tree of the frames of all stacks, as it is, with recursion collapsed, or below a frame.

use hashbrown::HashMap;
use heapr_query::engine::{NamedStack, SymbolTree};

use crate::frame_number::FrameNumber;

/// A tree of frames: parents have smaller numbers than their children; node 0 is above all.
#[derive(Debug, Clone)]
pub(crate) struct FrameTree {
    pub(crate) parents: Vec<u32>,
    pub(crate) frames: Vec<u32>,
    /// Node of this tree for each node of the symbol tree; [`OUTSIDE`] for a node outside of this
    /// tree.
    pub(crate) node_of: Vec<u32>,
}

/// Stands for no frame or node.
pub(crate) const OUTSIDE: u32 = u32::MAX;

impl FrameTree {
    /// The symbol tree as it is, or with recursion collapsed, or limited to the part below a frame.
    pub(crate) fn new(tree: &SymbolTree, collapses_recursion: bool, focus: Option<FrameNumber>) -> Self {
        let frame_of = |node: NamedStack| tree.frame(node).map_or(OUTSIDE, |frame| frame.0);
        Self::of(tree.count() as u32, |node| tree.parent(node), frame_of, collapses_recursion, focus)
    }

    /// Variant of [`Self::new`] for any tree of `count` nodes.
    pub(crate) fn of(
        count: u32,
        parent_of: impl Fn(u32) -> u32,
        frame_of: impl Fn(u32) -> u32,
        collapses_recursion: bool,
        focus: Option<FrameNumber>,
    ) -> Self {
        if !collapses_recursion && focus.is_none() {
            return Self {
                parents: (0..count).map(|node| if node == 0 { 0 } else { parent_of(node) }).collect(),
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
            let (frame, above) = (frame_of(node), made.node_of[parent_of(node) as usize]);
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
