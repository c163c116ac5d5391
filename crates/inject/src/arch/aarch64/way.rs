//! Paths of a function's calls to the agent.

use super::countdown::{AllRegistersCountdown, Countdown, Counted};

/// Size in bytes of the data before counting code: its first bytes, and those of the jump that
/// replaces them.
pub(crate) const COUNTING_BYTES: usize = 16;

/// Path of a function's calls to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// Path by the calling convention, to a trampoline. Calls from `ranges` (start and size in
    /// bytes; at most two) continue in the function itself.
    Convention {
        trampoline_avma: u64,
        ranges: Vec<(u64, u64)>,
        /// Whether calls from `ranges` may have values in any register.
        keeps_inner: bool,
        /// Quantity that is counted first, if calls are sampled.
        counted: Option<(Counted, Countdown)>,
    },
    /// Path that preserves all registers and flags, and passes the address of the agent's handle of
    /// the function.
    Kept {
        entry_avma: u64,
        function_avma: u64,
        /// Plan for counting first, if calls are sampled.
        counted: Option<AllRegistersCountdown>,
    },
}
