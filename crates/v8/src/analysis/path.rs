//! The way from a root down to an object, in words.

use std::collections::HashSet;

use super::naming::Naming;
use super::retaining_paths::retaining_paths;
use super::scripts::Place;
use crate::EdgeKind;
use crate::view::{EdgeName, Objects};

/// One object on the way and how it is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathStep {
    /// What the object is called: its class, function name or root.
    pub name: String,
    /// The object's id.
    pub id: u64,
    /// How the object before it holds it: `.sessions`, `[3]`, `variable store`, empty for the
    /// first.
    pub held_as: String,
    /// Where its constructor, function or context stands, if that is code of the program.
    pub place: Option<Place>,
    /// Whether it is the store of a collection: the object before it holds what it holds.
    pub is_storage: bool,
}

/// A shortest way from the root to `node`, the root first: the first of [`retaining_paths`].
pub fn path_from_root<H: Objects + ?Sized>(heap: &H, naming: &Naming<'_, H>, node: u32) -> Vec<PathStep> {
    retaining_paths(heap, naming, node, &HashSet::new(), 1).paths.pop().unwrap_or_default()
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
