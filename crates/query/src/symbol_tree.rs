//! The stack tree by names. Nodes are (caller, frame), so that two stacks are equal exactly if
//! their nodes are.
//!
//! The tree is built by interning from the file's tree, whose nodes are (caller, return address).
//! It takes one number per file node, and eight bytes per own node. Parents have smaller numbers
//! than their children in both trees.

use hashbrown::HashTable;
use heapr_trace::{LanguagePlace, StackIndex};

use crate::code_table::CodeTable;
use crate::frame_pattern::FramePattern;
use crate::frames::{FrameId, FrameTable, FrameView, Location};
use crate::integer_hash::mix;
use crate::stack_source::StackSource;
use crate::suppressions::FrameText;
use crate::symbol_source::SymbolSource;

/// A stack by names: number of its innermost frame's node; 0 is the empty stack.
pub type NamedStack = u32;

/// Stands for a stack that is not to be named.
const NOT_WANTED: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: NamedStack,
    frame: FrameId,
}

#[derive(Debug)]
/// The stack tree of a trace by names.
pub struct SymbolTree {
    /// All frames of the stacks.
    pub frames: FrameTable,
    codes: CodeTable,
    nodes: Vec<Node>,
    /// Named stack of each `StackIndex`; 0 for stacks that were not wanted.
    named: Vec<NamedStack>,
}

impl SymbolTree {
    /// Names the stacks for which `is_wanted` (by `StackIndex`) is set; their callers must be set
    /// too.
    pub fn build(
        stacks: &(impl StackSource + ?Sized),
        codes: CodeTable,
        symbols: &mut dyn SymbolSource,
        is_wanted: Vec<bool>,
    ) -> Self {
        let mut tree = Self {
            frames: FrameTable::default(),
            codes,
            nodes: vec![Node { parent: 0, frame: FrameId(u32::MAX) }],
            named: Vec::new(),
        };
        tree.add(stacks, symbols, is_wanted);
        tree
    }

    /// The tree of stacks that have grown since `self` was built from all of them. Only the added
    /// stacks are named.
    pub fn grown(&self, stacks: &(impl StackSource + ?Sized), symbols: &mut dyn SymbolSource) -> Self {
        let mut tree = Self {
            frames: self.frames.clone(),
            codes: self.codes.clone(),
            nodes: self.nodes.clone(),
            named: self.named.clone(),
        };
        tree.add(stacks, symbols, vec![true; stacks.node_count() as usize]);
        tree
    }

    /// Names the stacks behind those that are already named.
    fn add(
        &mut self,
        stacks: &(impl StackSource + ?Sized),
        symbols: &mut dyn SymbolSource,
        is_wanted: Vec<bool>,
    ) {
        let Self { frames, codes, nodes, named: numbers } = self;
        let node_count = (stacks.node_count() as usize).min(is_wanted.len()).max(numbers.len());
        let added = numbers.len().max(1)..node_count;
        // Holds the code locations first, then, in the same memory, the named stacks.
        numbers.resize(node_count, 0);
        let mut wanted_count = 0;
        for index in added.clone() {
            numbers[index] = if is_wanted[index] {
                wanted_count += 1;
                let node = stacks.node(StackIndex(index as u32));
                if LanguagePlace::of_return_address(node.return_address_avma).is_some() {
                    codes.note_caller_of_language(stacks, node.parent);
                }
                codes.intern(stacks, &node)
            } else {
                NOT_WANTED
            };
        }
        // Frees its memory for reuse.
        drop(is_wanted);
        codes.resolve(stacks, symbols, frames);

        // Roughly the number of the file's nodes: inlined frames add nodes, and locations in one
        // function share one. A tree that grows is copied and rehashed repeatedly, which takes a
        // third of the time.
        nodes.reserve(wanted_count);
        // (The table doubles at seven eighths of a power of two. Of clang++'s 922,000 nodes 750,000
        // remain.)
        let most = nodes.len() + wanted_count;
        let mut children: HashTable<NamedStack> = HashTable::with_capacity(most - most / 8);
        let hash_of = |node: &Node| mix(u64::from(node.parent), u64::from(node.frame.0));
        for number in 1..nodes.len() as NamedStack {
            let hash = hash_of(&nodes[number as usize]);
            children.insert_unique(hash, number, |&number| hash_of(&nodes[number as usize]));
        }
        for index in added {
            if numbers[index] == NOT_WANTED {
                numbers[index] = 0;
                continue;
            }
            let mut parent = numbers[stacks.parent(StackIndex(index as u32)).0 as usize];
            for location in codes.locations(numbers[index]).iter().rev() {
                let node = Node { parent, frame: location.frame };
                let hash = hash_of(&node);
                let is_same = |&number: &NamedStack| {
                    let known = &nodes[number as usize];
                    known.parent == node.parent && known.frame == node.frame
                };
                parent = match children.find(hash, is_same) {
                    Some(&number) => number,
                    None => {
                        let number = nodes.len() as NamedStack;
                        nodes.push(node);
                        children.insert_unique(hash, number, |&number| hash_of(&nodes[number as usize]));
                        number
                    }
                };
            }
            numbers[index] = parent;
        }
        nodes.shrink_to_fit();
    }

