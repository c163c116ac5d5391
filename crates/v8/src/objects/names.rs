//! What edges and classes are called.

use std::borrow::Cow;

use crate::NodeKind;

/// What an edge is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdgeName<'a> {
    /// Elements and hidden fields have a number.
    Index(u32),
    /// All others have a name.
    Name(Cow<'a, str>),
}

/// What a class name is made of when nodes of a kind have no names of their own.
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
