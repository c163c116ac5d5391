//! Indexes of snapshots: all that was computed of one, in a file of columns that is read by
//! position.
//!
//! The second time a snapshot is opened nothing is computed and little is read: a question about
//! one object reads a few blocks ([`StoredGraph`]), a list of objects reads the columns that it
//! depends on, and what needs the whole graph loads it without parsing a text.

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
