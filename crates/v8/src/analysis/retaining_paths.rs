//! All ways in which an object is held, the shortest first.

use std::borrow::Cow;
use std::collections::HashSet;

use heapr_graph::{IncomingEdges, PathSearch};

use super::naming::Naming;
use super::path::{PathStep, edge_in_words};
use crate::view::Objects;
use crate::{EdgeKind, NodeKind};

/// Paths that are being extended at the same time; beyond it the longest are given up.
const MAX_PARTIAL_PATHS: usize = 500_000;

/// The ways found, and whether there are more.
#[derive(Debug, Clone, PartialEq)]
pub struct RetainingPaths {
    /// Each from a root down to the object.
    pub paths: Vec<Vec<PathStep>>,
    /// Whether longer ways were not looked for.
    pub is_cut: bool,
}

/// The `top` shortest paths from a root to `node` that avoid the nodes of `ignored`; weak references hold nothing.
pub fn retaining_paths<H: Objects + ?Sized>(
    heap: &H,
    naming: &Naming<'_, H>,
    node: u32,
    ignored: &HashSet<u32>,
    top: usize,
) -> RetainingPaths {
    let is_root = |at: u32| at != node && (heap.kind(at) == NodeKind::SYNTHETIC || heap.distance(at) <= 1);
    let is_followed = |edge: u32, from: u32, _| {
        heap.edge_kind(edge) != EdgeKind::WEAK && (!ignored.contains(&from) || from == heap.root())
    };
    let mut search = PathSearch::new(Incoming(heap), node, is_root, is_followed, MAX_PARTIAL_PATHS);
    let mut paths = Vec::new();
    for path in search.by_ref() {
        if paths.len() == top {
            break;
        }
        let mut steps = vec![step(heap, naming, node, String::new())];
        for edge in path.edges {
            if let Some(below) = steps.last_mut() {
                below.held_as = edge_in_words(heap, edge);
            }
            steps.push(step(heap, naming, heap.source(edge), String::new()));
        }
        steps.reverse();
        paths.push(steps);
    }
    RetainingPaths { paths, is_cut: search.is_cut() }
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

fn step<H: Objects + ?Sized>(heap: &H, naming: &Naming<'_, H>, node: u32, held_as: String) -> PathStep {
    PathStep {
        name: naming.own_name(node),
        id: heap.id(node),
        held_as,
        place: naming.place(node).filter(|place| !place.is_of_the_runtime()),
    }
}
