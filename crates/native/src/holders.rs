//! Amounts that each holder outside of the heap holds alone, and the block in which most of it is
//! gathered.
//!
//! ```text
//!  root --> g_cache --> block --> 10,000 blocks     all are held by g_cache; they are gathered in its block
//!       --> frame of a stack --> the same block     in passing: does not count, as something lasting holds it
//! ```
//! Blocks that several holders reach, and no one alone, are counted for a joint holder: this set of
//! holders. Only the largest such blocks are resolved: there may be very many small ones.

use std::borrow::Cow;

use heapr_graph::{DominatorTree, Dominators, Graph, retained_bytes};
use heapr_trace::HeapGraph;

use crate::joint_holders::{JointHolder, joint_holders};
use crate::lasting::LastingReferences;

/// Least share of what a node holds that its largest child must hold for the search to descend to
/// it, in percent.
const MAIN_SHARE_PERCENT: u128 = 80;
/// Largest number of jointly held blocks whose holders are determined.
const JOINT_BLOCKS_MAX: usize = 256;

/// Dominator tree of a heap graph whose first nodes are the holders, by number.
#[derive(Debug)]
pub struct Holders {
    dominators: Dominators,
    tree: DominatorTree,
    first_block: u32,
    joint: Vec<JointHolder>,
}

/// Amounts of blocks, summed up over the dominator tree.
#[derive(Debug)]
pub struct HeldSums(Vec<u64>);

/// The path from a holder to the block in which most of what it holds is gathered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathering {
    /// Blocks on the path; the last one gathers.
    pub way: Vec<u32>,
    /// Whether the last block is the first of a chain, in which each block holds the next one of
    /// its kind.
    pub is_chain: bool,
}

impl Holders {
    /// Builds the tree. `holder_of`: number of the holder of each root; `size`: bytes of a block.
    /// `None`: the graph is too large.
    #[must_use]
    pub fn of(
        graph: &HeapGraph,
        holder_of: &[u32],
        holder_count: u32,
        size: impl Fn(u32) -> u64,
    ) -> Option<Self> {
        let lasting = LastingReferences::of(graph);
        let counted = graph.roots.iter().zip(holder_of);
        let counted = counted.filter(|(root, _)| lasting.counts_root(graph, root));
        let mut roots: Vec<(u32, u32)> = counted.map(|(root, &holder)| (holder, root.target)).collect();
        roots.sort_unstable();
        roots.dedup();
        // Node 0 leads to the holders, and the holders to blocks.
        let first_block = holder_count.checked_add(1)?;
        let mut first_edge = vec![0_u32, holder_count];
        let mut targets: Vec<u32> = (1..=holder_count).collect();
        let mut roots = roots.into_iter().peekable();
        for holder in 0..holder_count {
            while let Some((_, target)) = roots.next_if(|root| root.0 == holder) {
                targets.push(first_block.checked_add(target)?);
            }
            first_edge.push(u32::try_from(targets.len()).ok()?);
        }
        for block in 0..graph.node_count() {
            for edge in graph.edges(block) {
                if lasting.counts_edge(graph, edge) {
                    targets.push(first_block.checked_add(graph.targets[edge])?);
                }
            }
            first_edge.push(u32::try_from(targets.len()).ok()?);
        }
        drop(lasting);
        let graph = Graph::new(first_edge, targets).ok()?;
        let dominators = Dominators::of(&graph, 0, |_, _, _| true);
        let tree = DominatorTree::of(&dominators);
        let mut holders = Self { dominators, tree, first_block, joint: Vec::new() };
        let sums = holders.sums(size);
        let all = holders.tree.children(0).iter().copied();
        let mut tops: Vec<u32> =
            all.filter(|&node| node >= first_block && sums.0[node as usize] > 0).collect();
        let larger = |&node: &u32| (std::cmp::Reverse(sums.0[node as usize]), node);
        if tops.len() > JOINT_BLOCKS_MAX {
            tops.select_nth_unstable_by_key(JOINT_BLOCKS_MAX, larger);
            tops.truncate(JOINT_BLOCKS_MAX);
        }
        tops.sort_unstable_by_key(larger);
        if !tops.is_empty() {
            // Leaked blocks hang from node 0, too, and have no holder.
            let joint = joint_holders(&graph, tops.into_iter(), &holders.by_node());
            holders.joint = joint.into_iter().filter(|joint| joint.holders.len() > 1).collect();
        }
        Some(holders)
    }

