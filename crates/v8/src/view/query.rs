//! Query for a list of objects.

use crate::node_set::NodeSet;

/// Test of a text, WTF-8.
pub type TextTest<'a> = &'a (dyn Fn(&[u8]) -> bool + Sync);

/// Conditions that an object must meet, all of them.
#[derive(Clone, Copy, Default)]
pub struct ObjectQuery<'a> {
    /// Classes, sorted.
    pub classes: Option<&'a [u32]>,
    /// Test of the name that lists show.
    pub name: Option<TextTest<'a>>,
    /// Test of the names of its fields, one of which must pass.
    pub field: Option<TextTest<'a>>,
    /// Test of the text of a string or symbol.
    pub text: Option<TextTest<'a>>,
    /// V8's name of the node type.
    pub kind: Option<&'a str>,
    /// Least and largest self size, in bytes.
    pub self_bytes: Option<(u64, u64)>,
    /// Least and largest retained size, in bytes.
    pub retained_bytes: Option<(u64, u64)>,
    /// Whether only detached DOM nodes match.
    pub is_detached: bool,
    /// Nodes that can match.
    pub only: Option<&'a NodeSet>,
}

impl std::fmt::Debug for ObjectQuery<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectQuery")
            .field("classes", &self.classes)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
