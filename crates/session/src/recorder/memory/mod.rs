//! What a process held against what was seen of it: whoever reads totals is told what they leave
//! out.
//!
//! ```text
//! look      its mappings with their pages, sorted by what they are   (from outside, seldom)
//! account   recorded blocks, what their allocators keep, who mapped the rest
//! holders   the rest's name, and what would show it
//! ```

mod account;
mod holders;
mod notes;
mod now;

pub(crate) use notes::mebibytes;
pub use now::{OwnPart, own_memory_of};
