//! All ways in which an object is held, the shortest first.

use std::borrow::Cow;
use std::collections::HashSet;

use heapr_graph::{IncomingEdges, PathBounds, PathSearch};

use super::naming::Naming;
use super::path::PathStep;
use crate::devtools::BASE_SYSTEM_DISTANCE;
use crate::objects::Objects;
use crate::{EdgeKind, NodeKind};

/// Paths that are being extended at the same time; beyond it the longest are given up.
const MAX_PARTIAL_PATHS: usize = 500_000;
/// Nodes that are looked at for a first path; where that is not enough, distances lead to a root.
const MAX_NODES: usize = 8_000_000;
/// Partial paths from one node on, besides one for each path that is asked for.
const SPARE_PATHS_OF_NODE: usize = 4;

/// The ways found, and whether there are more.
#[derive(Debug, Clone, PartialEq)]
pub struct RetainingPaths {
    /// Each from a root down to the object.
    pub paths: Vec<Vec<PathStep>>,
    /// Whether longer ways were not looked for.
    pub is_cut: bool,
}

/// The `top` shortest paths from the root to `node` that avoid the nodes of `ignored`; weak
/// references hold nothing.
///
/// Those over the program's global objects come first, as in DevTools' distances: what a register
/// or a handle of the engine refers to at the moment tells nothing of why an object lives.
pub fn retaining_paths<H: Objects + ?Sized>(
    heap: &H,
    naming: &Naming<'_, H>,
    node: u32,
    ignored: &HashSet<u32>,
    top: usize,
) -> RetainingPaths {
    if node == heap.root() && top > 0 {
        return RetainingPaths { paths: vec![steps_of(heap, naming, node, &[])], is_cut: false };
    }
    // One way of the program's is looked for alone, which takes a look at each node. More of them
    // are taken where they are among the shortest: to look for all would mean to try all ways.
    let (mut paths, mut is_cut) = match heap.devtools_distance(node) {
        BASE_SYSTEM_DISTANCE.. => (Vec::new(), false),
        _ => shortest_paths(heap, node, ignored, top.min(1), true),
    };
    if paths.len() < top {
        let (others, is_cut_then) = shortest_paths(heap, node, ignored, top, false);
        is_cut |= is_cut_then;
        let (of_the_program, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|path| leads_over_the_program(heap, node, path));
        for path in of_the_program.into_iter().chain(others) {
            if paths.len() < top && !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    if paths.is_empty() && is_cut && ignored.is_empty() && top > 0 {
        paths.extend(path_by_distance(heap, node));
    }
    let steps = |edges: Vec<u32>| steps_of(heap, naming, node, &edges);
    RetainingPaths { paths: paths.into_iter().map(steps).collect(), is_cut }
}

/// A shortest way from the root to `node`, the root first: the first of [`retaining_paths`].
pub(crate) fn path_from_root<H: Objects + ?Sized>(
    heap: &H,
    naming: &Naming<'_, H>,
    node: u32,
) -> Vec<PathStep> {
    retaining_paths(heap, naming, node, &HashSet::new(), 1).paths.pop().unwrap_or_default()
}

/// The edges of each path from the bottom up, and whether there may be more.
fn shortest_paths<H: Objects + ?Sized>(
    heap: &H,
    node: u32,
    ignored: &HashSet<u32>,
    top: usize,
    only_of_the_program: bool,
) -> (Vec<Vec<u32>>, bool) {
    let root = heap.root();
    let is_root = |at: u32| at == root;
    let is_followed = |edge: u32, from: u32, to: u32| {
        heap.edge_kind(edge) != EdgeKind::WEAK
            && (from == root
                || !ignored.contains(&from) && (!only_of_the_program || is_of_the_program(heap, from, to)))
    };
    let bounds = PathBounds {
        partial_paths: if top > 1 { MAX_PARTIAL_PATHS } else { 0 },
        nodes: MAX_NODES,
        paths_of_node: top.saturating_add(SPARE_PATHS_OF_NODE),
    };
    let mut search = PathSearch::new(Incoming(heap), node, is_root, is_followed, bounds);
    let paths = search.by_ref().take(top).map(|path| path.edges).collect();
    (paths, search.is_cut())
}

/// Whether an edge is the program's: of the roots besides the root itself only what leads to its
/// contexts and documents.
fn is_of_the_program<H: Objects + ?Sized>(heap: &H, from: u32, to: u32) -> bool {
    heap.kind(from) != NodeKind::SYNTHETIC
        || heap.kind(to) == NodeKind::SYNTHETIC
        || *heap.string_bytes(heap.name_index(to)) == *b"system / NativeContext"
        || *heap.string_bytes(heap.name_index(from)) == *b"(Document DOM trees)"
}

/// Whether all edges of a path, from `node` up, are the program's.
fn leads_over_the_program<H: Objects + ?Sized>(heap: &H, node: u32, path: &[u32]) -> bool {
    let mut to = node;
    path.iter().all(|&edge| {
        let from = heap.source(edge);
        from == heap.root() || is_of_the_program(heap, from, std::mem::replace(&mut to, from))
    })
}

/// A path along the edges from the nearest holder each, where that comes to the root.
fn path_by_distance<H: Objects + ?Sized>(heap: &H, node: u32) -> Option<Vec<u32>> {
    let mut edges = Vec::new();
    let mut at = node;
    while at != heap.root() {
        let nearest = heap
            .edges_into(at, usize::MAX)
            .iter()
            .filter(|&&edge| heap.edge_kind(edge) != EdgeKind::WEAK)
            .map(|&edge| (rank(heap, heap.source(edge)), edge))
            .min()
            .filter(|&(nearest, _)| nearest < rank(heap, at))?;
        edges.push(nearest.1);
        at = heap.source(nearest.1);
    }
    Some(edges)
}

/// The distance, but the root itself comes before the objects that it refers to.
fn rank<H: Objects + ?Sized>(heap: &H, node: u32) -> u32 {
    if node == heap.root() { 0 } else { heap.distance(node).saturating_add(1) }
}

fn steps_of<H: Objects + ?Sized>(
    heap: &H,
    naming: &Naming<'_, H>,
    node: u32,
    edges: &[u32],
) -> Vec<PathStep> {
    let mut steps = vec![step(heap, naming, node)];
    for &edge in edges {
        if let Some(below) = steps.last_mut() {
            below.held_as = naming.edge_in_words(edge);
        }
        steps.push(step(heap, naming, heap.source(edge)));
    }
    steps.reverse();
    steps
}

struct Incoming<'a, H: ?Sized>(&'a H);

impl<H: Objects + ?Sized> IncomingEdges for Incoming<'_, H> {
    fn edges_into(&self, node: u32) -> Cow<'_, [u32]> {
        self.0.edges_into(node, usize::MAX)
    }

    fn source(&self, edge: u32) -> u32 {
        self.0.source(edge)
    }
}

fn step<H: Objects + ?Sized>(heap: &H, naming: &Naming<'_, H>, node: u32) -> PathStep {
    PathStep {
        name: naming.own_name(node),
        id: heap.id(node),
        held_as: String::new(),
        place: naming.place(node).filter(|place| !place.is_of_the_runtime()),
        is_storage: heap.kind(node) == NodeKind::ARRAY,
    }
}
