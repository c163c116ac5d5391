//! What can go wrong in a query.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] heapr_trace::Error),
    /// A frame pattern says nothing.
    #[error("frame pattern {pattern:?} names neither a module nor a symbol")]
    EmptyPattern {
        /// As it was given.
        pattern: String,
    },
    /// A frame pattern holds a character that no name has.
    #[error("frame pattern {pattern:?} has a control character at byte {offset_bytes}")]
    ControlCharacter {
        /// As it was given.
        pattern: String,
        /// Where in it.
        offset_bytes: usize,
    },
    /// A line of a cull list is no frame pattern.
    #[error("{list}, line {line}: {source}")]
    CullList {
        /// Name of the list, as it was given.
        list: String,
        /// Line number, from 1.
        line: usize,
        /// Why.
        source: Box<Error>,
    },
    /// Options that exclude each other.
    #[error("{first} can't be combined with {second}: {reason}")]
    Contradiction {
        /// One of them.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A filter of events put to a snapshot.
    #[error(
        "--range, --temporary, --type and --at choose events, and a snapshot has none: --age chooses by age"
    )]
    NoEventsInSnapshot,
    /// A replay of events is asked for, and the trace has none.
    #[error(
        "the trace has no events (neither --mode snapshot nor most other tools record any): it has totals (`--totals`, `--stacks`, `--frames`, \
         `--images`, without filters) and snapshots (`--snapshot N`)"
    )]
    NoEvents,
    /// A trace without events whose summary cannot be read either.
    #[error(
        "the trace has no events (neither --mode snapshot nor most other tools record any) and no totals that can be read: only `--snapshot N`"
    )]
    NoEventsNoSummary,
    /// A range whose end does not lie after its start.
    #[error("the {what} {from}..{to} is empty: its end must be greater than its start")]
    EmptyRange {
        /// Which range.
        what: &'static str,
        /// Start, in the range's unit.
        from: u64,
        /// End, in the range's unit.
        to: u64,
    },
    /// No process of the trace has this id.
    #[error("no process {pid} in this trace; it has {present}")]
    NoSuchProcess {
        /// As asked.
        pid: u32,
        /// Those that there are.
        present: String,
    },
    /// The trace has no such snapshot.
    #[error("no snapshot {number} in this trace; it has {present}")]
    NoSuchSnapshot {
        /// As asked.
        number: u32,
        /// How many there are.
        present: usize,
    },
    /// No thread of the trace matches.
    #[error("no thread {thread:?} in this trace")]
    NoSuchThread {
        /// As asked.
        thread: String,
    },
    /// Who asked does not want the answer any more.
    #[error("the query was given up")]
    GivenUp,
    /// No frame of the trace matches a pattern that `--callers` needs.
    #[error("no frame of the selected stacks matches {pattern:?}")]
    NoSuchFrame {
        /// As asked.
        pattern: String,
    },
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
