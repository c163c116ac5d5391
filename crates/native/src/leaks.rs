//! Leaked blocks, folded so that each leak is reported once.
//!
//! ```text
//!   A --> B --> C          D <--> E --> C
//!   A: without a referrer: a leak      D, E: a circle: one of them stands for it, the older one
//!   B, C: indirect, they would go with their holders
//! ```
//! A leak retains the blocks that only it leads to: A retains B, the circle retains its other
//! block, and C is shared.

use heapr_graph::{Components, Dominators, Graph, retained_bytes};
use heapr_trace::HeapGraph;

use crate::verdict::{Reach, Verdicts};

/// Kind of a leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LeakKind {
    /// Without any reference to it.
    Definite,
    /// Reached by doubtful references only.
    Possible,
    /// Reached by leaked blocks only.
    Indirect,
}

impl LeakKind {
    /// Name in reports and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Definite => "definite",
            Self::Possible => "possible",
            Self::Indirect => "indirect",
        }
    }
}

/// A leaked block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leak {
    /// Number of the block.
    pub node: u32,
    /// Kind of the leak.
    pub kind: LeakKind,
    /// Bytes of the block and of all that only it leads to among leaked blocks.
    pub retained_bytes: u64,
    /// Whether the block stands for a circle of blocks that lead to each other.
    pub is_circle: bool,
    /// Nearest dominator among leaked blocks. It retains all that this block retains.
    pub below: Option<u32>,
}

/// All leaked blocks, by node.
#[derive(Debug, Clone)]
pub struct Leaks {
    /// The leaks, in order of the blocks.
    pub leaks: Vec<Leak>,
}

impl Leaks {
    /// Finds the leaks. `size_bytes` and `age_key` of each block: the block with the least key
    /// stands for its circle.
    pub fn of(
        graph: &HeapGraph,
        verdicts: &Verdicts,
        size_bytes: impl Fn(u32) -> u64,
        age_key: impl Fn(u32) -> u64,
    ) -> Self {
        let mut leaks = Vec::new();
        for reach in [Reach::Unreached, Reach::Possible] {
            leaks.extend(fold(graph, verdicts, reach, &size_bytes, &age_key));
        }
        leaks.sort_unstable_by_key(|leak: &Leak| leak.node);
        Self { leaks }
    }
}

/// Leaks among the blocks with one verdict.
fn fold(
    graph: &HeapGraph,
    verdicts: &Verdicts,
    reach: Reach,
    size_bytes: &impl Fn(u32) -> u64,
    age_key: &impl Fn(u32) -> u64,
) -> Vec<Leak> {
    let nodes: Vec<u32> = (0..graph.node_count()).filter(|&node| verdicts.reach(node) == reach).collect();
    if nodes.is_empty() {
        return Vec::new();
    }
    let place = |node: u32| nodes.binary_search(&node).ok().map(|place| place as u32);
    // Node 0 is an artificial root, which gets its edges below.
    let (mut rows, mut targets) = (vec![0_u32; 2], Vec::new());
    for &node in &nodes {
        for edge in graph.edges(node) {
            targets.extend(place(graph.targets[edge]).map(|place| place + 1));
        }
        rows.push(targets.len() as u32);
    }
    let Ok(inner) = Graph::new(rows.clone(), targets.clone()) else { return Vec::new() };
    let components = Components::of(&inner);
    let mut leaders: Vec<Option<u32>> = vec![None; components.count() as usize];
    let mut sizes = vec![0_u32; components.count() as usize];
    for place in 1..inner.node_count() {
        let component = components.of_node(place) as usize;
        sizes[component] += 1;
        let key = |place: u32| (age_key(nodes[place as usize - 1]), place);
        let leader = &mut leaders[component];
        if leader.is_none_or(|known| key(place) < key(known)) {
            *leader = Some(place);
        }
    }
    let mut is_held = vec![false; components.count() as usize];
    for place in 1..inner.node_count() {
        for target in inner.targets_of(place) {
            if components.of_node(target) != components.of_node(place) {
                is_held[components.of_node(target) as usize] = true;
            }
        }
    }
    let is_root = |place: u32| {
        let component = components.of_node(place) as usize;
        !is_held[component] && leaders[component] == Some(place)
    };
    // The root's edges come first.
    let roots: Vec<u32> = (1..inner.node_count()).filter(|&place| is_root(place)).collect();
    let root_count = roots.len() as u32;
    let rows: Vec<u32> = rows
        .iter()
        .enumerate()
        .map(|(number, &row)| if number == 0 { 0 } else { row + root_count })
        .collect();
    let all: Vec<u32> = roots.into_iter().chain(targets).collect();
    let Ok(rooted) = Graph::new(rows, all) else { return Vec::new() };
    let dominators = Dominators::of(&rooted, 0, |_, _, _| true);
    let bytes = |place: u32| if place == 0 { 0 } else { size_bytes(nodes[place as usize - 1]) };
    let retained = retained_bytes(&dominators, bytes);
    let kind = |place: u32| match reach {
        Reach::Unreached if is_root(place) => LeakKind::Definite,
        Reach::Unreached => LeakKind::Indirect,
        _ => LeakKind::Possible,
    };
    let leaks = (1..rooted.node_count()).map(|place| Leak {
        node: nodes[place as usize - 1],
        kind: kind(place),
        retained_bytes: retained[place as usize],
        is_circle: is_root(place) && sizes[components.of_node(place) as usize] > 1,
        below: dominators.idom(place).checked_sub(1).map(|above| nodes[above as usize]),
    });
    leaks.collect()
}