    /// The named stack of a stack.
    pub fn named(&self, stack: StackIndex) -> NamedStack {
        self.named.get(stack.0 as usize).copied().unwrap_or(0)
    }

    /// The stack without its innermost frame.
    pub fn parent(&self, stack: NamedStack) -> NamedStack {
        self.nodes[stack as usize].parent
    }

    /// The innermost frame; `None` for the empty stack.
    pub fn frame(&self, stack: NamedStack) -> Option<FrameId> {
        (stack != 0).then(|| self.nodes[stack as usize].frame)
    }

    /// Number of stacks, including the empty one.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Frames of a stack, innermost first.
    pub fn frames_of(&self, stack: NamedStack) -> impl Iterator<Item = FrameId> + '_ {
        let mut next = stack;
        std::iter::from_fn(move || {
            let frame = self.frame(next)?;
            next = self.parent(next);
            Some(frame)
        })
    }

    /// Whether each frame matches one of the patterns.
    pub(crate) fn matching_frames(&self, patterns: &[FramePattern]) -> Vec<bool> {
        let matches = |frame: FrameId| {
            let (module, symbol) = (self.frames.module(frame), self.frames.symbol(frame));
            patterns.iter().any(|pattern| pattern.matches(module, symbol))
        };
        (0..self.frames.count() as u32).map(|number| matches(FrameId(number))).collect()
    }

    /// Whether each stack has a frame that is set in `is_set` (by frame).
    pub fn stacks_with(&self, is_set: &[bool]) -> Vec<bool> {
        let mut has = vec![false; self.nodes.len()];
        for (number, node) in self.nodes.iter().enumerate().skip(1) {
            has[number] = has[node.parent as usize] || is_set[node.frame.0 as usize];
        }
        has
    }

    /// The texts of a frame that rules are compared with; the frame stands for any line.
    pub fn text(&self, frame: FrameId) -> FrameText<'_> {
        FrameText {
            module: self.frames.module(frame),
            symbol: self.frames.symbol(frame),
            file: self.frames.file(frame),
            line: None,
            is_any_line: true,
        }
    }

    /// The frames of a file's stack with their source lines, innermost first. Only frames that
    /// belong to `culled`, the culled named stack, are returned.
    pub fn views<'a>(
        &'a self,
        stacks: &(impl StackSource + ?Sized),
        stack: StackIndex,
        culled: NamedStack,
    ) -> Vec<FrameView<'a>> {
        self.inner_views(stacks, stack, culled, usize::MAX)
    }

    /// The innermost frames of a stack: at least `least` of them, or all. See
    /// [`SymbolTree::views`].
    pub fn inner_views<'a>(
        &'a self,
        stacks: &(impl StackSource + ?Sized),
        stack: StackIndex,
        culled: NamedStack,
        least: usize,
    ) -> Vec<FrameView<'a>> {
        let mut skip = self.frames_of(self.named(stack)).count() - self.frames_of(culled).count();
        let mut views = Vec::new();
        let mut next = stack;
        while next != StackIndex::EMPTY && views.len() < least {
            if let Some(code) = self.codes.code_of(stacks, next) {
                for location in self.codes.locations(code) {
                    if skip > 0 {
                        skip -= 1;
                    } else {
                        views.push(self.view(location, self.codes.address(code)));
                    }
                }
            }
            next = stacks.parent(next);
        }
        views
    }

    /// Passes the frames of a file's stack at its innermost location to `visit`, the outermost
    /// inlined function first. See [`SymbolTree::views`].
    pub(crate) fn for_each_own_view(
        &self,
        stacks: &(impl StackSource + ?Sized),
        stack: StackIndex,
        visit: &mut dyn FnMut(&FrameView<'_>),
    ) {
        let Some(code) = self.codes.code_of(stacks, stack) else { return };
        for location in self.codes.locations(code).iter().rev() {
            visit(&self.view(location, self.codes.address(code)));
        }
    }

    fn view(&self, location: &Location, offset: u64) -> FrameView<'_> {
        FrameView {
            file: location.file.map(|file| self.frames.names.get(file)),
            line: (location.line != 0).then_some(location.line),
            is_inlined: location.is_inlined,
            offset,
            ..self.frames.view(location.frame)
        }
    }
}

/// A symbol tree: built for some stacks, or shared with the owner of a larger one.
#[derive(Debug)]
pub enum HeldTree<'t> {
    /// Own tree.
    Own(Box<SymbolTree>),
    /// Another owner's tree.
    Shared(&'t SymbolTree),
}

impl std::ops::Deref for HeldTree<'_> {
    type Target = SymbolTree;

    fn deref(&self) -> &SymbolTree {
        match self {
            Self::Own(tree) => tree,
            Self::Shared(tree) => tree,
        }
    }
}
