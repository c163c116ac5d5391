//! Snapshots of the heaps of managed languages.

pub(super) mod java_dump;
mod java_take;
mod take;

pub(super) use java_take::{JavaTakeOptions, is_java_chosen, take_java};
pub(super) use take::{HeapChoice, is_chosen, take};
