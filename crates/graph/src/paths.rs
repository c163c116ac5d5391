//! The ways from a node up to a root, shortest first.

use std::borrow::Cow;

use crate::{Graph, Retainers};

/// Edges by the node that they go to, wherever they are kept.
pub trait IncomingEdges {
    /// The edges that go to `node`.
    fn edges_into(&self, node: u32) -> Cow<'_, [u32]>;
    /// The node that `edge` comes from.
    fn source(&self, edge: u32) -> u32;
}

impl IncomingEdges for (&Graph, &Retainers) {
    fn edges_into(&self, node: u32) -> Cow<'_, [u32]> {
        Cow::Borrowed(self.1.edges_into(node))
    }

    fn source(&self, edge: u32) -> u32 {
        self.0.source(edge)
    }
}

/// A way up: the edges from the node to the root, the first one goes into the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Edges from the bottom up: each one's source is the target of the next.
    pub edges: Vec<u32>,
}

/// A search for paths from one node to the roots against the direction of the edges.
///
/// It yields paths in order of length; a path never passes a node twice. The number of paths can be exponential, so
/// the partial paths that it keeps are bounded by `max_partial_paths`; when that is reached, [`PathSearch::is_cut`]
/// tells, and the paths found stay right.
pub struct PathSearch<Edges, IsRoot, IsFollowed> {
    edges: Edges,
    is_root: IsRoot,
    is_followed: IsFollowed,
    /// A tree of partial paths: each step extends an earlier one by an edge upwards.
    steps: Vec<Step>,
    head: usize,
    max_partial_paths: usize,
    is_cut: bool,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    node: u32,
    edge: u32,
    below: u32,
}

const NO_STEP: u32 = u32::MAX;

impl<Edges: IncomingEdges, IsRoot: Fn(u32) -> bool, IsFollowed: Fn(u32, u32, u32) -> bool>
    PathSearch<Edges, IsRoot, IsFollowed>
{
    /// Starts at `node`; a path ends at a node for which `is_root` holds; only edges for which
    /// `is_followed(edge, from, to)` holds are gone up (refuse those of ignored nodes here).
    pub fn new(
        edges: Edges,
        node: u32,
        is_root: IsRoot,
        is_followed: IsFollowed,
        max_partial_paths: usize,
    ) -> Self {
        Self {
            edges,
            is_root,
            is_followed,
            steps: vec![Step { node, edge: 0, below: NO_STEP }],
            head: 0,
            max_partial_paths: max_partial_paths.min(NO_STEP as usize),
            is_cut: false,
        }
    }

    /// Whether paths may be missing because the bound on partial paths was reached.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn passes(&self, mut step: u32, node: u32) -> bool {
        while step != NO_STEP {
            let Step { node: passed, below, .. } = self.steps[step as usize];
            if passed == node {
                return true;
            }
            step = below;
        }
        false
    }

    fn path_of(&self, step: Step) -> Path {
        let mut edges = vec![step.edge];
        let mut below = step.below;
        while below != NO_STEP && self.steps[below as usize].below != NO_STEP {
            edges.push(self.steps[below as usize].edge);
            below = self.steps[below as usize].below;
        }
        edges.reverse();
        Path { edges }
    }
}

impl<Edges, IsRoot, IsFollowed> std::fmt::Debug for PathSearch<Edges, IsRoot, IsFollowed> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PathSearch")
            .field("partial_paths", &self.steps.len())
            .field("is_cut", &self.is_cut)
            .finish_non_exhaustive()
    }
}

impl<Edges: IncomingEdges, IsRoot: Fn(u32) -> bool, IsFollowed: Fn(u32, u32, u32) -> bool> Iterator
    for PathSearch<Edges, IsRoot, IsFollowed>
{
    type Item = Path;

    fn next(&mut self) -> Option<Path> {
        while self.head < self.steps.len() {
            let at = self.head as u32;
            let step = self.steps[self.head];
            self.head += 1;
            if step.below != NO_STEP && (self.is_root)(step.node) {
                return Some(self.path_of(step));
            }
            for &edge in self.edges.edges_into(step.node).iter() {
                let source = self.edges.source(edge);
                if !(self.is_followed)(edge, source, step.node) || self.passes(at, source) {
                    continue;
                }
                if self.steps.len() >= self.max_partial_paths {
                    self.is_cut = true;
                    break;
                }
                self.steps.push(Step { node: source, edge, below: at });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ways up by definition: every sequence of edges without a repeated node that ends at the root.
    fn all_paths(
        graph: &Graph,
        from: u32,
        visited: &mut Vec<u32>,
        edges: &mut Vec<u32>,
        found: &mut Vec<Path>,
    ) {
        if from == 0 && !edges.is_empty() {
            found.push(Path { edges: edges.clone() });
            return;
        }
        visited.push(from);
        for edge in 0..graph.edge_count() {
            if graph.target(edge) == from && !visited.contains(&graph.source(edge)) {
                edges.push(edge);
                all_paths(graph, graph.source(edge), visited, edges, found);
                edges.pop();
            }
        }
        visited.pop();
    }

    #[test]
    fn paths_come_shortest_first_without_loops() {
        // 0 -> 1, 2; 1 -> 2, 3; 2 -> 1, 3; 3 -> 1 (loops 1-2, 1-3).
        let graph = Graph::new(vec![0, 2, 4, 6, 7], vec![1, 2, 2, 3, 1, 3, 1]).unwrap();
        let retainers = Retainers::of(&graph);
        let search = PathSearch::new((&graph, &retainers), 3, |node| node == 0, |_, _, _| true, 1000);
        let found: Vec<Path> = search.collect();
        assert!(found.is_sorted_by_key(|path| path.edges.len()));
        let mut expected = Vec::new();
        all_paths(&graph, 3, &mut Vec::new(), &mut Vec::new(), &mut expected);
        assert_eq!(found.len(), expected.len());
        assert!(expected.iter().all(|path| found.contains(path)));
    }

    #[test]
    fn an_ignored_node_is_not_passed() {
        let graph = Graph::new(vec![0, 2, 3, 4, 4], vec![1, 2, 3, 3]).unwrap();
        let retainers = Retainers::of(&graph);
        let search = PathSearch::new((&graph, &retainers), 3, |node| node == 0, |_, from, _| from != 1, 1000);
        assert_eq!(search.map(|path| path.edges).collect::<Vec<_>>(), [[3, 1]]);
    }

    #[test]
    fn an_exponential_number_of_paths_is_cut_and_told() {
        // A ladder: each rung can be reached in two ways from the one above.
        let rungs = 64u32;
        let first_edge = (0..=rungs).map(|node| 2 * node).chain([2 * rungs]).collect();
        let targets = (0..rungs).flat_map(|node| [node + 1, node + 1]).collect();
        let graph = Graph::new(first_edge, targets).unwrap();
        let retainers = Retainers::of(&graph);
        let mut search =
            PathSearch::new((&graph, &retainers), rungs, |node| node == 0, |_, _, _| true, 10_000);
        assert_eq!(search.next(), None);
        assert!(search.is_cut());
    }
}
