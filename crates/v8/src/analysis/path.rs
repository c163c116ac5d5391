//! The way from a root down to an object, in words.

use super::naming::Naming;
use super::scripts::Place;
use crate::view::{EdgeName, Objects};
use crate::{EdgeKind, NodeKind};

/// Longer ways are cut at the root's end.
const MAX_STEPS: usize = 40;

/// One object on the way and how it is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathStep {
    /// What the object is called: its class, function name or root.
    pub name: String,
    /// The object's id.
    pub id: u64,
    /// How the object before it holds it: `.sessions`, `[3]`, `variable store`, empty for the first.
    pub held_as: String,
    /// Where its constructor, function or context stands, if that is code of the program.
    pub place: Option<Place>,
}

/// A short way from a root to `node`, the root first; the storage of collections is left out.
pub fn path_from_root<H: Objects + ?Sized>(heap: &H, naming: &Naming<'_, H>, node: u32) -> Vec<PathStep> {
    let step = |node: u32| PathStep {
        name: naming.own_name(node),
        id: heap.id(node),
        held_as: String::new(),
        place: naming.place(node).filter(|place| !place.is_of_the_runtime()),
    };
    let root = heap.root();
    let mut passed = vec![node];
    let mut steps = vec![step(node)];
    let mut at = node;
    while at != root && steps.len() < MAX_STEPS {
        let Some(edge) = naming.naming_edge(at) else { break };
        let mut held_as = edge_in_words(heap, edge);
        let mut holder = heap.source(edge);
        // The store of a collection is no step: what it holds is held by the collection.
        while heap.kind(holder) == NodeKind::ARRAY && !passed.contains(&holder) {
            let Some(above) = naming.naming_edge(holder) else { break };
            passed.push(holder);
            held_as = "[…]".to_owned();
            holder = heap.source(above);
        }
        if passed.contains(&holder) {
            break;
        }
        if let Some(below) = steps.last_mut() {
            below.held_as = held_as;
        }
        passed.push(holder);
        steps.push(step(holder));
        at = holder;
    }
    steps.reverse();
    steps
}

/// How an edge holds its target: `.name`, `[3]`, `variable name`, `(internal) name`.
pub fn edge_in_words(heap: &(impl Objects + ?Sized), edge: u32) -> String {
    match (heap.edge_kind(edge), heap.edge_name(edge)) {
        (EdgeKind::ELEMENT, EdgeName::Index(index)) => format!("[{index}]"),
        (EdgeKind::CONTEXT, EdgeName::Name(name)) => format!("variable {name}"),
        (EdgeKind::PROPERTY, EdgeName::Name(name)) => format!(".{name}"),
        (_, EdgeName::Name(name)) => format!("({name})"),
        (_, EdgeName::Index(index)) => format!("({index})"),
    }
}
