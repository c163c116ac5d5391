//! Comparison of two selections: of two traces, or of one at two moments.
//!
//! The stacks of both are merged into one tree by the file names of their modules and their
//! symbols. These are equal on both sides, whatever the addresses and builds. (A frame without a
//! symbol is identified by its offset if both sides have the same build of its module, else by the
//! module.) The program, and a library of another version, are matched although their files have
//! different names. They get the names of the second side.

use hashbrown::{HashMap, HashSet};

use heapr_query::engine::{FrameId, NamedStack};
use heapr_query::{
    CullList, FramePattern, FrameView, GroupBy, Metric, OwnCode, Result, SameBuilds, common_name, file_name,
};
use heapr_trace::{Amounts, Estimate};

use crate::explorer::Explorer;
use crate::flame::{FlameQuery, FrameTree, OUTSIDE, Sides};
use crate::inverted_flame::{Place, inverted};
use crate::selection::Selection;

/// Stands for no frame.
const NONE: u32 = u32::MAX;

/// Identity of a frame: file name of the module, symbol, and the offset in the file if there is no
/// symbol.
type Name = (String, Option<String>, Option<u64>);

/// The common tree of two explorers.
#[derive(Debug, Default)]
pub struct FrameUnion {
    parents: Vec<u32>,
    /// Index of each node's frame.
    frames: Vec<u32>,
    names: Vec<Name>,
    /// Path of the module, and source file, of each frame, from the first side that has it.
    places: Vec<(Option<String>, Option<String>)>,
    /// First frame of the same module, for each frame.
    module_of: Vec<u32>,
    /// Node of this tree for each node of a side's symbol tree.
    node_of: [Vec<u32>; 2],
}

/// One side of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Explorer of the side's trace.
    pub explorer: &'a Explorer,
    /// Selection of the side.
    pub selection: &'a Selection,
    /// Frames that culling removes.
    pub cull: &'a CullList,
}

/// A group that differs between the sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DifferenceGroup {
    /// For [`crate::DifferenceFrames::of`].
    pub key: u32,
    /// Amounts on the first side.
    pub before: Amounts,
    /// Amounts on the second side.
    pub after: Amounts,
}

/// A node of a [`DifferenceTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DifferenceNode {
    /// Key for [`FlameQuery::root`].
    pub key: (u32, u32),
    /// Index of the node above.
    pub parent: Option<usize>,
    /// Frame of the node, for [`FrameUnion::name`].
    pub frame: Option<u32>,
    /// Amount on the first side.
    pub before: Estimate,
    /// Amount on the second side.
    pub after: Estimate,
}

/// Nodes, each after the one above; siblings are ordered by the greater of their amounts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DifferenceTree {
    /// The nodes; the first is the whole or the root.
    pub nodes: Vec<DifferenceNode>,
    /// Number of all nodes.
    pub node_count: usize,
}

/// Names of the modules of the first side that have another name on the second side.
fn renamed_modules(before: &Explorer, after: &Explorer) -> HashMap<String, String> {
    let names = |explorer: &Explorer| {
        let modules = explorer.trace().modules().iter();
        modules.map(|module| file_name(&module.path).to_owned()).collect::<HashSet<String>>()
    };
    let program = |explorer: &Explorer| {
        explorer.trace().processes().first().map(|process| file_name(&process.executable).to_owned())
    };
    let (old, new) = (names(before), names(after));
    let is_alone = |was: &String, is: &String| !new.contains(was) && !old.contains(is);
    let mut renamed: HashMap<String, String> = HashMap::new();
    if let (Some(was), Some(is)) = (program(before), program(after))
        && is_alone(&was, &is)
    {
        renamed.insert(was, is);
    }
    // `libfoo.so.1.2` and `libfoo.so.1.3`, if each side has exactly one.
    let stem = |name: &String| name.find(".so").map(|at| name[..at].to_owned());
    let only = |names: &HashSet<String>, of: &str| {
        let mut found = names.iter().filter(|name| stem(name).as_deref() == Some(of));
        found.next().filter(|_| found.next().is_none()).cloned()
    };
    for name in &old {
        let Some(of) = stem(name) else { continue };
        if let (Some(was), Some(is)) = (only(&old, &of), only(&new, &of))
            && is_alone(&was, &is)
        {
            renamed.insert(was, is);
        }
    }
    renamed
}

