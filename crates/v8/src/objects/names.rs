//! Names of edges.

use std::borrow::Cow;

/// Name of an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdgeName<'a> {
    /// Number of an element or hidden field.
    Index(u32),
    /// Name of any other edge.
    Name(Cow<'a, str>),
}
