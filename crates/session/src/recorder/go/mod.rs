//! Go's heap, as sampled by its own runtime. It is read from outside, whether the program has an
//! agent or nothing can be loaded into it.
//!
//! ```text
//! target    modules of Go, addresses of their runtime's account     (from the file)
//! buckets   entries of the account: a stack, its allocations, frees (from the process)
//! heap      changes since the last reading
//! ```

mod buckets;
mod heap;
mod target;

pub(crate) use heap::{Change, GoHeap};
pub use target::GoSeen;
pub(crate) use target::GoTarget;
