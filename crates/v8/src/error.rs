//! What can go wrong with a snapshot.

/// The result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a snapshot could not be read or asked. Offsets count bytes of the uncompressed text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read.
    #[error("reading failed at offset {offset}")]
    Io {
        /// How far reading had come.
        offset: u64,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The text is not the JSON that stands here in a snapshot.
    #[error("expected {expected} at offset {offset}, found {}", shown(*.found))]
    Unexpected {
        /// Where.
        offset: u64,
        /// What should stand there.
        expected: &'static str,
        /// The byte there; nothing at the end of the text.
        found: Option<u8>,
    },
    /// The text ends too early to make anything of it.
    #[error("the file ends at offset {offset} inside {inside}")]
    Truncated {
        /// The length of the text.
        offset: u64,
        /// What ends there.
        inside: &'static str,
    },
    /// The file holds nothing: V8 creates it first and fills it at the end.
    #[error(
        "the file is empty: the process ended before V8 had written the snapshot, or it is still at work"
    )]
    Empty,
    /// The object has no such member.
    #[error("no member \"{name}\": this is not a heap snapshot")]
    NoMember {
        /// Its name.
        name: &'static str,
    },
    /// The description of the snapshot is larger than any real one.
    #[error("the member \"snapshot\" at offset {offset} is longer than {limit_bytes} bytes")]
    HeaderTooLong {
        /// Where it begins.
        offset: u64,
        /// The limit.
        limit_bytes: usize,
    },
    /// The description of the snapshot is not JSON.
    #[error("the member \"snapshot\" at offset {offset} is not valid JSON")]
    Header {
        /// Where it begins.
        offset: u64,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// The description lacks a field or has a strange one.
    #[error("the snapshot's meta data: {what} {name:?}")]
    Meta {
        /// What is wrong with it.
        what: &'static str,
        /// The field.
        name: &'static str,
    },
    /// A byte that is no part of a list of numbers.
    #[error("byte {} at offset {offset} has no place in a list of numbers", shown(Some(*.byte)))]
    BadByte {
        /// Where.
        offset: u64,
        /// The byte.
        byte: u8,
    },
    /// A number of more than 16 digits.
    #[error("the number that ends at offset {offset} has more than 16 digits")]
    NumberTooLong {
        /// Where it ends.
        offset: u64,
    },
    /// Numbers and commas do not alternate.
    #[error("{found} numbers where {expected} should stand, between offsets {begin} and {end}")]
    NumbersMissing {
        /// Where the checked part begins.
        begin: u64,
        /// Where it ends.
        end: u64,
        /// How many the commas promise.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A list of numbers ends inside a row.
    #[error("\"{section}\" has {number_count} numbers, no multiple of {stride}")]
    RaggedRows {
        /// Which list.
        section: &'static str,
        /// Its length.
        number_count: u64,
        /// The numbers of a row.
        stride: usize,
    },
    /// The header counts less than there is, and the text that was read is gone.
    #[error(
        "the header promises {promised} {section}, the list has {found}: such a file cannot be read from a pipe; give its name"
    )]
    MoreThanPromised {
        /// Which list.
        section: &'static str,
        /// What the header says.
        promised: u64,
        /// What there is.
        found: u64,
    },
    /// An edge goes to something that is no node.
    #[error("edge {edge} goes to {to_node}, where no node begins")]
    BadTarget {
        /// The edge's number.
        edge: u64,
        /// Its `to_node`.
        to_node: u64,
    },
    /// The edge counts of the nodes and the edges disagree.
    #[error("the nodes count {counted} edges, the file has {found}")]
    EdgeCounts {
        /// Sum over the nodes.
        counted: u64,
        /// The edges.
        found: u64,
    },
    /// The root is not where a root may be.
    #[error("root_index {root_index} is no node")]
    BadRoot {
        /// The header's `root_index`.
        root_index: u64,
    },
    /// There are more nodes, edges or strings than 32 bits count.
    #[error("{what}: {count} are more than this program can number")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: u64,
    },
    /// There is not enough memory for the file's tables.
    #[error("no memory for {count} {what}")]
    NoMemory {
        /// Of what.
        what: &'static str,
        /// How many.
        count: u64,
    },
    /// An index file that turned out not to be what was written.
    #[error("the index of the snapshot is damaged ({what}); the snapshot itself has to be read again")]
    DamagedIndex {
        /// What is wrong with it.
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
