//! Snapshots of the live native blocks: rules for them, the cut, and writing in slices.

mod awake_receiver;
mod copied_memory;
pub(crate) mod graph_capture;
mod graph_notes;
pub(crate) mod heap_look;
pub(crate) mod managed_capture;
pub(crate) mod native_snapshot;
pub(crate) mod native_snapshot_rules;
pub(crate) mod no_graph;
pub(crate) mod running_look;
