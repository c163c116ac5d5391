//! Cache of names and locations.

use rustc_hash::FxHashMap;

use crate::heap::Place;

/// Cache of names, and locations that are known already.
#[derive(Debug, Default)]
pub(super) struct NameCache {
    /// Text of a str object, by address: whether it is an identifier, and the string's index.
    pub(super) texts: FxHashMap<u64, Option<(bool, u32)>>,
    pub(super) places: FxHashMap<Place, u32>,
}
