//! The rows of a query after culling.

use heapr_trace::{StackIndex, StackTotals};

use crate::aggregate::NO_GROUP;
use crate::cull_list::CullList;
use crate::culling::Culling;
use crate::error::Result;
use crate::row_table::RowSource;
use crate::symbol_tree::{NamedStack, SymbolTree};

/// Stands for the stack of a row that is not counted.
pub(crate) const LEFT_OUT: NamedStack = NamedStack::MAX;

/// Rows with their stacks after culling, shared by all actions of a query.
#[derive(Debug)]
pub struct Culled<'a, 't> {
    pub(crate) rows: &'a RowSource<'t>,
    pub(crate) tree: &'a SymbolTree,
    /// Culled stack of each row.
    pub(crate) stacks: Vec<NamedStack>,
}

impl<'a, 't> Culled<'a, 't> {
    /// Culls the rows of a file's stacks for which `is_counted` is true.
    pub(crate) fn new(
        rows: &'a RowSource<'t>,
        tree: &'a SymbolTree,
        list: &CullList,
        is_counted: impl Fn(StackIndex) -> bool,
    ) -> Result<Self> {
        let mut culling = Culling::new(tree, list);
        let mut stacks = Vec::new();
        rows.for_each(|row| {
            let is_counted = is_counted(row.stack);
            stacks.push(if is_counted { culling.cull(tree.named(row.stack)) } else { LEFT_OUT });
        })?;
        Ok(Self { rows, tree, stacks })
    }

    /// Builds the rows from stacks that are culled already; `left` maps each stack to its culled
    /// stack.
    pub fn with_left(rows: &'a RowSource<'t>, tree: &'a SymbolTree, left: &[NamedStack]) -> Result<Self> {
        let mut stacks = Vec::new();
        rows.for_each(|row| stacks.push(left[tree.named(row.stack) as usize]))?;
        Ok(Self { rows, tree, stacks })
    }

    pub(crate) fn tree(&self) -> &SymbolTree {
        self.tree
    }

    /// Passes all counted rows with their culled stacks to `visit`.
    pub fn for_each(&self, mut visit: impl FnMut(&StackTotals, NamedStack)) -> Result<()> {
        let mut stacks = self.stacks.iter();
        self.rows.for_each(|row| {
            if let Some(&stack) = stacks.next().filter(|&&stack| stack != LEFT_OUT) {
                visit(row, stack);
            }
        })
    }

    /// The group of each row, by its culled stack; rows that are not counted get [`NO_GROUP`].
    pub(crate) fn group_rows(&self, mut group_of: impl FnMut(NamedStack) -> u32) -> Vec<u32> {
        self.stacks.iter().map(|&stack| if stack == LEFT_OUT { NO_GROUP } else { group_of(stack) }).collect()
    }
}
