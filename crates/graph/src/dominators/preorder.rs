//! Depth-first walk that numbers the nodes and classifies the edges for the computation of
//! dominators.

use crate::Graph;

const UNVISITED: u32 = u32::MAX;

/// Result of the walk. All arrays but `order` are indexed by preorder numbers, so that later work
/// stays within nearby memory. Most edges of a heap lead to nodes that the walk visits soon after.
pub(super) struct Preorder {
    /// Node of each number.
    pub(super) order: Vec<u32>,
    /// Number of the node from which each number was first reached; the root is its own parent.
    pub(super) parent: Vec<u32>,
    /// Smallest number with a tree or forward edge to each number.
    pub(super) semi: Vec<u32>,
    /// Other edges: those from a higher number to a lower one.
    pub(super) joins: Joins,
    /// First number of the nodes that refer only to each other; these hang from the root.
    pub(super) walked_count: u32,
}

/// Edges from higher to lower numbers, grouped by target.
pub(super) struct Joins {
    /// Index of each number's first source, followed by the number of sources.
    pub(super) first: Vec<u32>,
    /// Numbers of the sources.
    pub(super) sources: Vec<u32>,
}

impl Preorder {
    pub(super) fn of(graph: &Graph, root: u32, is_essential: impl Fn(u32, u32, u32) -> bool) -> Self {
        let node_count = graph.node_count() as usize;
        let mut walk = Walk {
            graph,
            is_essential: &is_essential,
            number: vec![UNVISITED; node_count],
            order: Vec::with_capacity(node_count),
            parent: Vec::with_capacity(node_count),
            semi: Vec::with_capacity(node_count),
            join_count: vec![0; node_count + 1],
            stack: Vec::new(),
        };
        walk.from(root, 0);
        if walk.order.len() < node_count {
            let mut has_essential = vec![false; node_count];
            for source in 0..graph.node_count() {
                for edge in graph.edges(source) {
                    let target = graph.target(edge);
                    if target != source && is_essential(edge, source, target) {
                        has_essential[target as usize] = true;
                    }
                }
            }
            for node in 0..graph.node_count() {
                if walk.number[node as usize] == UNVISITED && !has_essential[node as usize] {
                    walk.from(node, 0);
                }
            }
        }
        let walked_count = walk.order.len() as u32;
        let Walk { number, mut order, mut parent, semi, mut join_count, .. } = walk;
        let joins = collect_joins(graph, &is_essential, &number, &order, &mut join_count);
        if order.len() < node_count {
            order.extend((0..graph.node_count()).filter(|&node| number[node as usize] == UNVISITED));
            parent.resize(node_count, 0);
        }
        Self { order, parent, semi, joins, walked_count }
    }
}

struct Walk<'a, F> {
    graph: &'a Graph,
    is_essential: &'a F,
    number: Vec<u32>,
    order: Vec<u32>,
    parent: Vec<u32>,
    semi: Vec<u32>,
    join_count: Vec<u32>,
    stack: Vec<Frame>,
}

/// Node whose edges are being followed.
struct Frame {
    node: u32,
    number: u32,
    edge: u32,
    end: u32,
}

impl<F: Fn(u32, u32, u32) -> bool> Walk<'_, F> {
    fn from(&mut self, start: u32, parent: u32) {
        let mut top = self.enter(start, parent);
        loop {
            if top.edge == top.end {
                match self.stack.pop() {
                    Some(below) => top = below,
                    None => return,
                }
                continue;
            }
            let edge = top.edge;
            top.edge += 1;
            let target = self.graph.target(edge);
            let known = self.number[target as usize];
            if target == top.node || !(self.is_essential)(edge, top.node, target) {
                continue;
            }
            if known == UNVISITED {
                let below = top;
                top = self.enter(target, below.number);
                self.stack.push(below);
            } else if known > top.number {
                let semi = &mut self.semi[known as usize];
                *semi = (*semi).min(top.number);
            } else {
                self.join_count[known as usize] += 1;
            }
        }
    }

    fn enter(&mut self, node: u32, parent: u32) -> Frame {
        let number = self.order.len() as u32;
        self.number[node as usize] = number;
        self.order.push(node);
        self.parent.push(parent);
        self.semi.push(parent);
        let edges = self.graph.edges(node);
        Frame { node, number, edge: edges.start, end: edges.end }
    }
}

fn collect_joins(
    graph: &Graph,
    is_essential: &impl Fn(u32, u32, u32) -> bool,
    number: &[u32],
    order: &[u32],
    counts: &mut Vec<u32>,
) -> Joins {
    let mut first = std::mem::take(counts);
    // The root's dominator is fixed, so edges into the root are left out.
    first[0] = 0;
    let mut end = 0;
    for slot in &mut first {
        end += *slot;
        *slot = end;
    }
    let mut sources = vec![0u32; end as usize];
    for (source_number, &source) in order.iter().enumerate() {
        for edge in graph.edges(source) {
            let target = graph.target(edge);
            let target_number = number[target as usize];
            if target_number < source_number as u32
                && target_number != 0
                && is_essential(edge, source, target)
            {
                let slot = &mut first[target_number as usize];
                *slot -= 1;
                sources[*slot as usize] = source_number as u32;
            }
        }
    }
    Joins { first, sources }
}
