//! Defects of a file that can be read nevertheless.

use std::fmt;

/// Defect of a snapshot, with the offset in its uncompressed text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The text ends inside a member.
    Truncated {
        /// Name of the member.
        section: &'static str,
        /// Length of the text.
        offset: u64,
        /// Number of rows or strings that were read.
        read_count: u64,
    },
    /// The text ends before a required member.
    Missing {
        /// Name of the member.
        section: &'static str,
    },
    /// The counts in the header differ from the lists.
    CountDiffers {
        /// Name of the member.
        section: &'static str,
        /// Count in the header.
        promised: u64,
        /// Number of entries found.
        found: u64,
    },
    /// A member occurs twice; the first counts.
    Repeated {
        /// Name of the member.
        name: String,
        /// Offset of the second value.
        offset: u64,
    },
    /// Text follows the end of the object.
    TrailingText {
        /// Offset of the text.
        offset: u64,
    },
    /// Nodes have a kind without a name in the file.
    UnknownKind {
        /// Number of such nodes.
        count: u64,
        /// First such node.
        first_node: u32,
    },
    /// Edges have a kind without a name in the file.
    UnknownEdgeKind {
        /// Number of such edges.
        count: u64,
        /// First such edge.
        first_edge: u32,
    },
    /// Names are not in the string table.
    NameOutside {
        /// Kind of the named items: `node` or `edge`.
        what: &'static str,
        /// Number of such items.
        count: u64,
        /// First such item.
        first: u32,
        /// String number of its name.
        name: u32,
    },
    /// Strings are not UTF-8, as JSON requires; they are shown with U+FFFD.
    NoUnicode {
        /// Number of such strings.
        count: u64,
        /// Number of the first such string.
        first: u32,
    },
    /// Several nodes share an id.
    RepeatedId {
        /// Number of nodes whose id an earlier node has.
        count: u64,
        /// Smallest such id.
        id: u64,
    },
    /// Locations belong to nodes that do not exist.
    LocationOutside {
        /// Number of such locations.
        count: u64,
        /// `object_index` of the first one.
        object_index: u64,
    },
    /// Part of the allocation trace is inconsistent.
    BadTrace {
        /// Description of the defect.
        what: &'static str,
    },
    /// Defect of a heap dump in another format, which the snapshot was made from.
    OfDump {
        /// Description of the defect.
        what: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { section, offset, read_count } => {
                write!(
                    f,
                    "the file ends at offset {offset} inside \"{section}\"; {read_count} entries of it were read"
                )
            }
            Self::Missing { section } => write!(f, "the file ends before \"{section}\""),
            Self::CountDiffers { section, promised, found } => {
                write!(f, "the header promises {promised} {section}, the list has {found}")
            }
            Self::Repeated { name, offset } => write!(f, "\"{name}\" stands there again at offset {offset}"),
            Self::TrailingText { offset } => {
                write!(f, "text follows the end of the snapshot at offset {offset}")
            }
            Self::UnknownKind { count, first_node } => {
                write!(
                    f,
                    "{count} nodes have a type that the file does not name, the first is node {first_node}"
                )
            }
            Self::UnknownEdgeKind { count, first_edge } => {
                write!(
                    f,
                    "{count} edges have a type that the file does not name, the first is edge {first_edge}"
                )
            }
            Self::NameOutside { what, count, first, name } => {
                write!(
                    f,
                    "{count} {what}s have a name that is not in the table; {what} {first} has string {name}"
                )
            }
            Self::NoUnicode { count, first } => {
                write!(f, "{count} strings are no valid UTF-8, the first is string {first}")
            }
            Self::RepeatedId { count, id } => {
                write!(f, "{count} nodes have the id of another one, the smallest is @{id}")
            }
            Self::LocationOutside { count, object_index } => {
                write!(f, "{count} locations belong to no node; the first has object_index {object_index}")
            }
            Self::BadTrace { what } => write!(f, "the allocation trace: {what}"),
            Self::OfDump { what } => f.write_str(what),
        }
    }
}
