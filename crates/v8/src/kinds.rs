//! Kinds of nodes and edges, and states of DOM nodes.

/// Kind of a node. The numbers are heapr's own; each file numbers its types differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeKind(pub(crate) u8);

/// V8's names of the kinds, indexed by kind.
pub const NODE_KINDS: [&str; 16] = [
    "hidden",
    "array",
    "string",
    "object",
    "code",
    "closure",
    "regexp",
    "number",
    "native",
    "synthetic",
    "concatenated string",
    "sliced string",
    "symbol",
    "bigint",
    "object shape",
    "wasm object",
];

#[expect(missing_docs, reason = "the names say it")]
impl NodeKind {
    pub const HIDDEN: Self = Self(0);
    pub const ARRAY: Self = Self(1);
    pub const STRING: Self = Self(2);
    pub const OBJECT: Self = Self(3);
    pub const CODE: Self = Self(4);
    pub const CLOSURE: Self = Self(5);
    pub const REGEXP: Self = Self(6);
    pub const NUMBER: Self = Self(7);
    pub const NATIVE: Self = Self(8);
    pub const SYNTHETIC: Self = Self(9);
    pub const CONS_STRING: Self = Self(10);
    pub const SLICED_STRING: Self = Self(11);
    pub const SYMBOL: Self = Self(12);
    pub const BIGINT: Self = Self(13);
    pub const OBJECT_SHAPE: Self = Self(14);
    pub const WASM_OBJECT: Self = Self(15);
    /// Kind without a name in the file. Two bits of the stored byte belong to [`DomState`].
    pub(crate) const UNKNOWN: Self = Self(63);

    /// Whether the node is a plain, concatenated or sliced string.
    pub fn is_string(self) -> bool {
        matches!(self, Self::STRING | Self::CONS_STRING | Self::SLICED_STRING)
    }

    pub(crate) const fn number(self) -> u8 {
        self.0
    }
}

/// Kind of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeKind(pub(crate) u8);

/// V8's names of the kinds, indexed by kind; the last one is DevTools' own.
pub const EDGE_KINDS: [&str; 8] =
    ["context", "element", "property", "internal", "hidden", "shortcut", "weak", "invisible"];

#[expect(missing_docs, reason = "the names say it")]
impl EdgeKind {
    pub const CONTEXT: Self = Self(0);
    pub const ELEMENT: Self = Self(1);
    pub const PROPERTY: Self = Self(2);
    pub const INTERNAL: Self = Self(3);
    pub const HIDDEN: Self = Self(4);
    pub const SHORTCUT: Self = Self(5);
    pub const WEAK: Self = Self(6);
    pub const INVISIBLE: Self = Self(7);
    pub(crate) const UNKNOWN: Self = Self(8);

    /// Whether the edge's name is a string, rather than a number.
    pub(crate) fn has_string_name(self) -> bool {
        !matches!(self, Self::ELEMENT | Self::HIDDEN)
    }
}

/// Whether a DOM node is in its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum DomState {
    /// Not a DOM node, or of unknown state.
    #[default]
    Unknown,
    /// In the document.
    Attached,
    /// Removed from the document.
    Detached,
}

impl DomState {
    pub(crate) fn from_number(number: u8) -> Self {
        match number & 3 {
            1 => Self::Attached,
            2 => Self::Detached,
            _ => Self::Unknown,
        }
    }
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