#[cfg(test)]
mod tests {
    use heapr_trace::{EdgeGrade, RootEdge};

    use super::*;

    fn graph(edges: &[&[u32]], roots: &[(u32, EdgeGrade)]) -> HeapGraph {
        let mut graph = HeapGraph { first_edge: vec![0], ..HeapGraph::default() };
        for row in edges {
            graph.targets.extend(*row);
            graph.first_edge.push(graph.targets.len() as u32);
        }
        graph.slots = vec![0; graph.targets.len()];
        graph.grades = vec![EdgeGrade::Start; graph.targets.len()];
        graph.roots = roots
            .iter()
            .map(|&(target, grade)| RootEdge { area: 0, offset_bytes: 0, target, grade })
            .collect();
        graph
    }

    fn found(graph: &HeapGraph) -> Vec<(u32, LeakKind, u64, bool)> {
        let verdicts = Verdicts::of(graph, |_| false);
        let leaks = Leaks::of(graph, &verdicts, |node| 10 + u64::from(node), u64::from);
        let told = leaks.leaks.iter();
        told.map(|leak| (leak.node, leak.kind, leak.retained_bytes, leak.is_circle)).collect()
    }

    #[test]
    fn a_chain_a_circle_and_what_they_share() {
        use LeakKind::*;
        // 0 -> 1 -> 2; 4 -> 3 -> 4 -> 2; 5 is held.
        let graph = graph(&[&[1], &[2], &[], &[4], &[3, 2], &[]], &[(5, EdgeGrade::Start)]);
        assert_eq!(
            found(&graph),
            [
                (0, Definite, 21, false),
                (1, Indirect, 11, false),
                (2, Indirect, 12, false),
                (3, Definite, 27, true),
                (4, Indirect, 14, false),
            ]
        );
    }

    #[test]
    fn what_only_doubtful_references_hold_is_possible() {
        use LeakKind::*;
        let mut graph =
            graph(&[&[1], &[], &[], &[2], &[]], &[(0, EdgeGrade::Interior), (3, EdgeGrade::Start)]);
        graph.grades[1] = EdgeGrade::OnePast;
        assert_eq!(
            found(&graph),
            [
                (0, Possible, 21, false),
                (1, Possible, 11, false),
                (2, Possible, 12, false),
                (4, Definite, 14, false)
            ]
        );
    }

    #[test]
    fn a_long_chain_is_walked_without_recursion() {
        let count = 300_000_u32;
        let rows: Vec<Vec<u32>> = (0..count).map(|node| vec![(node + 1).min(count - 1)]).collect();
        let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
        let graph = graph(&rows, &[]);
        let leaks = found(&graph);
        assert_eq!(leaks.iter().filter(|leak| leak.1 == LeakKind::Definite).count(), 1);
        assert_eq!(leaks[0].2, (0..count).map(|node| 10 + u64::from(node)).sum::<u64>());
    }
}
