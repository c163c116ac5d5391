//! The answer to a query.

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
    /// Whose.
    pub process: ProcessIndex,
    /// Which.
    pub heap: HeapId,
    /// The amounts.
    pub totals: Totals,
}

/// What a group is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKey {
    /// A stack after culling.
    Stack(NamedStack),
    /// A frame, in a stack of which it is the innermost; `None`: no stack was taken.
    Frame(Option<(NamedStack, FrameId)>),
    /// A module by its path.
    Image(Option<Name>),
    /// A thread.
    Thread(ThreadIndex),
}

/// One line of a ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The amounts.
    pub amounts: Amounts,
    /// Of what.
    pub key: GroupKey,
    /// A stack of the file that stands for it.
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
    /// Of what.
    pub by: GroupBy,
    /// The greatest, at most `top`.
    pub groups: Vec<Group>,
    /// Groups in all.
    pub group_count: usize,
    /// Sum of the groups that are not among `groups`.
    pub rest: Amounts,
}

/// The answer to one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Action::Ranking`].
    Ranking(Ranking),
    /// To [`Action::Functions`].
    Functions(Functions),
    /// To [`Action::TopDown`] and [`Action::Callers`].
    Tree(CallTree),
}

/// An action with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// What was asked.
    pub action: Action,
    /// What was found.
    pub answer: Answer,
}

/// The answer to a query. Frames are looked up with [`Report::frames`] as they are printed.
pub struct Report<'t> {
    /// Over all that is counted.
    pub totals: Totals,
    /// The same by process and heap, in that order; peaks are the heaps' own if that of all is
    /// ([`Report::is_own_peak`]).
    pub by_heap: Vec<HeapRow>,
    /// One for each action.
    pub sections: Vec<Section>,
    /// One for each that was asked for.
    pub histograms: Vec<Histogram>,
    /// Chunks of events that a replay could not use; empty if none was needed.
    pub damage: Vec<heapr_trace::Damage>,
    /// Whether peaks are the largest sums of what is counted. Else what is counted is known too
    /// late for that (lifetime, temporary, type, required frames): then they are its share in
    /// the peak of all that the other filters choose.
    pub is_own_peak: bool,
    pub(crate) stacks: &'t dyn StackSource,
    pub(crate) tree: SymbolTree,
}

impl Report<'_> {
    /// The frames of a group, innermost first, after culling: a stack, one frame, one frame with
    /// nothing but a module, or none (a thread; no stack was taken).
    #[must_use]
    pub fn frames(&self, group: &Group) -> Vec<FrameView<'_>> {
        frames_of_group(&self.tree, self.stacks, group)
    }

    /// A function, with the source file of it that is known, and no line: it has many.
    #[must_use]
    pub fn function_frame(&self, function: &FunctionAmounts) -> FrameView<'_> {
        FrameView { file: self.tree.frames.file(function.frame), ..self.tree.frames.view(function.frame) }
    }

    /// The names of all stacks with a row.
    #[must_use]
    pub fn names(&self) -> &SymbolTree {
        &self.tree
    }

    /// The frame of a node of a tree, with its place in the source in one of the stacks that pass
    /// through it.
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

/// See [`Report::frames`].
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
            // Of all lines of a function one would be as wrong as any other.
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
