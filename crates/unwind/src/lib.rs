//! Callers of stopped functions, by the unwind tables that compilers write (`.eh_frame`).
//!
//! ```text
//! index (.eh_frame_hdr) --+
//! address of code --------+--> entry (FDE) and its common entry (CIE) --> rule
//! rule + registers of a frame + words of its stack ---------------------> registers of the caller
//! ```
//! The crate opens no file and reads no process: its callers hand it the bytes, which are
//! untrusted. All lengths are bounded, and a table that cannot be read gives no rule.
//!
//! The agent has an unwinder of its own, because it runs inside of the target, without a heap.
#![forbid(unsafe_code)]

mod index;
mod rule;
mod stopped_frame;
#[cfg(test)]
mod tests;

pub use index::{UnwindIndex, covered_ranges};
pub use rule::{FrameRegisters, UnwindRule};
pub use stopped_frame::StoppedFrame;
