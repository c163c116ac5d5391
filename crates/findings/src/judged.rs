//! What is known of a recording before it is looked at.

use heapr_query::{OwnCode, Suppressions};

/// How a recording is judged, and what it is called.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// Which code is the program's own.
    pub own: &'a OwnCode,
    /// What nothing is said of.
    pub left_out: &'a Suppressions,
    /// The file, as commands name it.
    pub file: &'a str,
}
