//! Functions that allocated native memory, where a recording has them: a tree of calls, as V8's
//! snapshots have it.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::strings::Strings;

/// A call on a stack, of the function and at the location where it calls on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallText<'a> {
    /// Name of the function.
    pub function: &'a str,
    /// Source file; empty if unknown.
    pub file: &'a str,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
}

/// Call in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Call {
    /// Index of the caller plus 1; 0 for an outermost call.
    parent: u32,
    /// Index of the function.
    function: u32,
}

/// Stacks of nodes, as a tree of calls.
#[derive(Debug, Default)]
pub(crate) struct AllocationStacks {
    /// Functions: indexes of name and file among the strings, and line.
    functions: Vec<(u32, u32, u32)>,
    function_numbers: FxHashMap<(u32, u32, u32), u32>,
    calls: Vec<Call>,
    call_numbers: FxHashMap<Call, u32>,
    /// Innermost call of each node.
    of_nodes: FxHashMap<u32, u32>,
}

impl AllocationStacks {
    /// Returns the number of a stack, from 1, whose calls are given from the outermost on.
    pub(crate) fn stack<'a>(
        &mut self,
        calls: impl IntoIterator<Item = CallText<'a>>,
        strings: &mut Strings,
    ) -> u32 {
        let mut parent = 0;
        for CallText { function, file, line } in calls {
            let key = (strings.number(function), strings.number(file), line);
            let function = *self.function_numbers.entry(key).or_insert_with(|| {
                self.functions.push(key);
                self.functions.len() as u32 - 1
            });
            let call = Call { parent, function };
            parent = *self.call_numbers.entry(call).or_insert_with(|| {
                self.calls.push(call);
                self.calls.len() as u32
            });
        }
        parent
    }

    /// Sets the stack of a node. `stack`: a number from [`Self::stack`].
    pub(crate) fn set(&mut self, node: u32, stack: u32) {
        if stack != 0 {
            self.of_nodes.insert(node, stack);
        }
    }

    /// Id of a node's stack in the file; 0 without one.
    pub(crate) fn id_of(&self, node: u32) -> u64 {
        // The root has the id 1.
        self.of_nodes.get(&node).map_or(0, |&stack| u64::from(stack) + 1)
    }

    /// Number of nodes with a stack.
    pub(crate) fn node_count(&self) -> usize {
        self.of_nodes.len()
    }

    /// Number of functions in the file; 0 without any stack.
    pub(crate) fn function_count(&self) -> u64 {
        if self.of_nodes.is_empty() { 0 } else { self.functions.len() as u64 + 1 }
    }

    /// Writes the rows of the functions. `root`: index of the name of the tree's root.
    pub(crate) fn write_functions(&self, root: u32, empty: u32, out: &mut impl Write) -> io::Result<()> {
        if self.of_nodes.is_empty() {
            return Ok(());
        }
        write!(out, "0,{root},{empty},0,0,0")?;
        for (number, (name, file, line)) in self.functions.iter().enumerate() {
            let column = u32::from(*line > 0);
            write!(out, "\n,{},{name},{file},0,{line},{column}", number + 1)?;
        }
        Ok(())
    }

    /// Writes the tree: each call with those that it makes. `bytes_of`: own size of a node.
    pub(crate) fn write_tree(&self, bytes_of: impl Fn(u32) -> u64, out: &mut impl Write) -> io::Result<()> {
        if self.of_nodes.is_empty() {
            return Ok(());
        }
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.calls.len() + 1];
        for (number, call) in self.calls.iter().enumerate() {
            children[call.parent as usize].push(number as u32 + 1);
        }
        let mut amounts = vec![(0_u64, 0_u64); self.calls.len() + 1];
        for (&node, &stack) in &self.of_nodes {
            let (count, bytes) = &mut amounts[stack as usize];
            *count += 1;
            *bytes = bytes.saturating_add(bytes_of(node));
        }
        // Stacks may be deep: the calls that are open are in a list.
        let mut open: Vec<(u32, usize)> = vec![(0, 0)];
        write!(out, "1,0,0,0,[")?;
        while let Some((call, next)) = open.last_mut() {
            let Some(&child) = children[*call as usize].get(*next) else {
                out.write_all(b"]")?;
                open.pop();
                continue;
            };
            let comma = if *next > 0 { "," } else { "" };
            *next += 1;
            let (count, bytes) = amounts[child as usize];
            let function = self.calls[child as usize - 1].function + 1;
            write!(out, "{comma}{},{function},{count},{bytes},[", child + 1)?;
            open.push((child, 0));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_their_outer_calls_and_are_written_as_a_tree() {
        let (mut stacks, mut strings) = (AllocationStacks::default(), Strings::default());
        let (root, empty) = (strings.number("(root)"), strings.number(""));
        let call = |function, line| CallText { function, file: "app.py", line };
        let one = stacks.stack([call("main", 3), call("load", 9)], &mut strings);
        let other = stacks.stack([call("main", 3), call("store", 12)], &mut strings);
        assert_eq!(stacks.stack([call("main", 3), call("load", 9)], &mut strings), one);
        assert_eq!(stacks.stack([], &mut strings), 0);
        let mut text = Vec::new();
        stacks.write_tree(|_| 1, &mut text).unwrap();
        assert!(text.is_empty() && stacks.function_count() == 0);
        stacks.set(5, one);
        stacks.set(6, one);
        stacks.set(7, other);
        stacks.set(8, 0);
        stacks.write_tree(|node| u64::from(node) * 10, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text, "1,0,0,0,[2,1,0,0,[3,2,2,110,[],4,3,1,70,[]]]");
        assert_eq!([5, 6, 7, 8].map(|node| stacks.id_of(node)), [3, 3, 4, 0]);
        let mut rows = Vec::new();
        stacks.write_functions(root, empty, &mut rows).unwrap();
        assert_eq!(String::from_utf8(rows).unwrap().lines().count() as u64, stacks.function_count());
    }
}
