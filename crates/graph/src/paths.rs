//! Paths from a node up to a root, shortest first.

use std::borrow::Cow;
use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::{Graph, Retainers};

/// Access to edges by target, independent of their storage.
pub trait IncomingEdges {
    /// Returns the edges into `node`.
    fn edges_into(&self, node: u32) -> Cow<'_, [u32]>;
    /// Returns the source of `edge`.
    fn source(&self, edge: u32) -> u32;
    /// Least number of edges from a root to `node`, or less; `u32::MAX` if no root leads to it.
    fn steps_from_root(&self, _node: u32) -> u32 {
        0
    }
}

impl IncomingEdges for (&Graph, &Retainers) {
    fn edges_into(&self, node: u32) -> Cow<'_, [u32]> {
        Cow::Borrowed(self.1.edges_into(node))
    }

    fn source(&self, edge: u32) -> u32 {
        self.0.source(edge)
    }
}

impl<Edges: IncomingEdges> IncomingEdges for &Edges {
    fn edges_into(&self, node: u32) -> Cow<'_, [u32]> {
        (**self).edges_into(node)
    }

    fn source(&self, edge: u32) -> u32 {
        (**self).source(edge)
    }

    fn steps_from_root(&self, node: u32) -> u32 {
        (**self).steps_from_root(node)
    }
}

/// Path up: the edges from the node to the root; the first one leads into the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Edges from the bottom up: each one's source is the target of the next.
    pub edges: Vec<u32>,
}

/// Bounds of a search.
#[derive(Debug, Clone, Copy)]
pub struct PathBounds {
    /// Number of partial paths above which only unvisited nodes are entered.
    pub partial_paths: usize,
    /// Largest number of nodes that are entered.
    pub nodes: usize,
    /// Largest number of partial paths from one node.
    pub paths_of_node: usize,
    /// Largest number of edges of a path.
    pub length: u32,
}

/// Search for paths from one node to the roots, against the direction of the edges.
///
/// The search yields paths by ascending length; a path never passes a node twice. The number of
/// paths can be exponential, so the number of continuations from each node is limited. The first
/// path found is a shortest one. Later ones may be incomplete; [`PathSearch::is_cut`] tells. The
/// work is linear in the examined edges.
pub struct PathSearch<Edges, IsRoot, IsFollowed> {
    edges: Edges,
    is_root: IsRoot,
    is_followed: IsFollowed,
    /// Tree of partial paths: each step extends an earlier one by an edge upwards.
    steps: Vec<Step>,
    /// Last step at each node, from which the earlier ones are linked.
    last_at: FxHashMap<u32, u32>,
    head: usize,
    found: VecDeque<Step>,
    bounds: PathBounds,
    is_cut: bool,
    has_longer: bool,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    node: u32,
    edge: u32,
    below: u32,
    depth: u32,
    /// Step further down, by which any step below is found in logarithmic time of the depth.
    jump: u32,
    /// Previous step at the same node.
    earlier: u32,
}

const NO_STEP: u32 = u32::MAX;

/// Result of testing whether a path can continue to a node.
enum Passage {
    Free,
    Loop,
    NoRoom,
}

