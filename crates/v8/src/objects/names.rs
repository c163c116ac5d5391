//! Names of edges and groups of nodes.

use std::borrow::Cow;

use crate::NodeKind;

/// Name of an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdgeName<'a> {
    /// Number of an element or hidden field.
    Index(u32),
    /// Name of any other edge.
    Name(Cow<'a, str>),
}

/// Class name for a kind of nodes without names of their own.
pub(crate) fn group_name(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::HIDDEN => "(system)",
        NodeKind::ARRAY => "(array)",
        NodeKind::STRING => "(string)",
        NodeKind::CODE => "(compiled code)",
        NodeKind::CLOSURE => "Function",
        NodeKind::REGEXP => "RegExp",
        NodeKind::NUMBER => "(number)",
        NodeKind::SYNTHETIC => "(synthetic)",
        NodeKind::CONS_STRING => "(concatenated string)",
        NodeKind::SLICED_STRING => "(sliced string)",
        NodeKind::SYMBOL => "(symbol)",
        NodeKind::BIGINT => "(bigint)",
        NodeKind::OBJECT_SHAPE => "(object shape)",
        _ => "(other)",
    }
}
