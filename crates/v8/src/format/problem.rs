//! What is wrong with a file that can be read all the same.

use std::fmt;

/// A defect of a snapshot, with the offset in its uncompressed text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The text ends inside a member.
    Truncated {
        /// The member.
        section: &'static str,
        /// The length of the text.
        offset: u64,
        /// Rows or strings that were read of it.
        read_count: u64,
    },
    /// The text ends before a member that every snapshot has.
    Missing {
        /// The member.
        section: &'static str,
    },
    /// The header counts otherwise than the lists do.
    CountDiffers {
        /// The member.
        section: &'static str,
        /// What the header says.
        promised: u64,
        /// What there is.
        found: u64,
    },
    /// A member stands there twice; the first counts.
    Repeated {
        /// Its name.
        name: String,
        /// Where the second begins.
        offset: u64,
    },
    /// Text follows the end of the object.
    TrailingText {
        /// Where it begins.
        offset: u64,
    },
    /// Nodes whose kind has no name in the file.
    UnknownKind {
        /// How many.
        count: u64,
        /// The first of them.
        first_node: u32,
    },
    /// Edges whose kind has no name in the file.
    UnknownEdgeKind {
        /// How many.
        count: u64,
        /// The first of them.
        first_edge: u32,
    },
    /// Names that are no strings of the table.
    NameOutside {
        /// `node` or `edge`.
        what: &'static str,
        /// How many.
        count: u64,
        /// The first of them.
        first: u32,
        /// Its name's number.
        name: u32,
    },
    /// Strings that are no UTF-8, as JSON has to be; they are shown with U+FFFD.
    NoUnicode {
        /// How many.
        count: u64,
        /// The number of the first of them.
        first: u32,
    },
    /// Ids that several nodes have.
    RepeatedId {
        /// How many nodes share an id with one before.
        count: u64,
        /// The smallest such id.
        id: u64,
    },
    /// Locations of nodes that do not exist.
    LocationOutside {
        /// How many.
        count: u64,
        /// The first `object_index`.
        object_index: u64,
    },
    /// Part of the allocation trace does not make sense.
    BadTrace {
        /// What.
        what: &'static str,
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
        }
    }
}
