//! What each holder outside of the heap holds alone, and where in that most is gathered.
//!
//! ```text
//!  root --> g_cache --> block --> 10,000 blocks     all are held by g_cache; they are gathered in its block
//!       --> frame of a stack --> the same block     in passing: does not count, as something lasting holds it
//! ```
//! What several hold together, and no one alone, counts for a holder of its own: for these
//! together. (Of the largest such blocks: there may be very many small ones.)

use std::borrow::Cow;

use heapr_graph::{DominatorTree, Dominators, Graph, retained_bytes};
use heapr_trace::HeapGraph;

use crate::joint_holders::{JointHolder, joint_holders};
use crate::lasting::LastingReferences;

/// Share of what a node holds that its largest child must hold too, for the child to be what
/// gathers it.
const MAIN_SHARE_PERCENT: u128 = 80;
/// Blocks that several hold together of which it is told who does.
const JOINT_BLOCKS_MAX: usize = 256;

/// Holders of a graph, by number.
#[derive(Debug)]
pub struct Holders {
    dominators: Dominators,
    tree: DominatorTree,
    first_block: u32,
    joint: Vec<JointHolder>,
}

/// Amounts of blocks, added up along who holds what.
#[derive(Debug)]
pub struct HeldSums(Vec<u64>);

/// Where blocks are gathered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathering {
    /// The blocks on the way, the one that gathers last.
    pub way: Vec<u32>,
    /// It is the first of a chain: each holds the next one of its kind.
    pub is_chain: bool,
}

impl Holders {
    /// `holder_of`: by root its holder's number; `size`: bytes of a block. `None`: the graph is too
    /// large.
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
        // Node 0 leads to the holders, these to blocks.
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
            // (What nothing leads to hangs from the root, too, and has no holders.)
            let joint = joint_holders(&graph, tops.into_iter(), &holders.by_node());
            holders.joint = joint.into_iter().filter(|joint| joint.holders.len() > 1).collect();
        }
        Some(holders)
    }

    /// The numbers of those who hold together what no one holds alone: of each such, in order of
    /// their own numbers, which follow those of the holders.
    pub fn joint(&self) -> impl Iterator<Item = &[u32]> {
        self.joint.iter().map(|joint| joint.holders.as_slice())
    }

    /// Adds up `amount` of blocks.
    #[must_use]
    pub fn sums(&self, amount: impl Fn(u32) -> u64) -> HeldSums {
        let of_node = |node: u32| node.checked_sub(self.first_block).map_or(0, &amount);
        HeldSums(retained_bytes(&self.dominators, of_node))
    }

    /// What a holder holds alone, or several hold together.
    #[must_use]
    pub fn of_holder(&self, holder: u32, sums: &HeldSums) -> u64 {
        self.tops(holder).iter().map(|&node| sums.0[node as usize]).sum()
    }

    /// The nodes below which all that it holds is.
    fn tops(&self, holder: u32) -> Cow<'_, [u32]> {
        match holder.checked_sub(self.first_block - 1) {
            Some(joint) => self.joint.get(joint as usize).map_or(&[][..], |joint| &joint.tops).into(),
            None => vec![holder + 1].into(),
        }
    }

    /// What a block holds alone, itself included.
    #[must_use]
    pub fn of_block(&self, block: u32, sums: &HeldSums) -> u64 {
        sums.0[(self.first_block + block) as usize]
    }

    /// By block the holder that holds it alone, or those who do together.
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

    /// Where most of what a holder holds is gathered, by `sums`: down from the holder, as long as
    /// one child holds nearly all. `is_alike`: whether two blocks are of one kind.
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

    /// Two variables and a frame; blocks by their targets.
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
        // Variable 0 holds 0, which holds 1 and 2; the frame is at 0 and 2, and holds 3 alone.
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
        // Variable 0 and a block of variable 1 lead to 1; that one, and 3, lead to each other and
        // to 4. 5 is leaked.
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