    /// Holder numbers of each joint holder. The joint holders' own numbers follow those of the
    /// single holders, in this order.
    pub fn joint(&self) -> impl Iterator<Item = &[u32]> {
        self.joint.iter().map(|joint| joint.holders.as_slice())
    }

    /// Sums up `amount` of each block over the tree.
    #[must_use]
    pub fn sums(&self, amount: impl Fn(u32) -> u64) -> HeldSums {
        let of_node = |node: u32| node.checked_sub(self.first_block).map_or(0, &amount);
        HeldSums(retained_bytes(&self.dominators, of_node))
    }

    /// Amount that a single or joint holder holds.
    #[must_use]
    pub fn of_holder(&self, holder: u32, sums: &HeldSums) -> u64 {
        self.tops(holder).iter().map(|&node| sums.0[node as usize]).sum()
    }

    /// Nodes whose subtrees are all that a holder holds.
    fn tops(&self, holder: u32) -> Cow<'_, [u32]> {
        match holder.checked_sub(self.first_block - 1) {
            Some(joint) => self.joint.get(joint as usize).map_or(&[][..], |joint| &joint.tops).into(),
            None => vec![holder + 1].into(),
        }
    }

    /// Amount that a block holds alone, itself included.
    #[must_use]
    pub fn of_block(&self, block: u32, sums: &HeldSums) -> u64 {
        sums.0[(self.first_block + block) as usize]
    }

    /// Number of the single or joint holder of each block.
    #[must_use]
    pub fn by_block(&self) -> Vec<Option<u32>> {
        self.by_node().split_off(self.first_block as usize)
    }

    fn by_node(&self) -> Vec<Option<u32>> {
        let mut holder_of: Vec<Option<u32>> = vec![None; self.dominators.idoms().len()];
        let holder_count = self.first_block - 1 + self.joint.len() as u32;
        for holder in 0..holder_count {
            for &node in self.tops(holder).iter() {
                holder_of[node as usize] = Some(holder);
            }
        }
        for &node in self.dominators.order() {
            if node >= self.first_block && holder_of[node as usize].is_none() {
                holder_of[node as usize] = holder_of[self.dominators.idom(node) as usize];
            }
        }
        holder_of
    }

    /// Path to the block in which most of what a holder holds is gathered, by `sums`. It descends
    /// from the holder while one child holds nearly all. `is_alike`: whether two blocks are of one
    /// kind.
    #[must_use]
    pub fn gathering(
        &self,
        holder: u32,
        sums: &HeldSums,
        is_alike: impl Fn(u32, u32) -> bool,
    ) -> Option<Gathering> {
        let amount = |node: u32| u128::from(sums.0[node as usize]);
        let tops = self.tops(holder);
        let mut children: &[u32] = match tops.as_ref() {
            &[node] if node < self.first_block => self.tree.children(node),
            tops => tops,
        };
        let mut all = u128::from(self.of_holder(holder, sums));
        let mut way: Vec<u32> = Vec::new();
        let is_chain = loop {
            let largest = children.iter().copied().max_by_key(|&child| amount(child));
            let Some(largest) = largest else { break false };
            if amount(largest) * 100 < all * MAIN_SHARE_PERCENT || amount(largest) == 0 {
                break false;
            }
            let block = largest - self.first_block;
            if way.last().is_some_and(|&last| is_alike(last, block)) {
                break true;
            }
            way.push(block);
            (children, all) = (self.tree.children(largest), amount(largest));
        };
        (!way.is_empty()).then_some(Gathering { way, is_chain })
    }
}

#[cfg(test)]
mod tests {
    use heapr_trace::{EdgeGrade, RootArea, RootClass, RootEdge};

    use super::*;

    fn area(class: RootClass) -> RootArea {
        RootArea { class, start_avma: 0, end_avma: 64, tid: 0, name: String::new() }
    }

    /// A graph with two variables and a frame as areas, and blocks given by their targets.
    fn graph(blocks: &[&[u32]], roots: &[(u32, u32)]) -> HeapGraph {
        let mut graph = HeapGraph {
            areas: vec![area(RootClass::Global), area(RootClass::Global), area(RootClass::Frame)],
            first_edge: vec![0],
            ..HeapGraph::default()
        };
        for targets in blocks {
            graph.targets.extend_from_slice(targets);
            graph.first_edge.push(graph.targets.len() as u32);
        }
        graph.grades = vec![EdgeGrade::Start; graph.targets.len()];
        let edge = |&(area, target): &(u32, u32)| RootEdge {
            area,
            offset_bytes: 0,
            target,
            grade: EdgeGrade::Start,
        };
        graph.roots = roots.iter().map(edge).collect();
        graph
    }

