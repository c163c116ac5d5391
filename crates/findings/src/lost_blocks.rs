//! Blocks to which nothing leads, from the references of a snapshot of the recording.
//!
//! A recording shows which code makes a block. It does not show whether the program can still reach
//! the block. A snapshot with references shows that: a block that no path of references of any
//! grade reaches from the roots is lost. It also shows blocks of which only slices are used.

use std::collections::HashMap;

use heapr_table::quantity::percent;
use heapr_trace::{Block, HeapGraph, HeapId, ProcessIndex, Snapshot, StackIndex, Trace};

use crate::sliced_sums::SlicedSums;

/// Smallest share of a function's bytes that must be lost for the sentence to say it.
const LOST_SHARE: f64 = 0.5;

/// Blocks of a process at its last snapshot with references.
#[derive(Debug, Default)]
pub(crate) struct LostBlocks {
    time_ns: u64,
    by_stack: HashMap<StackIndex, Sums>,
    sliced: HashMap<StackIndex, SlicedSums>,
}

/// Bytes of blocks, and of those to which nothing leads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    bytes: u64,
    lost_bytes: u64,
}

impl LostBlocks {
    /// Reads the references. Returns `None` if the file lacks them or has them damaged, and if
    /// memory that could lead to blocks is missing.
    pub(crate) fn of(trace: &Trace, process: ProcessIndex) -> Option<Self> {
        let facts_of = |snapshot: &Snapshot| trace.graph_facts(snapshot, process).ok().flatten();
        let (snapshot, facts) =
            trace.snapshots().iter().rev().find_map(|snapshot| Some((snapshot, facts_of(snapshot)?)))?;
        if facts.has_left_out {
            return None;
        }
        let graph = trace.heap_graph(snapshot, process).ok().flatten()?;
        let mut blocks: Vec<Block> = Vec::new();
        let damage = trace.for_each_snapshot_block(snapshot, |block| {
            if block.process == process && block.heap == HeapId::MALLOC {
                blocks.push(*block);
            }
        });
        blocks.sort_unstable_by_key(|block| block.address_avma);
        blocks.dedup_by_key(|block| block.address_avma);
        if !damage.is_ok_and(|damage| damage.is_empty()) || blocks.len() != graph.node_count() as usize {
            return None;
        }
        let is_reached = reached(&graph);
        let mut by_stack: HashMap<StackIndex, Sums> = HashMap::new();
        for (block, &is_reached) in blocks.iter().zip(&is_reached) {
            let sums = by_stack.entry(block.stack).or_default();
            sums.bytes = sums.bytes.saturating_add(block.size_bytes);
            if !is_reached {
                sums.lost_bytes = sums.lost_bytes.saturating_add(block.size_bytes);
            }
        }
        let mut sliced: HashMap<StackIndex, SlicedSums> = HashMap::new();
        // Samples would be told as if they were all blocks, and what is lost is kept by nothing.
        let told = graph.sliced.iter().filter(|slices| {
            trace.sampling().is_exact() && is_reached.get(slices.node as usize).is_some_and(|&known| known)
        });
        for slices in told {
            let Some(block) = blocks.get(slices.node as usize) else { continue };
            sliced.entry(block.stack).or_default().add(block.size_bytes, slices);
        }
        Some(Self { time_ns: snapshot.time_ns, by_stack, sliced })
    }

    /// Text about the blocks of some stacks. `when` puts the time of the snapshot into words.
    pub(crate) fn text(
        &self,
        is_of_it: impl Fn(StackIndex) -> bool,
        when: impl Fn(u64) -> String,
    ) -> Option<LostText> {
        text(self.sums(is_of_it), &when(self.time_ns))
    }

    /// Time of the snapshot.
    pub(crate) fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// Sums of blocks of some stacks of which only slices are used, and the bytes of all blocks of
    /// these stacks.
    pub(crate) fn sliced(&self, is_of_it: impl Fn(StackIndex) -> bool) -> (SlicedSums, u64) {
        let mut sum = SlicedSums::default();
        for (_, sums) in self.sliced.iter().filter(|(stack, _)| is_of_it(**stack)) {
            sum.add_sums(sums);
        }
        (sum, self.sums(is_of_it).bytes)
    }

