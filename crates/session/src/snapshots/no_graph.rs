//! Reasons for which a process has no graph, in words.

use std::time::Duration;

/// Reason for which there is no graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoGraph {
    /// Capture would take longer than the process may stand still.
    TooLong,
    /// Process has ended.
    Gone,
    /// Copy had to be ended.
    Cut,
    /// More references than can be numbered.
    TooLarge,
}

impl NoGraph {
    /// Returns the reason as a part of a sentence. `too_long`: the words for [`NoGraph::TooLong`].
    pub(crate) fn reason(&self, too_long: impl FnOnce() -> String) -> String {
        let words = match self {
            Self::TooLong => return too_long(),
            Self::Gone => "it has ended meanwhile",
            Self::Cut => {
                "its group came near its limit of memory, or somebody ended its copy, while that was read"
            }
            Self::TooLarge => "it has more than 4 billion references",
        };
        words.to_owned()
    }
}

/// Returns in words why a process was resumed before it was read. `max_pause`: the time that was
/// allowed.
pub(crate) fn reason_for_letting_go(is_overdue: bool, max_pause: Duration) -> String {
    if is_overdue {
        let limit = max_pause.as_millis();
        format!("it would have stood still for longer than {limit} ms: --max-pause allows more")
    } else {
        "a part of its memory did not come (from a disk, a file server, or the program itself), and it was not \
         kept waiting for that"
            .to_owned()
    }
}
