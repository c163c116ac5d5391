//! What depends on the processor: unwinding, trampolines, the thread pointer.

mod stub;
pub(crate) mod thread_pointer;
pub(crate) mod trampolines;

pub use stub::*;