    /// Stack with most bytes in blocks of which only slices are used.
    pub(crate) fn most_sliced(&self, is_of_it: impl Fn(StackIndex) -> bool) -> Option<StackIndex> {
        let of_it = self.sliced.iter().filter(|(stack, _)| is_of_it(**stack));
        of_it.max_by_key(|(stack, sums)| (sums.bytes, std::cmp::Reverse(**stack))).map(|(stack, _)| *stack)
    }

    fn sums(&self, is_of_it: impl Fn(StackIndex) -> bool) -> Sums {
        let mut sum = Sums::default();
        for (_, sums) in self.by_stack.iter().filter(|(stack, _)| is_of_it(**stack)) {
            sum.bytes = sum.bytes.saturating_add(sums.bytes);
            sum.lost_bytes = sum.lost_bytes.saturating_add(sums.lost_bytes);
        }
        sum
    }
}

/// By node: whether a path of references leads to it from a root.
fn reached(graph: &HeapGraph) -> Vec<bool> {
    let mut is_reached = vec![false; graph.node_count() as usize];
    let mut next: Vec<u32> = graph.roots.iter().map(|root| root.target).collect();
    while let Some(node) = next.pop() {
        match is_reached.get_mut(node as usize) {
            Some(known) if !*known => *known = true,
            _ => continue,
        }
        next.extend(graph.edges(node).filter_map(|edge| graph.targets.get(edge)));
    }
    is_reached
}

/// Text about a function's blocks: a part of the finding's sentence, or evidence.
#[derive(Debug, PartialEq)]
pub(crate) enum LostText {
    Sentence(String),
    Evidence(String),
}

fn text(sums: Sums, when: &str) -> Option<LostText> {
    if sums.bytes == 0 {
        return None;
    }
    let share = percent(sums.lost_bytes, sums.bytes);
    Some(match sums.lost_bytes as f64 >= sums.bytes as f64 * LOST_SHARE {
        true => LostText::Sentence(format!("nothing leads to {share} of what it holds {when}")),
        false if sums.lost_bytes > 0 => LostText::Evidence(format!(
            "nothing leads to {share} of what it holds {when}; the rest is referred to"
        )),
        false => LostText::Evidence(format!("all of what it holds {when} is referred to")),
    })
}

#[cfg(test)]
mod tests {
    use heapr_trace::{EdgeGrade, RootEdge};

    use super::*;

    /// Graph of four blocks: a root leads to 0, 0 to 1, and 2 and 3 to one another.
    fn graph() -> HeapGraph {
        HeapGraph {
            first_edge: vec![0, 1, 1, 2, 3],
            targets: vec![1, 3, 2],
            slots: vec![0; 3],
            grades: vec![EdgeGrade::Interior; 3],
            roots: vec![RootEdge { area: 0, offset_bytes: 0, target: 0, grade: EdgeGrade::DeadMemory }],
            ..HeapGraph::default()
        }
    }

    #[test]
    fn circles_without_a_root_are_lost_and_doubtful_references_count() {
        assert_eq!(reached(&graph()), [true, true, false, false]);
        let mut wrong = graph();
        wrong.targets = vec![9, 3, 2];
        assert_eq!(reached(&wrong), [true, false, false, false]);
    }

    #[test]
    fn a_sentence_is_told_of_most_and_blocks_that_are_referred_to_are_not_called_lost() {
        let told = |bytes, lost_bytes| text(Sums { bytes, lost_bytes }, "at 1 s");
        let sentence = "nothing leads to 90.0 % of what it holds at 1 s";
        assert_eq!(told(100, 90), Some(LostText::Sentence(sentence.to_owned())));
        assert!(
            matches!(told(100, 10), Some(LostText::Evidence(text)) if text.ends_with("the rest is referred to"))
        );
        assert!(matches!(told(100, 0), Some(LostText::Evidence(text)) if text.starts_with("all of")));
        assert_eq!(told(0, 0), None);
    }
}
