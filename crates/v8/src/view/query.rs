//! What is asked of a list of objects.

use crate::node_set::NodeSet;

/// A test of a text, WTF-8.
pub type TextTest<'a> = &'a (dyn Fn(&[u8]) -> bool + Sync);

/// What an object must be; all of it.
#[derive(Clone, Copy, Default)]
pub struct ObjectQuery<'a> {
    /// Of one of these classes; sorted.
    pub classes: Option<&'a [u32]>,
    /// With that name, as lists show it.
    pub name: Option<TextTest<'a>>,
    /// With a field of that name.
    pub field: Option<TextTest<'a>>,
    /// A string (or a symbol) of that text.
    pub text: Option<TextTest<'a>>,
    /// Of V8's type of that name.
    pub kind: Option<&'a str>,
    /// With so many bytes of its own, from and up to.
    pub self_bytes: Option<(u64, u64)>,
    /// With so many bytes that would be freed with it.
    pub retained_bytes: Option<(u64, u64)>,
    /// A DOM node that no longer hangs in its document.
    pub is_detached: bool,
    /// One of these nodes.
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
