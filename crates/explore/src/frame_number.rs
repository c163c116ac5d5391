//! Frames by number.

/// Number of a distinct frame (module and symbol), the same for all queries on one explorer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameNumber(pub u32);
