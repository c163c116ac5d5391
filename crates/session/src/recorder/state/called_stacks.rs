//! Stacks of the file, by what events of a process name: a node of the stack tree, and the called
//! function.

use heapr_trace::{CalledFunction, StackIndex};
use heapr_wire::{CALLED, of_stack_word};

/// Marker of a stack that the file does not have yet.
pub(crate) const NO_STACK: StackIndex = StackIndex(u32::MAX);

/// Stacks by function, then by node.
#[derive(Debug)]
pub(crate) struct CalledStacks {
    stacks: Vec<Vec<StackIndex>>,
    /// Whether the file has the module and mapping that stand for a function.
    entered: Vec<bool>,
}

impl Default for CalledStacks {
    fn default() -> Self {
        Self { stacks: vec![vec![StackIndex::EMPTY]], entered: vec![false; CALLED.len()] }
    }
}

impl CalledStacks {
    /// Returns the file's stack, if it is known.
    #[inline(always)]
    pub(crate) fn known(&self, word: u64) -> Option<StackIndex> {
        let (node, called) = of_stack_word(word);
        let stacks = self.stacks.get(usize::from(called))?;
        stacks.get(node as usize).copied().filter(|&stack| stack != NO_STACK)
    }

    /// Stores the file's stack for a node that was read.
    pub(crate) fn keep(&mut self, word: u64, stack: StackIndex) {
        let (node, called) = of_stack_word(word);
        let (node, called) = (node as usize, usize::from(called));
        if called >= self.stacks.len() {
            self.stacks.resize(called + 1, Vec::new());
        }
        let stacks = &mut self.stacks[called];
        if node >= stacks.len() {
            stacks.resize(node + 1, NO_STACK);
        }
        stacks[node] = stack;
    }

    /// Returns the node of a stack.
    pub(crate) fn node_of(&self, stack: StackIndex) -> Option<u32> {
        let place = |stacks: &Vec<StackIndex>| stacks.iter().position(|known| *known == stack);
        let found = self.stacks.iter().find_map(place).filter(|_| stack != StackIndex::EMPTY);
        found.and_then(|node| u32::try_from(node).ok())
    }

    /// Whether a function is met for the first time; marks it as met.
    pub(crate) fn enter(&mut self, function: CalledFunction<'_>) -> bool {
        let entered = self.entered.get_mut(usize::from(function.number));
        entered.is_some_and(|entered| !std::mem::replace(entered, true))
    }

    /// Frees the memory that only a live process needs.
    pub(crate) fn forget(&mut self) {
        self.stacks = vec![vec![StackIndex::EMPTY]];
    }
}

/// Returns the function with a number that an agent gave, named as in source code.
pub(crate) fn function(number: u8) -> Option<CalledFunction<'static>> {
    let name = match *CALLED.get(usize::from(number))? {
        name if name.starts_with("_Znw") => "operator new",
        name if name.starts_with("_Zna") => "operator new[]",
        name if name.starts_with("_Zdl") => "operator delete",
        name if name.starts_with("_Zda") => "operator delete[]",
        name => name,
    };
    Some(CalledFunction { number, name })
}
