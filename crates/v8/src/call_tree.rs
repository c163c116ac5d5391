//! Allocations by the functions that made them: all of them in a timeline, samples in a sampling
//! profile.

use std::path::Path;

use heapr_table::SortRows as _;
use rustc_hash::FxHashMap;

use crate::devtools::Heap;
use crate::format::{CallFunction, SamplingProfile, TraceFunction, first_member, named};
use crate::source_maps::SourceMaps;
use crate::{Result, Snapshot};

/// Allocated and live objects and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allocations {
    /// Number of allocated objects; unknown (0) in a sampling profile.
    pub allocated_count: u64,
    /// Bytes of the allocated objects.
    pub allocated_bytes: u64,
    /// Number of objects that are still alive; in a sampling profile, of samples.
    pub live_count: u64,
    /// Bytes of those objects.
    pub live_bytes: u64,
}

impl Allocations {
    fn add(&mut self, other: &Self) {
        self.allocated_count = self.allocated_count.saturating_add(other.allocated_count);
        self.allocated_bytes = self.allocated_bytes.saturating_add(other.allocated_bytes);
        self.live_count = self.live_count.saturating_add(other.live_count);
        self.live_bytes = self.live_bytes.saturating_add(other.live_bytes);
    }
}

/// Stack of calls: a function, called from its parent node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallNode {
    /// Index into [`CallTree::functions`].
    pub function: u32,
    /// Index of the caller, always smaller than the node's own; the root is its own parent.
    pub parent: u32,
    /// Allocations by the function itself in this stack.
    pub own: Allocations,
}

/// All stacks with the allocations in them.
#[derive(Debug, Clone, Default)]
pub struct CallTree {
    /// Functions of the stacks.
    pub functions: Vec<CallFunction>,
    /// Nodes, callers before callees; the first is the root.
    pub nodes: Vec<CallNode>,
    /// Whether the allocations are samples.
    pub is_sampled: bool,
}

/// Function with the allocations of all its stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionAllocations {
    /// Index into [`CallTree::functions`].
    pub function: u32,
    /// Allocations by the function itself.
    pub own: Allocations,
    /// Allocations by the function and its callees; recursion counts once.
    pub whole: Allocations,
}

impl CallTree {
    /// Whether the file is a sampling profile (`.heapprofile`).
    pub fn is_profile(path: &Path) -> Result<bool> {
        Ok(matches!(&first_member(path)?[..], b"head" | b"startTime" | b"endTime"))
    }

    /// Reads a sampling profile.
    pub fn read_profile(path: &Path) -> Result<Self> {
        let profile = SamplingProfile::open(path)?;
        let mut tree = Self { is_sampled: true, ..Self::default() };
        let mut numbers = FxHashMap::default();
        for node in profile.nodes {
            let own = Allocations {
                live_count: node.sample_count,
                live_bytes: node.self_bytes,
                ..Allocations::default()
            };
            let function = tree.function(&mut numbers, node.function);
            tree.nodes.push(CallNode { function, parent: node.parent, own });
        }
        Ok(tree)
    }

    /// Builds the tree of a heap timeline. Returns `None` for a snapshot without an allocation
    /// trace.
    pub fn of_timeline(heap: &Heap) -> Option<Self> {
        let snapshot = heap.snapshot();
        let trace = snapshot.trace().filter(|trace| !trace.nodes.is_empty())?;
        let mut live: FxHashMap<u64, (u64, u64)> = FxHashMap::default();
        for node in 0..snapshot.node_count() {
            let sum = live.entry(u64::from(snapshot.trace_node_id(node))).or_default();
            *sum = (sum.0 + 1, sum.1.saturating_add(snapshot.self_bytes(node)));
        }
        // The tree has one entry per function of the file: V8 lists several with one name and no
        // location.
        let functions = trace.functions.iter().map(|info| function_of(snapshot, info));
        let mut tree = Self { functions: functions.collect(), ..Self::default() };
        let unknown = tree.functions.len() as u32;
        tree.functions
            .push(CallFunction { name: "(unknown function)".to_owned(), ..CallFunction::default() });
        for node in &trace.nodes {
            let (live_count, live_bytes) = live.get(&node.id).copied().unwrap_or_default();
            let own = Allocations {
                allocated_count: node.allocation_count,
                allocated_bytes: node.allocated_bytes,
                live_count,
                live_bytes,
            };
            tree.nodes.push(CallNode {
                function: node.function_index.min(unknown),
                parent: node.parent,
                own,
            });
        }
        Some(tree)
    }

    fn function(&mut self, numbers: &mut FxHashMap<CallFunction, u32>, function: CallFunction) -> u32 {
        if let Some(&known) = numbers.get(&function) {
            return known;
        }
        let number = self.functions.len() as u32;
        self.functions.push(function.clone());
        numbers.insert(function, number);
        number
    }

    /// Replaces the functions' names and locations by those in the sources that source maps lead
    /// to.
    pub fn use_source_maps(&mut self, maps: &SourceMaps) {
        for function in &mut self.functions {
            *function = in_sources(std::mem::take(function), maps);
        }
    }

