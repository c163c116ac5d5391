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
    /// Index of a key as it is shown, by the index of its text.
    pub(super) keys: FxHashMap<u32, u32>,
    /// Index of a name that is part of heapr, by address and length of its text.
    pub(super) fixed: FxHashMap<(usize, usize), u32>,
    /// Index of the name of a field without a name, by its offset.
    pub(super) offsets: FxHashMap<u64, u32>,
    /// Index of the name of a word that leads inside of a block, by its offset.
    pub(super) insides: FxHashMap<u64, u32>,
    /// Module of each name in `sys.modules`, of the first interpreter that has it.
    pub(super) modules: Option<FxHashMap<String, u64>>,
}
