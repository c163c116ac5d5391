//! Path from a root down to an object, in words.

use serde::{Deserialize, Serialize};

use super::scripts::Place;

/// Object on a path, and the reference that leads to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStep {
    /// Name of the object: class, function name or root.
    pub name: String,
    /// Id of the object.
    pub id: u64,
    /// Reference from the previous object: `.sessions`, `[3]`, `variable store`. Empty for the
    /// first object.
    pub held_as: String,
    /// Source location of its constructor, function or context, if that is code of the program.
    pub place: Option<Place>,
    /// Whether the object is the store of a collection: the previous object holds the contents.
    pub is_storage: bool,
    /// Whether the reference says what the object is, also where it begins in a store.
    pub is_told: bool,
}
