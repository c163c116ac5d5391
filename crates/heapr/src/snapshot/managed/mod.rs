//! Snapshots of the heaps of managed languages.

mod take;

pub(super) use take::{HeapChoice, is_chosen, take};
