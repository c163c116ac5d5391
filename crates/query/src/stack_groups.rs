//! Groups of a file's stacks: by whole stack, innermost frame or its module, after culling. The
//! caller sums amounts over the groups.

use heapr_trace::{StackIndex, Trace};

use crate::chosen_stacks::chosen_stacks;
use crate::code_table::CodeTable;
use crate::cull_list::CullList;
use crate::culling::Culling;
use crate::filter::Filter;
use crate::frames::{FrameId, FrameView};
use crate::name_table::Name;
use crate::query::GroupBy;
use crate::symbol_source::{NoSymbols, SymbolSource};
use crate::symbol_tree::{HeldTree, NamedStack, SymbolTree};

/// Identity of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Stack(NamedStack),
    Frame(Option<FrameId>),
    Image(Option<Name>),
}

/// Groups of stacks.
pub struct StackGroups<'t> {
    trace: &'t Trace,
    tree: HeldTree<'t>,
    /// Group of each stack; `None` if not requested, or left out by the filter.
    groups: Vec<Option<u32>>,
    keys: Vec<Key>,
    /// A stack of each group, with its culled stack.
    representatives: Vec<(StackIndex, NamedStack)>,
}

impl<'t> StackGroups<'t> {
    /// Groups the stacks in `stacks`. Stacks that `filter` leaves out for their frames are in no
    /// group. Grouped by thread, all are in one group, because a stack has no thread.
    pub fn new(
        trace: &'t Trace,
        stacks: impl IntoIterator<Item = StackIndex>,
        by: GroupBy,
        cull: &CullList,
        filter: &Filter,
        symbols: &mut dyn SymbolSource,
    ) -> Self {
        let table = trace.stacks();
        let stacks: Vec<StackIndex> = stacks.into_iter().collect();
        let mut wanted = vec![false; table.len()];
        for &stack in &stacks {
            let mut next = stack;
            while let Some(is_wanted) = wanted.get_mut(next.0 as usize).filter(|is_wanted| !**is_wanted) {
                *is_wanted = true;
                if next == StackIndex::EMPTY {
                    break;
                }
                next = table.parent(next);
            }
        }
        let needs_symbols = matches!(by, GroupBy::Stacks | GroupBy::Frames | GroupBy::Lines)
            || cull.needs_symbols()
            || filter.needs_symbols();
        let mut no_symbols = NoSymbols;
        let symbols: &mut dyn SymbolSource = if needs_symbols { symbols } else { &mut no_symbols };
        let tree = SymbolTree::build(
            trace,
            CodeTable::new(trace.mappings()).telling_lines(matches!(by, GroupBy::Stacks | GroupBy::Lines)),
            symbols,
            wanted,
        );
        Self::grouped(trace, HeldTree::Own(Box::new(tree)), stacks, by, cull, filter)
    }

    /// Variant of [`StackGroups::new`] without a filter.
    pub fn of_all(
        trace: &'t Trace,
        stacks: impl IntoIterator<Item = StackIndex>,
        by: GroupBy,
        cull: &CullList,
        symbols: &mut dyn SymbolSource,
    ) -> Self {
        Self::new(trace, stacks, by, cull, &Filter::default(), symbols)
    }

    /// Variant of [`StackGroups::new`] with an existing symbol tree.
    pub fn with_names(
        trace: &'t Trace,
        tree: &'t SymbolTree,
        stacks: impl IntoIterator<Item = StackIndex>,
        by: GroupBy,
        cull: &CullList,
        filter: &Filter,
    ) -> Self {
        Self::grouped(trace, HeldTree::Shared(tree), stacks, by, cull, filter)
    }

    fn grouped(
        trace: &'t Trace,
        tree: HeldTree<'t>,
        stacks: impl IntoIterator<Item = StackIndex>,
        by: GroupBy,
        cull: &CullList,
        filter: &Filter,
    ) -> Self {
        let chosen = (!filter.takes_all_stacks()).then(|| chosen_stacks(trace, &tree, filter));
        let mut culling = Culling::new(&tree, cull);
        let (mut keys, mut representatives) = (Vec::new(), Vec::new());
        let mut numbers = hashbrown::HashMap::new();
        let mut groups = vec![None; trace.stacks().len()];
        let mut stacks: Vec<StackIndex> = stacks.into_iter().collect();
        stacks.sort_unstable();
        for stack in stacks {
            let Some(group) = groups.get_mut(stack.0 as usize) else { continue };
            if chosen.as_ref().is_some_and(|chosen| !chosen[stack.0 as usize]) {
                continue;
            }
            let culled = culling.cull(tree.named(stack));
            let key = match by {
                GroupBy::Stacks => Key::Stack(culled),
                GroupBy::Frames | GroupBy::Lines => Key::Frame(tree.frame(culled)),
                GroupBy::Images => {
                    Key::Image(tree.frame(culled).and_then(|frame| tree.frames.key(frame).module))
                }
                GroupBy::Threads => Key::Image(None),
            };
            *group = Some(*numbers.entry(key).or_insert_with(|| {
                keys.push(key);
                representatives.push((stack, culled));
                keys.len() as u32 - 1
            }));
        }
        drop(culling);
        Self { trace, tree, groups, keys, representatives }
    }

    /// Number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether the collection is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The group of a requested stack.
    #[must_use]
    pub fn group_of(&self, stack: StackIndex) -> Option<u32> {
        self.groups.get(stack.0 as usize).copied().flatten()
    }

    /// A stack of a group, and its culled stack.
    #[must_use]
    pub fn representative(&self, group: u32) -> Option<(u32, u32)> {
        self.representatives.get(group as usize).map(|&(stack, culled)| (stack.0, culled))
    }

    /// The frames of a group, innermost first, after culling: a stack, one frame, or one frame with
    /// only a module. Empty if no stack was recorded.
    #[must_use]
    pub fn frames(&self, group: u32) -> Vec<FrameView<'_>> {
        let Some(&(stack, culled)) = self.representatives.get(group as usize) else { return Vec::new() };
        match self.keys[group as usize] {
            Key::Stack(_) => self.tree.views(self.trace, stack, culled),
            Key::Frame(Some(frame)) => {
                let mut views = self.tree.views(self.trace, stack, culled);
                views.truncate(1);
                if views.is_empty() {
                    views.push(self.tree.frames.view(frame));
                }
                views
            }
            Key::Image(Some(module)) => vec![FrameView {
                module: Some(self.tree.frames.names.get(module)),
                symbol: None,
                file: None,
                line: None,
                is_inlined: false,
                offset: 0,
            }],
            Key::Frame(None) | Key::Image(None) => Vec::new(),
        }
    }
}

impl std::fmt::Debug for StackGroups<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StackGroups").field("len", &self.len()).finish_non_exhaustive()
    }
}
