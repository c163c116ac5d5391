use proptest::prelude::*;

use crate::{DominatorTree, Dominators, Graph, retained_bytes};

/// Builds a graph from pairs, with the edges of each source in the given order.
fn graph_of(node_count: u32, pairs: &[(u32, u32)]) -> Graph {
    let mut first_edge = vec![0];
    let mut targets = Vec::new();
    for node in 0..node_count {
        targets.extend(pairs.iter().filter(|pair| pair.0 == node).map(|pair| pair.1));
        first_edge.push(targets.len() as u32);
    }
    Graph::new(first_edge, targets).unwrap()
}

/// Dominators by definition: a node's dominators are the nodes whose removal makes it unreachable.
struct Naive {
    node_count: u32,
    /// Essential edges, and one from the root to each node without incoming essential edges.
    pairs: Vec<(u32, u32)>,
    reached: Vec<bool>,
}

impl Naive {
    fn new(graph: &Graph, is_essential: impl Fn(u32, u32, u32) -> bool) -> Self {
        let node_count = graph.node_count();
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for edge in 0..graph.edge_count() {
            let (from, to) = (graph.source(edge), graph.target(edge));
            if from != to && is_essential(edge, from, to) {
                pairs.push((from, to));
            }
        }
        let orphans: Vec<u32> =
            (1..node_count).filter(|node| pairs.iter().all(|pair| pair.1 != *node)).collect();
        pairs.extend(orphans.into_iter().map(|node| (0, node)));
        let mut naive = Self { node_count, pairs, reached: Vec::new() };
        naive.reached = naive.reached_without(None);
        naive
    }

    fn reached_without(&self, removed: Option<u32>) -> Vec<bool> {
        let mut reached = vec![false; self.node_count as usize];
        let mut stack = vec![];
        if removed != Some(0) {
            reached[0] = true;
            stack.push(0);
        }
        while let Some(node) = stack.pop() {
            for &(_, to) in self.pairs.iter().filter(|pair| pair.0 == node) {
                if Some(to) != removed && !std::mem::replace(&mut reached[to as usize], true) {
                    stack.push(to);
                }
            }
        }
        reached
    }

    fn dominates(&self, dominator: u32, node: u32) -> bool {
        if dominator == node || dominator == 0 {
            return true;
        }
        self.reached[node as usize] && !self.reached_without(Some(dominator))[node as usize]
    }

    fn idom(&self, node: u32) -> u32 {
        if node == 0 {
            return 0;
        }
        let strict: Vec<u32> =
            (0..self.node_count).filter(|&other| other != node && self.dominates(other, node)).collect();
        // All other dominators dominate the nearest one.
        *strict.iter().find(|&&near| strict.iter().all(|&far| self.dominates(far, near))).unwrap()
    }
}

prop_compose! {
    fn arbitrary_graph()(node_count in 1u32..24)(
        pairs in proptest::collection::vec((0..node_count, 0..node_count), 0..70),
        essential in proptest::collection::vec(proptest::bool::weighted(0.8), 70),
        node_count in Just(node_count),
    ) -> (Graph, Vec<bool>) {
        (graph_of(node_count, &pairs), essential)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn dominators_are_what_removal_shows((graph, essential) in arbitrary_graph()) {
        let is_essential = |edge: u32, _, _| essential[edge as usize];
        let dominators = Dominators::of(&graph, 0, is_essential);
        let naive = Naive::new(&graph, is_essential);
        for node in 0..graph.node_count() {
            prop_assert_eq!(dominators.idom(node), naive.idom(node), "node {}", node);
        }
        let tree = DominatorTree::of(&dominators);
        for node in 0..graph.node_count() {
            for other in 0..graph.node_count() {
                prop_assert_eq!(tree.is_dominated_by(node, other), naive.dominates(other, node));
            }
            let mut children = tree.children(node).to_vec();
            prop_assert!(children.is_sorted_by(|a, b| a > b));
            children.reverse();
            let expected: Vec<u32> =
                (1..graph.node_count()).filter(|&child| naive.idom(child) == node).collect();
            prop_assert_eq!(children, expected);
        }
    }

    #[test]
    fn retained_sizes_are_sums_over_what_is_dominated((graph, essential) in arbitrary_graph()) {
        let is_essential = |edge: u32, _, _| essential[edge as usize];
        let dominators = Dominators::of(&graph, 0, is_essential);
        let naive = Naive::new(&graph, is_essential);
        let retained = retained_bytes(&dominators, |node| 1 << node);
        for node in 0..graph.node_count() {
            let expected: u64 =
                (0..graph.node_count()).filter(|&other| naive.dominates(node, other)).map(|other| 1 << other).sum();
            prop_assert_eq!(retained[node as usize], expected);
        }
        let tree = DominatorTree::of(&dominators);
        for node in 0..graph.node_count() {
            prop_assert_eq!(tree.subtree_count(node), retained[node as usize].count_ones());
        }
    }
}

#[test]
fn a_deep_chain_does_not_overflow_the_stack() {
    let node_count = 2_000_000u32;
    let mut first_edge = vec![0];
    let mut targets = Vec::new();
    for node in 0..node_count {
        targets.push((node + 1) % node_count);
        // Every node also refers to a distant lower one, so that paths have to be compressed.
        targets.push(node / 2);
        first_edge.push(targets.len() as u32);
    }
    let graph = Graph::new(first_edge, targets).unwrap();
    let dominators = Dominators::of(&graph, 0, |_, _, _| true);
    assert!((1..node_count).all(|node| dominators.idom(node) == node - 1));
    let retained = retained_bytes(&dominators, |_| 1);
    assert_eq!(retained[0], u64::from(node_count));
    assert_eq!(retained[1], u64::from(node_count) - 1);
    assert_eq!(DominatorTree::of(&dominators).subtree_count(2), node_count - 2);
}

/// Checks the mock heap of DevTools' own tests, whose dominators and retained sizes are known.
#[test]
fn the_small_heap_of_devtools_has_its_known_numbers() {
    let graph = graph_of(6, &[(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 5)]);
    let dominators = Dominators::of(&graph, 0, |_, _, _| true);
    assert_eq!(dominators.idoms(), [0, 0, 0, 0, 2, 3]);
    assert_eq!(retained_bytes(&dominators, |node| [0, 2, 3, 4, 5, 6][node as usize]), [20, 2, 8, 10, 5, 6]);
    assert_eq!(DominatorTree::of(&dominators).children(0), [3, 2, 1]);
}

#[test]
fn sums_above_four_gibibytes_do_not_wrap() {
    let graph = graph_of(3, &[(0, 1), (1, 2)]);
    let dominators = Dominators::of(&graph, 0, |_, _, _| true);
    assert_eq!(
        retained_bytes(&dominators, |_| 5_000_000_000),
        [15_000_000_000, 10_000_000_000, 5_000_000_000]
    );
    assert_eq!(retained_bytes(&dominators, |_| u64::MAX), [u64::MAX; 3]);
}
