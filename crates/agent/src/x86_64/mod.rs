//! What depends on the processor: unwinding, trampolines, the thread pointer.

mod byte_reader;
mod call_frame;
mod expression;
pub(crate) mod full;
mod rule;
pub(crate) mod thread_pointer;
pub(crate) mod trampolines;

pub use byte_reader::SEGMENTS_MAX;
pub use call_frame::EhFrameHdr;
pub use rule::{Rule, Step, rule_for};
