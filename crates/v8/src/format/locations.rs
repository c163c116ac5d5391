//! Locations of functions and constructors in their scripts.

/// Location in a script; line and column count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// Node that was created at the location.
    pub node: u32,
    /// Number of the script in its isolate.
    pub script_id: u32,
    /// Line, from 0.
    pub line: u32,
    /// Column, from 0.
    pub column: u32,
}

/// Locations of all nodes that have one, ordered by node.
#[derive(Debug, Default, Clone)]
pub struct Locations {
    sorted: Vec<Location>,
}

impl Locations {
    /// Sorts `locations`. If a node has several, the last in the file counts.
    pub(crate) fn new(mut locations: Vec<Location>) -> Self {
        locations.reverse();
        locations.sort_by_key(|location| location.node);
        locations.dedup_by_key(|location| location.node);
        locations.shrink_to_fit();
        Self { sorted: locations }
    }

    /// Returns the location of `node`.
    pub fn of(&self, node: u32) -> Option<Location> {
        self.sorted.binary_search_by_key(&node, |location| location.node).ok().map(|at| self.sorted[at])
    }

    /// All locations, ordered by node.
    pub fn all(&self) -> &[Location] {
        &self.sorted
    }
}
