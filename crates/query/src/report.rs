//! The report: the answer to a query.

use heapr_trace::{Amounts, HeapId, ProcessIndex, StackIndex, ThreadIndex, Totals};

use crate::call_tree::{CallNode, CallTree};
use crate::frames::{FrameId, FrameView};
use crate::functions::{FunctionAmounts, Functions};
use crate::histogram::Histogram;
use crate::name_table::Name;
use crate::query::{Action, GroupBy};
use crate::stack_source::StackSource;
use crate::symbol_tree::{NamedStack, SymbolTree};

/// Amounts of one heap of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapRow {
    /// Process of the heap.
    pub process: ProcessIndex,
    /// The heap.
    pub heap: HeapId,
    /// Totals of the heap.
    pub totals: Totals,
}

/// Identity of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKey {
    /// A stack after culling.
    Stack(NamedStack),
    /// A frame, with a stack in which it is innermost; `None` if no stack was recorded.
    Frame(Option<(NamedStack, FrameId)>),
    /// A module, by its path; `None` outside of modules.
    Image(Option<Name>),
    /// A thread.
    Thread(ThreadIndex),
}

/// One line of a ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The amounts.
    pub amounts: Amounts,
    /// Identity of the group.
    pub key: GroupKey,
    /// A stack of the file that represents the group.
    pub representative: StackIndex,
}

impl Group {
    /// The thread, in a ranking of threads.
    #[must_use]
    pub fn thread(&self) -> Option<ThreadIndex> {
        match self.key {
            GroupKey::Thread(thread) => Some(thread),
            _ => None,
        }
    }
}

/// A ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranking {
    /// Unit of the groups.
    pub by: GroupBy,
    /// The greatest groups; at most `top`.
    pub groups: Vec<Group>,
    /// Number of all groups.
    pub group_count: usize,
    /// Sum of the groups that are not in `groups`.
    pub rest: Amounts,
}

/// The answer to one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Answer to [`Action::Ranking`].
    Ranking(Ranking),
    /// Answer to [`Action::Functions`].
    Functions(Functions),
    /// Answer to [`Action::TopDown`] and [`Action::Callers`].
    Tree(CallTree),
}

/// An action with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The requested action.
    pub action: Action,
    /// The answer.
    pub answer: Answer,
}

/// The answer to a query. Frames are looked up with [`Report::frames`] as they are printed.
pub struct Report<'t> {
    /// Totals of all counted blocks.
    pub totals: Totals,
    /// Totals by process and heap, in that order. Peaks are the heaps' own if
    /// [`Report::is_own_peak`].
    pub by_heap: Vec<HeapRow>,
    /// One section per action.
    pub sections: Vec<Section>,
    /// One histogram per request.
    pub histograms: Vec<Histogram>,
    /// Chunks of events that a replay could not use; empty without a replay.
    pub damage: Vec<heapr_trace::Damage>,
    /// True if peaks are the largest sums of the counted blocks. With some filters (lifetime,
    /// temporary, type, required frames) the counted blocks are known too late. Peaks are then
    /// their share in the peak of all blocks that the other filters choose.
    pub is_own_peak: bool,
    pub(crate) stacks: &'t dyn StackSource,
    pub(crate) tree: SymbolTree,
}

impl Report<'_> {
    /// The frames of a group, innermost first, after culling: a stack, one frame, or one frame with
    /// only a module. Empty for a thread, and if no stack was recorded.
    #[must_use]
    pub fn frames(&self, group: &Group) -> Vec<FrameView<'_>> {
        frames_of_group(&self.tree, self.stacks, group)
    }

    /// A function with its source file, if known. The line is unset, because a function has many.
    #[must_use]
    pub fn function_frame(&self, function: &FunctionAmounts) -> FrameView<'_> {
        FrameView { file: self.tree.frames.file(function.frame), ..self.tree.frames.view(function.frame) }
    }

    /// The symbol tree of all stacks with a row.
    #[must_use]
    pub fn names(&self) -> &SymbolTree {
        &self.tree
    }

    /// The frame of a tree's node, with its source line in one of the stacks that pass through the
    /// node.
    #[must_use]
    pub fn tree_frame(&self, node: &CallNode) -> FrameView<'_> {
        let stack = self.tree.named(node.representative);
        self.tree
            .views(self.stacks, node.representative, stack)
            .into_iter()
            .find(|view| {
                let bare = self.tree.frames.view(node.frame);
                view.module == bare.module
                    && view.symbol == bare.symbol
                    && (bare.line.is_none() || (view.file, view.line) == (bare.file, bare.line))
                    && (bare.symbol.is_some() || view.offset == bare.offset)
            })
            .unwrap_or_else(|| self.tree.frames.view(node.frame))
    }
}

/// Returns the frames of a group: see [`Report::frames`].
pub fn frames_of_group<'a>(
    tree: &'a SymbolTree,
    stacks: &dyn StackSource,
    group: &Group,
) -> Vec<FrameView<'a>> {
    match group.key {
        GroupKey::Stack(stack) => tree.views(stacks, group.representative, stack),
        GroupKey::Frame(Some((stack, frame))) => {
            let bare = tree.frames.view(frame);
            let innermost = tree.views(stacks, group.representative, stack).into_iter().next();
            // A function has many lines, so that one of them would be arbitrary.
            vec![innermost.map_or(bare, |innermost| FrameView { line: bare.line, ..innermost })]
        }
        GroupKey::Image(Some(module)) => vec![FrameView {
            module: Some(tree.frames.names.get(module)),
            symbol: None,
            file: None,
            line: None,
            is_inlined: false,
            offset: 0,
        }],
        GroupKey::Frame(None) | GroupKey::Image(None) | GroupKey::Thread(_) => Vec::new(),
    }
}

impl std::fmt::Debug for Report<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Report")
            .field("totals", &self.totals)
            .field("by_heap", &self.by_heap)
            .field("sections", &self.sections)
            .finish_non_exhaustive()
    }
}
