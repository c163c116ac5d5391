//! An open snapshot to look around in: lists by the page, objects with all that is known of them,
//! search.
//!
//! [`SnapshotView`] answers from memory or from an index file. [`Objects`] is what both have in
//! common, one fact at a time.

mod class_list;
mod listed_ids;
mod name_order;
mod objects;
mod rows;
mod search;
mod snapshot_view;

pub use objects::{EdgeName, NodeFacts, NodeNumber, Objects};
pub use rows::{FieldRow, Listed, ObjectRow, Page};
pub use search::{ObjectOrder, ObjectQuery, TextTest};
pub use snapshot_view::{FieldOrder, ObjectDetails, SnapshotView};

#[cfg(test)]
pub(crate) use name_order::by_name;
pub(crate) use objects::group_name;
