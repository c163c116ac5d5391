//! Where functions and constructors stand in their scripts.

/// A place in a script; line and column count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The node that was made there.
    pub node: u32,
    /// The script's number in its isolate.
    pub script_id: u32,
    /// Counts from 0.
    pub line: u32,
    /// Counts from 0.
    pub column: u32,
}

/// The locations of all nodes that have one, ordered by node.
#[derive(Debug, Default, Clone)]
pub struct Locations {
    sorted: Vec<Location>,
}

impl Locations {
    /// Orders `locations`; of several for one node the last in the file counts.
    pub(crate) fn new(mut locations: Vec<Location>) -> Self {
        locations.reverse();
        locations.sort_by_key(|location| location.node);
        locations.dedup_by_key(|location| location.node);
        locations.shrink_to_fit();
        Self { sorted: locations }
    }

    /// The location of `node`.
    pub fn of(&self, node: u32) -> Option<Location> {
        self.sorted.binary_search_by_key(&node, |location| location.node).ok().map(|at| self.sorted[at])
    }

    /// All of them, ordered by node.
    pub fn all(&self) -> &[Location] {
        &self.sorted
    }
}
