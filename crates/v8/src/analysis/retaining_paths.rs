//! Paths by which an object is held, shortest first.

use std::borrow::Cow;
use std::collections::HashSet;

use heapr_graph::{IncomingEdges, PathBounds, PathSearch};

use super::naming::Naming;
use super::path::PathStep;
use crate::devtools::BASE_SYSTEM_DISTANCE;
use crate::objects::Objects;
use crate::{EdgeKind, NodeKind};

/// Largest number of paths that are extended at the same time; beyond it the longest are given up.
const MAX_PARTIAL_PATHS: usize = 500_000;
/// Largest number of nodes visited in search of a first path. Beyond it, distances lead to a root.
const MAX_NODES: usize = 8_000_000;
/// Number of partial paths from one node, in addition to one per requested path.
const SPARE_PATHS_OF_NODE: usize = 4;

/// Paths found, and whether more may exist.
#[derive(Debug, Clone, PartialEq)]
pub struct RetainingPaths {
    /// Paths, each from a root down to the object.
    pub paths: Vec<Vec<PathStep>>,
    /// Whether the search stopped before all longer paths were found.
    pub is_cut: bool,
}

/// Numbers of edges from the root to each node of a heap in memory: over all edges that hold, and
/// over those of the program. They keep a search for paths to what can be on a short one.
#[derive(Debug)]
pub struct RootSteps {
    over_all: Vec<u32>,
    over_the_program: Vec<u32>,
}

impl RootSteps {
    /// Walks over a heap from its root.
    pub(crate) fn of<H: Objects + ?Sized>(heap: &H) -> Self {
        let holds = |edge: u32| heap.edge_kind(edge) != EdgeKind::WEAK;
        let is_program = |from: u32, to: u32| from == heap.root() || is_of_the_program(heap, from, to);
        Self {
            over_all: steps_from_root(heap, |edge, _, _| holds(edge)),
            over_the_program: steps_from_root(heap, |edge, from, to| holds(edge) && is_program(from, to)),
        }
    }
}

fn steps_from_root<H: Objects + ?Sized>(heap: &H, is_followed: impl Fn(u32, u32, u32) -> bool) -> Vec<u32> {
    let mut steps = vec![u32::MAX; heap.node_count() as usize];
    let mut queue = vec![heap.root()];
    steps[heap.root() as usize] = 0;
    let mut next = 0;
    while let Some(&from) = queue.get(next) {
        next += 1;
        for edge in heap.edges(from) {
            let to = heap.target(edge);
            if steps[to as usize] == u32::MAX && is_followed(edge, from, to) {
                steps[to as usize] = steps[from as usize] + 1;
                queue.push(to);
            }
        }
    }
    steps
}

/// Edges by which a path may be longer than the shortest one, in one search after the other; then
/// any number. Few objects need more than the first.
const LONGER: [u32; 4] = [0, 1, 3, 8];

