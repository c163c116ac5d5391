//! A collection of a heap, with how full its store is.

use serde::{Deserialize, Serialize};

/// Slots of a collection's store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// Number of slots.
    pub count: u64,
    /// Number of slots that something is in.
    pub used: u64,
    /// Bytes of one slot.
    pub slot_bytes: u64,
}

impl Slots {
    /// Bytes of the slots that nothing is in.
    #[must_use]
    pub fn wasted_bytes(self) -> u64 {
        self.count.saturating_sub(self.used).saturating_mul(self.slot_bytes)
    }

    /// Share of the slots that something is in, in percent.
    #[must_use]
    pub fn fill_percent(self) -> u64 {
        let percent = u128::from(self.used) * 100 / u128::from(self.count.max(1));
        percent.min(100) as u64
    }
}

/// A Map, Set, Array or Object used as a dictionary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Slots of the store; `None` if the heap does not show them.
    pub slots: Option<Slots>,
}
