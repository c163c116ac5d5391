//! Depth-first walk that numbers the nodes and classifies the edges for the computation of
//! dominators.

use crate::Graph;

const UNVISITED: u32 = u32::MAX;

/// Result of the walk. All arrays but `order` are indexed by preorder numbers, so that later work
/// stays within nearby memory. Most edges of a heap lead to nodes that the walk visits soon after.
pub(super) struct Preorder {
    /// Node of each number.
    pub(super) order: Vec<u32>,
    /// For each number, the one from which it was first reached (the root is its own), and the
    /// index behind its last source in `join_sources`.
    pub(super) links: Vec<Link>,
    /// Smallest number with a tree or forward edge to each number.
    pub(super) semi: Vec<u32>,
    /// Sources of other edges: those from a higher number to a lower one, grouped by target.
    pub(super) join_sources: Vec<u32>,
    /// First number of the nodes that refer only to each other; these hang from the root.
    pub(super) walked_count: u32,
}

/// Joins are kept from the walk up to the number of nodes divided by this: a pair takes two words
/// of a column of nodes. More of them are found by a second walk.
const JOINS_SHARE: usize = 2;

/// Two facts of a number. They are used together, and what they are changes while memory is scarce.
#[derive(Clone, Copy)]
pub(super) struct Link {
    /// Number above it.
    pub(super) ancestor: u32,
    /// Border of its sources, or least semidominator.
    pub(super) value: u32,
}

impl Preorder {
    pub(super) fn of(graph: &Graph, root: u32, is_essential: impl Fn(u32, u32, u32) -> bool) -> Self {
        let node_count = graph.node_count() as usize;
        let mut walk = Walk {
            graph,
            is_essential: &is_essential,
            number: vec![UNVISITED; node_count],
            order: Vec::with_capacity(node_count),
            links: Vec::with_capacity(node_count),
            semi: Vec::with_capacity(node_count),
            stack: Vec::new(),
            joins: Some(Vec::new()),
            joins_max: node_count / JOINS_SHARE,
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
        let Walk { number, mut order, mut links, semi, joins, .. } = walk;
        let join_sources = match joins {
            Some(joins) => sort_joins(&joins, &mut links),
            None => collect_joins(graph, &is_essential, &number, &order, &mut links),
        };
        if order.len() < node_count {
            order.extend((0..graph.node_count()).filter(|&node| number[node as usize] == UNVISITED));
            links.resize(node_count, Link { ancestor: 0, value: join_sources.len() as u32 });
        }
        Self { order, links, semi, join_sources, walked_count }
    }
}

struct Walk<'a, F> {
    graph: &'a Graph,
    is_essential: &'a F,
    number: Vec<u32>,
    order: Vec<u32>,
    /// Parent of each number, and count of its joins.
    links: Vec<Link>,
    semi: Vec<u32>,
    stack: Vec<Frame>,
    /// Number and source of each join; `None` once there are too many.
    joins: Option<Vec<(u32, u32)>>,
    joins_max: usize,
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
                self.links[known as usize].value += 1;
                self.join(known, top.number);
            }
        }
    }

    fn join(&mut self, number: u32, source: u32) {
        match &mut self.joins {
            Some(joins) if joins.len() < self.joins_max => joins.push((number, source)),
            joins => *joins = None,
        }
    }

    fn enter(&mut self, node: u32, parent: u32) -> Frame {
        let number = self.order.len() as u32;
        self.number[node as usize] = number;
        self.order.push(node);
        self.links.push(Link { ancestor: parent, value: 0 });
        self.semi.push(parent);
        let edges = self.graph.edges(node);
        Frame { node, number, edge: edges.start, end: edges.end }
    }
}

/// Turns the counts of the joins into borders. Returns the number of joins.
fn borders(links: &mut [Link]) -> usize {
    // The root's dominator is fixed, so edges into the root are left out.
    links[0].value = 0;
    let mut next = 0;
    for link in links {
        next += std::mem::replace(&mut link.value, next);
    }
    next as usize
}

/// Returns the sources of joins that were kept, and turns their counts into borders.
fn sort_joins(joins: &[(u32, u32)], links: &mut [Link]) -> Vec<u32> {
    let mut sources = vec![0u32; borders(links)];
    // A border moves from the first source of its number to behind the last one.
    for &(number, source) in joins.iter().filter(|(number, _)| *number != 0) {
        let border = &mut links[number as usize].value;
        sources[*border as usize] = source;
        *border += 1;
    }
    sources
}

/// Returns the sources of the joins by a second walk, and turns their counts into borders.
fn collect_joins(
    graph: &Graph,
    is_essential: &impl Fn(u32, u32, u32) -> bool,
    number: &[u32],
    order: &[u32],
    links: &mut [Link],
) -> Vec<u32> {
    let mut sources = vec![0u32; borders(links)];
    // A border moves from the first source of its number to behind the last one.
    for (source_number, &source) in order.iter().enumerate() {
        for edge in graph.edges(source) {
            let target = graph.target(edge);
            let target_number = number[target as usize];
            if target_number < source_number as u32
                && target_number != 0
                && is_essential(edge, source, target)
            {
                let border = &mut links[target_number as usize].value;
                sources[*border as usize] = source_number as u32;
                *border += 1;
            }
        }
    }
    sources
}