    /// Returns the functions of a node's stack, innermost first, without the root.
    pub fn stack(&self, node: u32) -> impl Iterator<Item = &CallFunction> + '_ {
        let mut at = node;
        std::iter::from_fn(move || {
            let here = self.nodes.get(at as usize).filter(|here| here.parent < at)?;
            at = here.parent;
            self.functions.get(here.function as usize)
        })
    }

    /// Returns one line per function, most live bytes first.
    pub fn by_function(&self) -> Vec<FunctionAllocations> {
        // Sums up from the leaves: each stack with all its callees.
        let mut whole: Vec<Allocations> = self.nodes.iter().map(|node| node.own).collect();
        for at in (1..self.nodes.len()).rev() {
            let below = whole[at];
            whole[self.nodes[at].parent as usize].add(&below);
        }
        let mut lines: Vec<FunctionAllocations> = (0..self.functions.len() as u32)
            .map(|function| FunctionAllocations {
                function,
                own: Allocations::default(),
                whole: Allocations::default(),
            })
            .collect();
        let is_outermost = self.outermost();
        for (at, node) in self.nodes.iter().enumerate() {
            let line = &mut lines[node.function as usize];
            line.own.add(&node.own);
            if is_outermost[at] {
                line.whole.add(&whole[at]);
            }
        }
        lines.sort_rows_by(|left, right| {
            let amounts = |line: &FunctionAllocations| {
                (line.own.live_bytes, line.own.allocated_bytes, line.whole.live_bytes)
            };
            amounts(right).cmp(&amounts(left)).then(left.function.cmp(&right.function))
        });
        lines
    }

    /// Returns for each stack whether its function is absent from its callers.
    fn outermost(&self) -> Vec<bool> {
        // Number of open stacks of each function, on a depth-first walk.
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            children[node.parent as usize].push(at as u32);
        }
        let mut is_outermost = vec![false; self.nodes.len()];
        let mut open = vec![0u32; self.functions.len()];
        let mut walk = if self.nodes.is_empty() { Vec::new() } else { vec![(0u32, false)] };
        while let Some((at, is_left)) = walk.pop() {
            let count = &mut open[self.nodes[at as usize].function as usize];
            if is_left {
                *count -= 1;
                continue;
            }
            is_outermost[at as usize] = *count == 0;
            *count += 1;
            walk.push((at, true));
            walk.extend(children[at as usize].iter().map(|&child| (child, false)));
        }
        is_outermost
    }
}

fn function_of(snapshot: &Snapshot, info: &TraceFunction) -> CallFunction {
    let text = |number: u32| snapshot.strings().text(number).into_owned();
    CallFunction {
        name: named(text(info.name)),
        script: text(info.script_name),
        line: info.line,
        column: info.column,
    }
}

/// Returns the function with its name and location in the original sources, if a source map covers
/// it.
fn in_sources(function: CallFunction, maps: &SourceMaps) -> CallFunction {
    let CallFunction { name, script, line, column } = function;
    let at = line.checked_sub(1).zip(column.checked_sub(1));
    let Some(((line, column), original)) =
        at.and_then(|(line, column)| Some(((line, column), maps.original(&script, line, column)?)))
    else {
        return CallFunction { name, script, line, column };
    };
    CallFunction {
        name: maps.original_name(&script, line, column, &name).unwrap_or(name),
        script: original.source,
        line: original.line.saturating_add(1),
        column: original.column.saturating_add(1),
    }
}

/// Returns the functions in which an object was allocated, innermost first. Empty without an
/// allocation trace.
pub(crate) fn allocation_stack(heap: &Heap, node: u32) -> Vec<CallFunction> {
    let snapshot = heap.snapshot();
    let id = u64::from(snapshot.trace_node_id(node));
    let Some(trace) = snapshot.trace().filter(|_| id != 0) else { return Vec::new() };
    let maps = heap.source_maps();
    let mut stack = Vec::new();
    let mut at = trace.nodes.iter().position(|node| node.id == id);
    // Callers come before callees; the root is not a function.
    while let Some(here) =
        at.and_then(|at| trace.nodes.get(at)).filter(|here| (here.parent as usize) < at.unwrap_or(0))
    {
        let info = trace.functions.get(here.function_index as usize);
        let function = info.map(|info| function_of(snapshot, info));
        stack.extend(function.map(|function| match &maps {
            Some(maps) => in_sources(function, maps),
            None => function,
        }));
        at = Some(here.parent as usize);
    }
    stack
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_counts_once() {
        let function = |name: &str| CallFunction { name: name.to_owned(), ..CallFunction::default() };
        let node = |function, parent, live_bytes| CallNode {
            function,
            parent,
            own: Allocations { live_bytes, ..Allocations::default() },
        };
        // root -> f -> g -> f
        let tree = CallTree {
            functions: ["(root)", "f", "g"].map(function).to_vec(),
            nodes: vec![node(0, 0, 0), node(1, 0, 1), node(2, 1, 10), node(1, 2, 100)],
            is_sampled: false,
        };
        let lines = tree.by_function();
        let amounts: Vec<_> =
            lines.iter().map(|line| (line.function, line.own.live_bytes, line.whole.live_bytes)).collect();
        assert_eq!(amounts, [(1, 101, 111), (2, 10, 110), (0, 0, 111)]);
        assert_eq!(tree.stack(3).map(|function| function.name.as_str()).collect::<Vec<_>>(), ["f", "g", "f"]);
    }
}
