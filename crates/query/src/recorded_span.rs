//! The part of its time of which a recording has all events, in words for the command line and the
//! page.

use heapr_trace::Trace;

/// Limits of a recording, as the recorder noted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedSpan {
    /// Start of the complete part in nanoseconds since the recording's start. Set for a circular
    /// trace that has discarded events, and for a later file of a session.
    pub since_ns: Option<u64>,
    /// True for a later file of a session that uses several files in turn.
    pub is_next_file: bool,
    /// True if the session continues in another file.
    pub has_next_file: bool,
    /// End of the complete part, for a file that reached its largest size (`--max-file`).
    pub until_ns: Option<u64>,
}

impl RecordedSpan {
    /// The limits of a trace.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let statistic = |name: &str| {
            trace
                .statistics()
                .iter()
                .find(|statistic| statistic.name == name)
                .map(|statistic| statistic.value)
        };
        Self {
            since_ns: statistic("window_start_ns"),
            is_next_file: statistic("files_before").is_some(),
            has_next_file: statistic("files_after").is_some(),
            until_ns: statistic("full_at_ns"),
        }
    }

    /// Time at which a later file of a session continues the previous one; `None` for other files.
    #[must_use]
    pub fn goes_on_at_ns(&self) -> Option<u64> {
        self.since_ns.filter(|_| self.is_next_file)
    }

    /// One line for each limit. `duration` formats nanoseconds.
    #[must_use]
    pub fn warnings(&self, duration: impl Fn(u64) -> String) -> Vec<String> {
        let what = if self.is_next_file { "a later file of its session" } else { "a circular trace" };
        let since = self.since_ns.map(|since_ns| {
            format!(
                "{what}: all events from {} on; before, only the allocations of what was still live then",
                duration(since_ns)
            )
        });
        let until = self.until_ns.map(|until_ns| {
            format!(
                "a file of limited size: it was full at {}, and nothing later is in it",
                duration(until_ns)
            )
        });
        since.into_iter().chain(until).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_that_is_not_the_recordings_own_is_said() {
        let warnings = |span: RecordedSpan| span.warnings(|ns| format!("{ns} ns"));
        assert!(warnings(RecordedSpan::default()).is_empty());
        let both = warnings(RecordedSpan { since_ns: Some(5), until_ns: Some(7), ..RecordedSpan::default() });
        assert!(both[0].contains("all events from 5 ns on") && both[1].contains("full at 7 ns"), "{both:?}");
        assert_eq!(both.len(), 2);
    }
}
