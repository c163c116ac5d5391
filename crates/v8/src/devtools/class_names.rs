//! Names of nodes' classes: the constructor, or the kind of node.

use std::borrow::Cow;

use crate::{NodeKind, Snapshot};

/// Rule for the class name of a kind of nodes.
pub(crate) enum ClassName<'a> {
    /// One name for all nodes of the kind.
    Fixed(Cow<'a, [u8]>),
    /// Name derived from the node's name.
    OfName,
}

pub(crate) fn class_name_rule(snapshot: &Snapshot, kind: NodeKind) -> ClassName<'_> {
    if snapshot.meta.dialect.is_some() && kind <= NodeKind::WASM_OBJECT {
        return match snapshot.meta.language().class_of_kind(kind) {
            Some(class) => ClassName::Fixed(Cow::Borrowed(class.as_bytes())),
            None => ClassName::OfName,
        };
    }
    match kind {
        NodeKind::HIDDEN => ClassName::Fixed(Cow::Borrowed(b"(system)")),
        NodeKind::CODE => ClassName::Fixed(Cow::Borrowed(b"(compiled code)")),
        NodeKind::CLOSURE => ClassName::Fixed(Cow::Borrowed(b"Function")),
        NodeKind::REGEXP => ClassName::Fixed(Cow::Borrowed(b"RegExp")),
        NodeKind::OBJECT | NodeKind::NATIVE => ClassName::OfName,
        _ => ClassName::Fixed(Cow::Owned(format!("({})", snapshot.meta.node_kind_name(kind)).into_bytes())),
    }
}

/// Returns the class for a node's name: `<div id="a">` becomes `<div>`, detached nodes included.
pub(crate) fn class_name_of_name(name: &[u8]) -> Cow<'_, [u8]> {
    const DETACHED: &[u8] = b"Detached <";
    let from = match name {
        [b'<', ..] => 0,
        _ if name.starts_with(DETACHED) => DETACHED.len(),
        _ => return Cow::Borrowed(name),
    };
    match memchr::memchr(b' ', &name[from..]) {
        Some(at) => Cow::Owned([&name[..from + at], b">"].concat()),
        None => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_elements_are_no_part_of_the_class() {
        for (name, class) in [
            ("<div id=\"a\">", "<div>"),
            ("<div>", "<div>"),
            ("Detached <p class=x>", "Detached <p>"),
            ("Detached Window", "Detached Window"),
            ("Object", "Object"),
        ] {
            assert_eq!(&*class_name_of_name(name.as_bytes()), class.as_bytes());
        }
    }
}
