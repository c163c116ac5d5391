//! Common parts of the readers of dumps that tell objects with their references.

pub(crate) mod edges;
pub(crate) mod rows;
pub(crate) mod texts;
