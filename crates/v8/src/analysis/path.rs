//! The way from a root down to an object, in words.

use super::scripts::Place;
use crate::EdgeKind;
use crate::objects::{EdgeName, Objects};

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
