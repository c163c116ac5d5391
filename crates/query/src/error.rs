//! Errors of queries.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] heapr_trace::Error),
    /// A frame pattern has neither a module nor a symbol.
    #[error("frame pattern {pattern:?} names neither a module nor a symbol")]
    EmptyPattern {
        /// The pattern as given.
        pattern: String,
    },
    /// A frame pattern holds a character that no name has.
    #[error("frame pattern {pattern:?} has a control character at byte {offset_bytes}")]
    ControlCharacter {
        /// The pattern as given.
        pattern: String,
        /// Offset of the character.
        offset_bytes: usize,
    },
    /// A line of a cull list is no frame pattern.
    #[error("{list}, line {line}: {source}")]
    CullList {
        /// Name of the list as given.
        list: String,
        /// Line number, from 1.
        line: usize,
        /// Reason why the line is no pattern.
        source: Box<Error>,
    },
    /// Options that exclude each other.
    #[error("{first} can't be combined with {second}: {reason}")]
    Contradiction {
        /// The first option.
        first: &'static str,
        /// The second option.
        second: &'static str,
        /// Reason for the contradiction.
        reason: &'static str,
    },
    /// A filter on events was applied to a snapshot.
    #[error(
        "--range, --temporary, --type and --at choose events, and a snapshot has none: --age chooses by age"
    )]
    NoEventsInSnapshot,
    /// A replay of events is needed, and the trace has no events.
    #[error(
        "the trace has no events (neither --mode snapshot nor most other tools record any): it has totals (`--totals`, `--stacks`, `--frames`, \
         `--images`, without filters) and snapshots (`--snapshot N`)"
    )]
    NoEvents,
    /// A trace has no events, and its summary cannot be read.
    #[error(
        "the trace has no events (neither --mode snapshot nor most other tools record any) and no totals that can be read: only `--snapshot N`"
    )]
    NoEventsNoSummary,
    /// A range whose end does not lie after its start.
    #[error("the {what} {from}..{to} is empty: its end must be greater than its start")]
    EmptyRange {
        /// Kind of the range.
        what: &'static str,
        /// Start, in the range's unit.
        from: u64,
        /// End, in the range's unit.
        to: u64,
    },
    /// No process of the trace has this id.
    #[error("no process {pid} in this trace; it has {present}")]
    NoSuchProcess {
        /// The requested pid.
        pid: u32,
        /// The pids of the trace, as a list.
        present: String,
    },
    /// The trace has no such snapshot.
    #[error("no snapshot {number} in this trace; it has {present}")]
    NoSuchSnapshot {
        /// The requested number.
        number: u32,
        /// The number of snapshots in the trace.
        present: usize,
    },
    /// No thread of the trace matches.
    #[error("no thread {thread:?} in this trace")]
    NoSuchThread {
        /// The requested thread.
        thread: String,
    },
    /// The caller no longer needs the answer.
    #[error("the query was given up")]
    GivenUp,
    /// No frame of the trace matches a pattern that `--callers` needs.
    #[error("no frame of the selected stacks matches {pattern:?}")]
    NoSuchFrame {
        /// The pattern as given.
        pattern: String,
    },
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
