//! Compares what a process held with what was recorded, so that readers of totals learn what these
//! leave out.
//!
//! ```text
//! look      mappings with their pages, sorted by kind   (from outside, seldom)
//! account   recorded blocks, overhead of their allocators, owners of other mappings
//! holders   name of the rest, and the tool that would show it
//! ```

mod account;
mod holders;
mod notes;
mod now;

pub(crate) use notes::mebibytes;
pub use now::{OwnPart, own_memory_of};
