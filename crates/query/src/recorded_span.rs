//! Of which part of its time a recording has all events, in words: the same on the command line and
//! on the page.

use heapr_trace::Trace;

/// What the recorder noted of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedSpan {
    /// A circular trace that has thrown events away: since when it has all of them, in nanoseconds
    /// since its start.
    pub since_ns: Option<u64>,
    /// It is a later file of a session that went on from one to the next.
    pub is_next_file: bool,
    /// Another file of its session goes on from its end.
    pub has_next_file: bool,
    /// A file that reached its largest size (`--max-file`): until when it has all of them.
    pub until_ns: Option<u64>,
}

impl RecordedSpan {
    /// Of a trace.
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

    /// Of a later file of a session: where it goes on from the one before.
    #[must_use]
    pub fn goes_on_at_ns(&self) -> Option<u64> {
        self.since_ns.filter(|_| self.is_next_file)
    }

    /// One line for each end that is not the recording's own. `duration` writes nanoseconds.
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
