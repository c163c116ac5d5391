//! Cache of names and locations.

use rustc_hash::FxHashMap;

use crate::heap::Place;

/// Cache of names, and locations that are known already.
#[derive(Debug, Default)]
pub(super) struct NameCache {
    /// Index of a str object's text among the strings, by its address and whether only identifiers
    /// may be written.
    pub(super) texts: FxHashMap<(u64, bool), Option<u32>>,
    pub(super) places: FxHashMap<Place, u32>,
}