impl FrameUnion {
    /// Merges the stacks of two traces.
    #[must_use]
    pub fn new(before: &Explorer, after: &Explorer) -> Self {
        let mut union = Self { parents: vec![0], frames: vec![NONE], ..Self::default() };
        let mut name_numbers: HashMap<Name, u32> = HashMap::new();
        let mut modules: HashMap<String, u32> = HashMap::new();
        let mut children: HashMap<(u32, u32), u32> = HashMap::new();
        let renamed = renamed_modules(before, after);
        let builds = SameBuilds::of([&**before.trace(), after.trace()]);
        for (side, explorer) in [before, after].into_iter().enumerate() {
            let tree = explorer.tree();
            let numbers: Vec<u32> = (0..tree.frames.count() as u32)
                .map(|frame| {
                    let module = file_name(tree.frames.module(FrameId(frame)).unwrap_or("?"));
                    let module = match side {
                        0 => renamed.get(module).map_or(module, String::as_str).to_owned(),
                        _ => module.to_owned(),
                    };
                    let symbol = tree.frames.symbol(FrameId(frame)).map(str::to_owned);
                    let offset = builds.offset(&tree.frames.view(FrameId(frame)));
                    let names = &mut union.names;
                    let (module_of, places) = (&mut union.module_of, &mut union.places);
                    let text = |text: Option<&str>| text.map(str::to_owned);
                    let place = || {
                        let frame = FrameId(frame);
                        (text(tree.frames.module(frame)), text(tree.frames.file(frame)))
                    };
                    *name_numbers.entry((module.clone(), symbol.clone(), offset)).or_insert_with(|| {
                        let number = names.len() as u32;
                        module_of.push(*modules.entry(module.clone()).or_insert(number));
                        names.push((module, symbol, offset));
                        places.push(place());
                        number
                    })
                })
                .collect();
            let mut node_of = vec![0_u32; tree.count()];
            for node in 1..tree.count() as u32 {
                let above = node_of[tree.parent(node) as usize];
                let frame = tree.frame(node).map_or(NONE, |frame| numbers[frame.0 as usize]);
                let (parents, frames) = (&mut union.parents, &mut union.frames);
                node_of[node as usize] = *children.entry((above, frame)).or_insert_with(|| {
                    parents.push(above);
                    frames.push(frame);
                    frames.len() as u32 - 1
                });
            }
            union.node_of[side] = node_of;
        }
        union
    }

    /// Name of a frame, in the form of [`SameBuilds::name`].
    #[must_use]
    pub fn name(&self, frame: u32) -> String {
        self.names.get(frame as usize).map_or_else(String::new, |(module, symbol, offset)| {
            common_name(module, symbol.as_deref(), *offset)
        })
    }

    /// Module and symbol of a frame. Without a symbol also the offset in the file, if both sides
    /// have the same build.
    #[must_use]
    pub fn parts(&self, frame: u32) -> (&str, Option<&str>, Option<u64>) {
        self.names
            .get(frame as usize)
            .map_or(("", None, None), |(module, symbol, offset)| (module, symbol.as_deref(), *offset))
    }

    /// Names of a group's frames: a stack, innermost first; one frame; or one module.
    #[must_use]
    pub fn group_names(&self, group: &DifferenceGroup, by: GroupBy) -> Vec<String> {
        match by {
            GroupBy::Stacks => {
                let mut names = Vec::new();
                let mut node = group.key;
                while node != 0 {
                    names.push(self.name(self.frames[node as usize]));
                    node = self.parents[node as usize];
                }
                names
            }
            _ if group.key == NONE => Vec::new(),
            GroupBy::Images => vec![self.parts(group.key).0.to_owned()],
            _ => vec![self.name(group.key)],
        }
    }

    /// Index of the own frame among the names of a stack.
    #[must_use]
    pub fn own_place(&self, group: &DifferenceGroup, by: GroupBy, own: &OwnCode) -> Option<usize> {
        if by != GroupBy::Stacks {
            return None;
        }
        let mut views = Vec::new();
        let mut node = group.key;
        while node != 0 {
            let frame = self.frames[node as usize] as usize;
            let (module, file) = self.places.get(frame)?;
            views.push(FrameView {
                module: module.as_deref(),
                symbol: self.names.get(frame)?.1.as_deref(),
                file: file.as_deref(),
                line: None,
                is_inlined: false,
                // An unknown offset; 0 would be a module's first byte.
                offset: self.names.get(frame)?.2.unwrap_or(1),
            });
            node = self.parents[node as usize];
        }
        own.place(&views)
    }

