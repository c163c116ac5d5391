//! The way from a root down to an object, in words.

use super::scripts::Place;

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
