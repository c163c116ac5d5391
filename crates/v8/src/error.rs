//! Errors of reading and querying snapshots.

/// Result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Error of reading or querying a snapshot. Offsets count bytes of the uncompressed text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read.
    #[error("reading failed at offset {offset}")]
    Io {
        /// Offset that reading had reached.
        offset: u64,
        /// Cause of the error.
        #[source]
        source: std::io::Error,
    },
    /// The text is not the JSON that a snapshot has at this position.
    #[error("expected {expected} at offset {offset}, found {}", shown(*.found))]
    Unexpected {
        /// Offset of the unexpected text.
        offset: u64,
        /// Expected element.
        expected: &'static str,
        /// Byte at the offset; `None` at the end of the text.
        found: Option<u8>,
    },
    /// The text ends too early to be of any use.
    #[error("the file ends at offset {offset} inside {inside}")]
    Truncated {
        /// Length of the text.
        offset: u64,
        /// Element that the text ends in.
        inside: &'static str,
    },
    /// The file is empty: V8 creates it first and fills it at the end.
    #[error(
        "the file is empty: the process ended before V8 had written the snapshot, or it is still at work"
    )]
    Empty,
    /// The object lacks a required member.
    #[error("no member \"{name}\": this is not a heap snapshot")]
    NoMember {
        /// Name of the member.
        name: &'static str,
    },
    /// The description of the snapshot is larger than any real one.
    #[error("the member \"snapshot\" at offset {offset} is longer than {limit_bytes} bytes")]
    HeaderTooLong {
        /// Offset of the member.
        offset: u64,
        /// Largest length that is accepted.
        limit_bytes: usize,
    },
    /// A count in the member "snapshot" is no whole number.
    #[error(
        "the member \"snapshot\" at offset {offset} has {name} {found}, which is no whole number from 0 on"
    )]
    Count {
        /// Offset of the member.
        offset: u64,
        /// Name of the count.
        name: &'static str,
        /// Value in the file.
        found: String,
    },
    /// The description of the snapshot is not JSON.
    #[error("the member \"snapshot\" at offset {offset} is not valid JSON")]
    Header {
        /// Offset of the member.
        offset: u64,
        /// Cause of the error.
        #[source]
        source: serde_json::Error,
    },
    /// The description lacks a field or has an unusual one.
    #[error("the snapshot's meta data: {what} {name:?}")]
    Meta {
        /// Description of the defect.
        what: &'static str,
        /// Name of the field.
        name: &'static str,
    },
    /// A list of numbers contains a byte that cannot be part of one.
    #[error("byte {} at offset {offset} has no place in a list of numbers", shown(Some(*.byte)))]
    BadByte {
        /// Offset of the byte.
        offset: u64,
        /// Value of the byte.
        byte: u8,
    },
    /// A number of more than 16 digits.
    #[error("the number that ends at offset {offset} has more than 16 digits")]
    NumberTooLong {
        /// Offset of the number's end.
        offset: u64,
    },
    /// Numbers and commas do not alternate.
    #[error("{found} numbers where {expected} should stand, between offsets {begin} and {end}")]
    NumbersMissing {
        /// Offset of the checked part's start.
        begin: u64,
        /// Offset of the checked part's end.
        end: u64,
        /// Number of numbers that the commas imply.
        expected: usize,
        /// Number of numbers found.
        found: usize,
    },
    /// A list of numbers ends inside a row.
    #[error("\"{section}\" has {number_count} numbers, no multiple of {stride}")]
    RaggedRows {
        /// Name of the list.
        section: &'static str,
        /// Number of numbers in the list.
        number_count: u64,
        /// Number of numbers in a row.
        stride: usize,
    },
    /// The header counts fewer rows than the list has, and the text cannot be read again.
    #[error(
        "the header promises {promised} {section}, the list has {found}: such a file cannot be read from a pipe; give its name"
    )]
    MoreThanPromised {
        /// Name of the list.
        section: &'static str,
        /// Number of rows in the header.
        promised: u64,
        /// Number of rows in the list.
        found: u64,
    },
    /// An edge's target is not the start of a node.
    #[error("edge {edge} goes to {to_node}, where no node begins")]
    BadTarget {
        /// Number of the edge.
        edge: u64,
        /// Value of the edge's `to_node`.
        to_node: u64,
    },
    /// The edge counts of the nodes differ from the number of edges.
    #[error("the nodes count {counted} edges, the file has {found}")]
    EdgeCounts {
        /// Sum of the nodes' edge counts.
        counted: u64,
        /// Number of edges.
        found: u64,
    },
    /// The root is not a node.
    #[error("root_index {root_index} is no node")]
    BadRoot {
        /// Value of `root_index` in the header.
        root_index: u64,
    },
    /// The snapshot has more nodes, edges or strings than the words of this program can number.
    #[error("{what}: {count} are more than this program can number")]
    TooMany {
        /// Kind of the items.
        what: &'static str,
        /// Number of the items.
        count: u64,
    },
    /// Memory is too small for the file's tables.
    #[error("no memory for {count} {what}")]
    NoMemory {
        /// Kind of the items.
        what: &'static str,
        /// Number of the items.
        count: u64,
    },
    /// The contents of an index file differ from what was written.
    #[error("the index of the snapshot is damaged ({what}); the snapshot itself has to be read again")]
    DamagedIndex {
        /// Description of the damage.
        what: String,
    },
    /// The graph refused the edges.
    #[error(transparent)]
    Graph(#[from] heapr_graph::GraphError),
}

fn shown(byte: Option<u8>) -> String {
    match byte {
        None => "the end of the file".to_owned(),
        Some(byte) if byte.is_ascii_graphic() => format!("'{}'", char::from(byte)),
        Some(byte) => format!("{byte:#04x}"),
    }
}