    /// Returns the key of the group that a stack of a side belongs to.
    pub(crate) fn group_key(&self, side: usize, stack: NamedStack, by: GroupBy) -> u32 {
        let node = self.node_of[side][stack as usize];
        let frame = self.frames[node as usize];
        match by {
            GroupBy::Stacks => node,
            GroupBy::Images if frame != NONE => self.module_of[frame as usize],
            _ => frame,
        }
    }

    /// All groups that differ, those with the greatest difference first; and the sums of both
    /// sides.
    ///
    /// # Errors
    /// Never fails for results of [`Explorer::select`].
    pub fn groups(
        &self,
        sides: [Side<'_>; 2],
        by: GroupBy,
        sort: Metric,
    ) -> Result<(Vec<DifferenceGroup>, [Amounts; 2])> {
        let mut amounts: HashMap<u32, [Amounts; 2]> = HashMap::new();
        let mut whole = [Amounts::default(); 2];
        for (number, side) in sides.into_iter().enumerate() {
            side.explorer.culled(side.selection, side.cull, GroupBy::Stacks)?.for_each(|row, stack| {
                let key = self.group_key(number, stack, by);
                amounts.entry(key).or_default()[number] += &row.amounts;
                whole[number] += &row.amounts;
            })?;
        }
        let mut groups: Vec<DifferenceGroup> = amounts
            .into_iter()
            .map(|(key, [before, after])| DifferenceGroup { key, before, after })
            .filter(|group| group.before != group.after)
            .collect();
        groups.sort_unstable_by_key(|group| {
            (std::cmp::Reverse(sort.difference(&group.before, &group.after).unsigned_abs()), group.key)
        });
        Ok((groups, whole))
    }

    /// The first frame that a pattern matches, by the file name of its module.
    #[must_use]
    pub fn frame_matching(&self, pattern: &FramePattern) -> Option<u32> {
        let matches = |(module, symbol, _): &Name| pattern.matches(Some(module), symbol.as_deref());
        self.names.iter().position(matches).map(|number| number as u32)
    }

    /// A flame graph of both sides. The query's focus is the number of a frame of the union.
    ///
    /// # Errors
    /// Never fails for results of [`Explorer::select`].
    pub fn flame(&self, sides: [Side<'_>; 2], query: &FlameQuery) -> Result<DifferenceTree> {
        let focus = query.focus.map(|focus| focus.0);
        let below = query.focus.filter(|_| !query.is_bottom_up);
        let (parent_of, frame_of) = (|node| self.parents[node as usize], |node| self.frames[node as usize]);
        let count = self.parents.len() as u32;
        let tree = FrameTree::of(count, parent_of, frame_of, query.collapses_recursion, below);
        // From the focus up: its innermost occurrence, searched before culling.
        let nearest = focus.filter(|_| query.is_bottom_up).map(|focus| tree.nearest(focus));
        let uncut = CullList::empty();
        let mut own = vec![Sides::default(); tree.parents.len()];
        for (number, side) in sides.into_iter().enumerate() {
            let node_of = &self.node_of[number];
            let cull = if nearest.is_some() { &uncut } else { side.cull };
            side.explorer.culled(side.selection, cull, GroupBy::Stacks)?.for_each(|row, stack| {
                let node = tree.node_of[node_of[stack as usize] as usize];
                let node = nearest.as_ref().map_or(node, |nearest| nearest[node as usize]);
                if node == OUTSIDE {
                    return;
                }
                own[node as usize][number] += query.value.estimate(&row.amounts);
            })?;
        }
        let (found, sides) = if query.is_bottom_up {
            let places = (0_u32..)
                .zip(&own)
                .filter(|(_, amounts)| **amounts != Sides::default())
                .map(|(node, &amounts)| Place { node, start: node, amounts });
            inverted(&tree, places.collect(), query)
        } else {
            tree.top_down(&own, query)
        };
        let nodes = found.nodes.iter().zip(sides).map(|(node, [before, after])| DifferenceNode {
            key: node.key,
            parent: node.parent,
            frame: node.frame.map(|frame| frame.0),
            before,
            after,
        });
        Ok(DifferenceTree { nodes: nodes.collect(), node_count: found.node_count })
    }
}