impl<Edges: IncomingEdges, IsRoot: Fn(u32) -> bool, IsFollowed: Fn(u32, u32, u32) -> bool>
    PathSearch<Edges, IsRoot, IsFollowed>
{
    /// Starts at `node`. A path ends at a node for which `is_root` holds. Only edges for which
    /// `is_followed(edge, from, to)` holds are followed; refuse edges of ignored nodes there.
    pub fn new(
        edges: Edges,
        node: u32,
        is_root: IsRoot,
        is_followed: IsFollowed,
        bounds: PathBounds,
    ) -> Self {
        let first = Step { node, edge: 0, below: NO_STEP, depth: 0, jump: 0, earlier: NO_STEP };
        Self {
            edges,
            is_root,
            is_followed,
            steps: vec![first],
            last_at: FxHashMap::from_iter([(node, 0)]),
            head: 0,
            found: VecDeque::new(),
            bounds,
            is_cut: false,
            has_longer: false,
        }
    }

    /// True if paths may exist that are longer than the bound.
    pub fn has_longer(&self) -> bool {
        self.has_longer
    }

    /// Whether paths may be missing because a bound was reached.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Extends the step `at` upwards along all edges.
    fn extend(&mut self, at: u32) {
        let Step { node, depth, jump, .. } = self.steps[at as usize];
        // Two jumps of equal length combine to one of twice the length, as in a number system whose
        // digits are jumps.
        let beyond = self.steps[jump as usize];
        let is_twice = depth - beyond.depth == beyond.depth - self.steps[beyond.jump as usize].depth;
        let jump = if is_twice { beyond.jump } else { at };
        for &edge in self.edges.edges_into(node).iter() {
            let source = self.edges.source(edge);
            if !(self.is_followed)(edge, source, node) {
                continue;
            }
            if self.edges.steps_from_root(source) > self.bounds.length.saturating_sub(depth + 1) {
                self.has_longer = true;
                continue;
            }
            let mut step = Step { node: source, edge, below: at, depth: depth + 1, jump, earlier: NO_STEP };
            if (self.is_root)(source) {
                if source != self.steps[0].node {
                    self.found.push_back(step);
                }
                continue;
            }
            let last = self.last_at.get(&source).copied().unwrap_or(NO_STEP);
            match self.passage(at, last) {
                Passage::Loop => {}
                Passage::NoRoom => self.is_cut = true,
                Passage::Free => {
                    step.earlier = last;
                    self.last_at.insert(source, self.steps.len() as u32);
                    self.steps.push(step);
                }
            }
        }
    }

    /// Tests whether the path that ends at step `at` can continue to the node whose last step is
    /// `last`.
    fn passage(&self, at: u32, last: u32) -> Passage {
        let mut count = 0;
        let mut passed = last;
        while passed != NO_STEP {
            if self.is_below(passed, at) {
                return Passage::Loop;
            }
            count += 1;
            passed = self.steps[passed as usize].earlier;
        }
        let most = if count == 0 { self.bounds.nodes } else { self.bounds.partial_paths };
        let has_room = count < self.bounds.paths_of_node && self.steps.len() < most.min(NO_STEP as usize);
        if has_room { Passage::Free } else { Passage::NoRoom }
    }

    /// Whether the path that ends at step `at` leads through step `below`.
    fn is_below(&self, below: u32, at: u32) -> bool {
        let depth = self.steps[below as usize].depth;
        let mut at = at;
        while self.steps[at as usize].depth > depth {
            let Step { jump, below, .. } = self.steps[at as usize];
            at = if self.steps[jump as usize].depth >= depth { jump } else { below };
        }
        at == below
    }

    fn path_of(&self, step: Step) -> Path {
        let mut edges = Vec::with_capacity(step.depth as usize);
        let mut at = step;
        while at.below != NO_STEP {
            edges.push(at.edge);
            at = self.steps[at.below as usize];
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
        while self.found.is_empty() && self.head < self.steps.len() {
            self.head += 1;
            self.extend(self.head as u32 - 1);
        }
        self.found.pop_front().map(|step| self.path_of(step))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const WIDE: PathBounds =
        PathBounds { partial_paths: 1000, nodes: 1000, paths_of_node: 1000, length: u32::MAX };

    /// Returns all paths by definition: every sequence of edges without a repeated node that ends
    /// at the root.
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
        let search = PathSearch::new((&graph, &retainers), 3, |node| node == 0, |_, _, _| true, WIDE);
        let found: Vec<Path> = search.collect();
        assert!(found.is_sorted_by_key(|path| path.edges.len()));
        let mut expected = Vec::new();
        all_paths(&graph, 3, &mut Vec::new(), &mut Vec::new(), &mut expected);
        assert_eq!(found.len(), expected.len());
        assert!(expected.iter().all(|path| found.contains(path)));
    }

    /// Edges with the distances from the root.
    struct Guided<'a>((&'a Graph, &'a Retainers), Vec<u32>);

    impl IncomingEdges for Guided<'_> {
        fn edges_into(&self, node: u32) -> Cow<'_, [u32]> {
            self.0.edges_into(node)
        }

        fn source(&self, edge: u32) -> u32 {
            self.0.source(edge)
        }

        fn steps_from_root(&self, node: u32) -> u32 {
            self.1[node as usize]
        }
    }

    #[test]
    fn a_bound_of_the_length_leaves_the_shorter_paths_in_their_order() {
        // 0 -> 1, 2; 1 -> 2, 3; 2 -> 1, 3; 3 -> 1 (loops 1-2, 1-3).
        let graph = Graph::new(vec![0, 2, 4, 6, 7], vec![1, 2, 2, 3, 1, 3, 1]).unwrap();
        let retainers = Retainers::of(&graph);
        let edges = Guided((&graph, &retainers), vec![0, 1, 1, 2]);
        let paths = |length: u32| {
            let bounds = PathBounds { length, ..WIDE };
            let mut search = PathSearch::new(&edges, 3, |node| node == 0, |_, _, _| true, bounds);
            (search.by_ref().collect::<Vec<Path>>(), search.has_longer())
        };
        let (all, has_longer) = paths(u32::MAX);
        assert!(all.len() == 4 && !has_longer);
        assert_eq!(paths(2), (all[..2].to_vec(), true));
        assert_eq!(paths(3).0, all);
        assert_eq!(paths(1), (Vec::new(), true));
    }

    #[test]
    fn an_ignored_node_is_not_passed() {
        let graph = Graph::new(vec![0, 2, 3, 4, 4], vec![1, 2, 3, 3]).unwrap();
        let retainers = Retainers::of(&graph);
        let search = PathSearch::new((&graph, &retainers), 3, |node| node == 0, |_, from, _| from != 1, WIDE);
        assert_eq!(search.map(|path| path.edges).collect::<Vec<_>>(), [[3, 1]]);
    }

    #[test]
    fn of_an_exponential_number_of_paths_some_are_found_and_that_is_told() {
        // Ladder: two edges lead to each rung from the one above.
        let rungs = 64u32;
        let first_edge = (0..=rungs).map(|node| 2 * node).chain([2 * rungs]).collect();
        let targets = (0..rungs).flat_map(|node| [node + 1, node + 1]).collect();
        let graph = Graph::new(first_edge, targets).unwrap();
        let retainers = Retainers::of(&graph);
        let bounds = PathBounds { partial_paths: 10_000, nodes: 10_000, paths_of_node: 8, length: u32::MAX };
        let mut search =
            PathSearch::new((&graph, &retainers), rungs, |node| node == 0, |_, _, _| true, bounds);
        assert!(search.by_ref().take(8).all(|path| path.edges.len() == rungs as usize));
        assert!(search.is_cut());
    }

    /// Counter of the edges that a search examines.
    struct Counted<'a>((&'a Graph, &'a Retainers), Cell<usize>);

    impl IncomingEdges for Counted<'_> {
        fn edges_into(&self, node: u32) -> Cow<'_, [u32]> {
            self.0.edges_into(node)
        }

        fn source(&self, edge: u32) -> u32 {
            self.1.set(self.1.get() + 1);
            self.0.source(edge)
        }
    }

    #[test]
    fn in_a_list_linked_both_ways_the_work_grows_with_its_length() {
        // Node 0 refers to the first and the last link; each link refers to the next and the
        // previous one.
        let work = |length: u32| {
            let mut targets = vec![1, length];
            let mut first_edge = vec![0, 2];
            for link in 1..=length {
                targets.extend([link + 1, link - 1].into_iter().filter(|other| (1..=length).contains(other)));
                first_edge.push(targets.len() as u32);
            }
            let graph = Graph::new(first_edge, targets).unwrap();
            let retainers = Retainers::of(&graph);
            let edges = Counted((&graph, &retainers), Cell::new(0));
            let bounds =
                PathBounds { partial_paths: 100, nodes: usize::MAX, paths_of_node: 8, length: u32::MAX };
            let mut search = PathSearch::new(&edges, length / 2, |node| node == 0, |_, _, _| true, bounds);
            let lengths: Vec<usize> = search.by_ref().map(|path| path.edges.len()).collect();
            assert_eq!(lengths, [length as usize / 2, length as usize / 2 + 1]);
            edges.1.get()
        };
        assert!(work(80_000) < 10 * work(10_000));
    }
}
