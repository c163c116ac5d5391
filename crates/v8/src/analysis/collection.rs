//! A collection of a heap, with how full its store is.

/// A Map, Set, Array or Object used as a dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// Node of the collection.
    pub node: u32,
    /// Number of references to objects and strings in the collection. Snapshots leave out small
    /// integers, so the collection may hold more elements.
    pub reference_count: u64,
    /// Bytes of the collection's store.
    pub store_bytes: u64,
    /// Bytes that would be freed with the collection.
    pub retained_bytes: u64,
    /// Share of the store that the references take, in percent, at most 100. `None` if the share is
    /// so small that the rest may be small integers, which a snapshot leaves out.
    pub fill_percent: Option<u64>,
}