    fn holders(graph: &HeapGraph) -> Holders {
        let of: Vec<u32> = graph.roots.iter().map(|root| root.area).collect();
        Holders::of(graph, &of, 3, |_| 1).unwrap()
    }

    #[test]
    fn what_a_frame_refers_to_in_passing_is_still_its_holders() {
        // Variable 0 holds block 0, which holds 1 and 2. The frame refers to 0, 2 and 3, and holds
        // 3 alone.
        let graph = graph(&[&[1, 2], &[], &[], &[]], &[(0, 0), (2, 0), (2, 2), (2, 3)]);
        let holders = holders(&graph);
        let sums = holders.sums(|_| 10);
        assert_eq!([0, 1, 2].map(|holder| holders.of_holder(holder, &sums)), [30, 0, 10]);
        assert_eq!(holders.by_block(), [Some(0), Some(0), Some(0), Some(2)]);
    }

    #[test]
    fn two_variables_hold_together_what_both_lead_to() {
        let graph = graph(&[&[2], &[2], &[]], &[(0, 0), (1, 1)]);
        let holders = holders(&graph);
        let sums = holders.sums(|_| 1);
        assert_eq!([0, 1].map(|holder| holders.of_holder(holder, &sums)), [1, 1]);
        assert_eq!(holders.joint().collect::<Vec<_>>(), [[0, 1]]);
        assert_eq!(holders.of_holder(3, &sums), 1);
        assert_eq!(holders.by_block(), [Some(0), Some(1), Some(3)]);
        let found = holders.gathering(3, &sums, |_, _| false);
        assert_eq!(found, Some(Gathering { way: vec![2], is_chain: false }));
    }

    #[test]
    fn who_holds_together_is_told_by_the_nearest_on_each_way() {
        // Variable 0 and a block of variable 1 lead to block 1. Blocks 1 and 3 lead to each other,
        // and 3 leads to 4. Block 5 is leaked.
        let graph = graph(&[&[1], &[3], &[], &[1, 4], &[], &[4]], &[(1, 0), (0, 1), (0, 2), (1, 3)]);
        let holders = holders(&graph);
        let sums = holders.sums(|_| 1);
        assert_eq!(holders.joint().collect::<Vec<_>>(), [[0, 1]]);
        assert_eq!([0, 1, 3].map(|holder| holders.of_holder(holder, &sums)), [1, 1, 3]);
    }

    #[test]
    fn a_doubtful_reference_does_not_share_what_a_sure_one_holds() {
        let mut graph = graph(&[&[1], &[], &[1]], &[(0, 0), (1, 2)]);
        graph.grades[1] = EdgeGrade::Interior;
        let sums = holders(&graph).sums(|_| 1);
        assert_eq!([0, 1].map(|holder| holders(&graph).of_holder(holder, &sums)), [2, 1]);
    }

    #[test]
    fn the_block_that_gathers_is_the_last_that_holds_nearly_all() {
        // 0 -> 1 -> ten blocks.
        let many: Vec<u32> = (2..12).collect();
        let mut blocks: Vec<&[u32]> = vec![&[1], &many];
        blocks.extend((2..12).map(|_| &[][..]));
        let graph = graph(&blocks, &[(0, 0)]);
        let holders = holders(&graph);
        let sums = holders.sums(|_| 100);
        let found = holders.gathering(0, &sums, |_, _| false);
        assert_eq!(found, Some(Gathering { way: vec![0, 1], is_chain: false }));
        assert_eq!(holders.of_block(1, &sums), 1100);
        assert_eq!(holders.gathering(1, &sums, |_, _| false), None);
    }

    #[test]
    fn of_a_chain_the_first_of_its_kind_gathers() {
        let links: Vec<[u32; 1]> = (1..100).map(|next| [next]).collect();
        let mut blocks: Vec<&[u32]> = links.iter().map(<[u32; 1]>::as_slice).collect();
        blocks.push(&[]);
        let graph = graph(&blocks, &[(1, 0)]);
        let holders = holders(&graph);
        let sums = holders.sums(|_| 1);
        let found = holders.gathering(1, &sums, |one, other| one > 0 && other > 0);
        assert_eq!(found, Some(Gathering { way: vec![0, 1], is_chain: true }));
    }
}
