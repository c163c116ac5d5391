//! Indexes of snapshots: all results computed from a snapshot, in a file of columns that is read by
//! position.
//!
//! A snapshot that has an index opens without computation and with little reading. A query about
//! one object reads a few blocks ([`StoredGraph`]). A list of objects reads the columns that it
//! depends on. Analyses of the whole graph load it without parsing text.

mod blocks;
mod class_ends;
mod edge_sources;
mod edge_walks;
mod heap_columns;
mod layout;
mod loaded_heap;
mod retainer_orders;
mod store;
mod stored_graph;
mod stored_objects;
mod walks;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use layout::END_ROWS;
pub use store::IndexStore;
pub use stored_graph::StoredGraph;
