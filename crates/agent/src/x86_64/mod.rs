//! What depends on the processor: unwinding, trampolines, the thread pointer.

mod stub;
pub(crate) mod thread_pointer;
#[cfg(all(feature = "cdylib", not(test)))]
mod trampolines;

pub use stub::*;
