//! View of an open snapshot: pages of lists, objects with all their facts, and search.
//!
//! [`SnapshotView`] answers from memory or from an index file. [`Objects`] is the common interface
//! of both, one fact at a time.

mod class_list;
mod listed_ids;
mod name_order;
mod query;
mod rows;
mod search;
mod snapshot_view;
mod sorted_rows;
mod stored_view;

pub use query::{ObjectQuery, TextTest};
pub use rows::{FieldRow, Listed, ObjectRow};
pub use snapshot_view::{FieldOrder, ObjectDetails, SnapshotView};

pub use crate::objects::{EdgeName, NodeFacts, NodeNumber, ObjectOrder, Objects, Page};

#[cfg(test)]
pub(crate) use name_order::by_name;
