//! Compares what a process held with what was recorded, so that readers of totals learn what these
//! leave out.
//!
//! ```text
//! resident  an owner for each mapping                   (from outside, seldom)
//! account   recorded blocks, overhead of their allocators, and who mapped the rest
//! holders   likely owner of mappings that were not seen, and the tool that would show them
//! ```

mod account;
mod holders;
mod notes;
mod now;

pub(crate) use notes::mebibytes;
pub use now::{BlocksThere, OwnPart, own_memory_of};
