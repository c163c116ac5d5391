//! Go's own heap, as its runtime has sampled it: read from outside, whether the program has an
//! agent or nothing can be loaded into it.
//!
//! ```text
//! target    which modules are Go's, where their runtime keeps its account    (from the file)
//! buckets   what stands there: a stack, how often it has allocated and freed (from the process)
//! heap      what is new of it since the last look
//! ```

mod buckets;
mod heap;
mod target;

pub(crate) use heap::{Change, GoHeap};
pub use target::GoSeen;
pub(crate) use target::GoTarget;