/// Returns the `top` shortest paths from the root to `node` that avoid the nodes of `ignored`. Weak
/// references hold nothing.
///
/// Paths over the program's global objects come first, as in DevTools' distances. A register or
/// handle of the engine that refers to an object at the moment says nothing about why it lives.
pub fn retaining_paths<H: Objects + ?Sized>(
    heap: &H,
    naming: &Naming<'_, H>,
    node: u32,
    ignored: &HashSet<u32>,
    top: usize,
    steps: Option<&RootSteps>,
) -> RetainingPaths {
    if node == heap.root() && top > 0 {
        return RetainingPaths { paths: vec![steps_of(heap, naming, node, &[])], is_cut: false };
    }
    // A separate search finds one path over the program, which visits each node once. Further such
    // paths are accepted if they are among the shortest; finding all would require trying every
    // path.
    let (mut paths, mut is_cut) = match heap.devtools_distance(node) {
        BASE_SYSTEM_DISTANCE.. => (Vec::new(), false),
        _ => shortest_paths(heap, (node, top.min(1)), ignored, true, steps),
    };
    if paths.len() < top {
        let (others, is_cut_then) = shortest_paths(heap, (node, top), ignored, false, steps);
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

/// Returns a shortest path from the root to `node`, root first: the first of [`retaining_paths`].
pub(crate) fn path_from_root<H: Objects + ?Sized>(
    heap: &H,
    naming: &Naming<'_, H>,
    node: u32,
) -> Vec<PathStep> {
    retaining_paths(heap, naming, node, &HashSet::new(), 1, None).paths.pop().unwrap_or_default()
}

/// Returns the edges of each of the `top` paths from the bottom up, and whether more paths may
/// exist.
fn shortest_paths<H: Objects + ?Sized>(
    heap: &H,
    (node, top): (u32, usize),
    ignored: &HashSet<u32>,
    only_of_the_program: bool,
    steps: Option<&RootSteps>,
) -> (Vec<Vec<u32>>, bool) {
    let root = heap.root();
    let is_root = |at: u32| at == root;
    let is_followed = |edge: u32, from: u32, to: u32| {
        heap.edge_kind(edge) != EdgeKind::WEAK
            && (from == root
                || !ignored.contains(&from) && (!only_of_the_program || is_of_the_program(heap, from, to)))
    };
    let steps = steps.map(|steps| match only_of_the_program {
        true => steps.over_the_program.as_slice(),
        false => &steps.over_all,
    });
    let least = steps.and_then(|steps| steps.get(node as usize).copied());
    let lengths = least.into_iter().flat_map(|least| LONGER.map(|more| least.saturating_add(more)));
    let mut found = (Vec::new(), false);
    for length in lengths.chain([u32::MAX]) {
        let bounds = PathBounds {
            partial_paths: if top > 1 { MAX_PARTIAL_PATHS } else { 0 },
            nodes: MAX_NODES,
            paths_of_node: top.saturating_add(SPARE_PATHS_OF_NODE),
            length,
        };
        let mut search = PathSearch::new(Incoming { heap, steps }, node, is_root, is_followed, bounds);
        let paths: Vec<Vec<u32>> = search.by_ref().take(top).map(|path| path.edges).collect();
        let is_whole = paths.len() >= top || !search.has_longer();
        found = (paths, search.is_cut());
        if is_whole {
            break;
        }
    }
    found
}

/// Whether an edge belongs to the program. Roots other than the root itself count only for edges to
/// contexts and documents.
fn is_of_the_program<H: Objects + ?Sized>(heap: &H, from: u32, to: u32) -> bool {
    heap.kind(from) != NodeKind::SYNTHETIC
        || heap.kind(to) == NodeKind::SYNTHETIC
        || *heap.string_bytes(heap.name_index(to)) == *b"system / NativeContext"
        || *heap.string_bytes(heap.name_index(from)) == *b"(Document DOM trees)"
}

/// Whether all edges of a path, from `node` up, belong to the program.
fn leads_over_the_program<H: Objects + ?Sized>(heap: &H, node: u32, path: &[u32]) -> bool {
    let mut to = node;
    path.iter().all(|&edge| {
        let from = heap.source(edge);
        from == heap.root() || is_of_the_program(heap, from, std::mem::replace(&mut to, from))
    })
}

/// Returns a path that follows the nearest holder at each step, or `None` if that does not reach
/// the root.
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

/// Returns the distance plus one; 0 for the root, so that it comes before the objects that it
/// refers to.
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
            below.is_told = naming.reference_that_begins(edge).is_some();
        }
        steps.push(step(heap, naming, heap.source(edge)));
    }
    steps.reverse();
    steps
}

struct Incoming<'a, H: ?Sized> {
    heap: &'a H,
    /// Numbers of edges from the root, if they are known.
    steps: Option<&'a [u32]>,
}

impl<H: Objects + ?Sized> IncomingEdges for Incoming<'_, H> {
    fn edges_into(&self, node: u32) -> Cow<'_, [u32]> {
        self.heap.edges_into(node, usize::MAX)
    }

    fn source(&self, edge: u32) -> u32 {
        self.heap.source(edge)
    }

    fn steps_from_root(&self, node: u32) -> u32 {
        self.steps.and_then(|steps| steps.get(node as usize).copied()).unwrap_or(0)
    }
}

fn step<H: Objects + ?Sized>(heap: &H, naming: &Naming<'_, H>, node: u32) -> PathStep {
    PathStep {
        name: naming.own_name(node),
        id: heap.id(node),
        held_as: String::new(),
        place: naming.place(node).filter(|place| !place.is_of_the_runtime()),
        is_storage: heap.kind(node) == NodeKind::ARRAY,
        is_told: false,
    }
}
