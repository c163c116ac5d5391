//! Ruby, as a dump of `ObjectSpace` shows it.
//!
//! ```text
//! class Event: (Hash)      class Event: @@seen (Hash)      $sessions (Hash)
//! ```
//! A dump has no names of constants, variables and instance variables: a reference is named by the
//! class that it leads to. A heap that was read from memory has them.

use super::{Language, Step};
use crate::{EdgeKind, NodeKind};

/// Row of Ruby.
#[derive(Debug)]
pub(crate) struct Ruby;

/// Row of Ruby.
pub(crate) static RUBY: Ruby = Ruby;

/// Beginnings of the names of nodes by which objects are named.
const NAMED: [&str; 5] = ["class ", "module ", "thread ", "frame ", "("];

impl Language for Ruby {
    fn name(&self) -> &'static str {
        "ruby"
    }

    fn is_passing(&self, root: &str) -> bool {
        root == "(stack)" || ["thread ", "frame "].iter().any(|start| root.starts_with(start))
    }

    fn begins_names(&self, node: &str) -> bool {
        node.is_empty() || NAMED.iter().any(|start| node.starts_with(start))
    }

    fn reference_begins_names(&self, reference: &str) -> bool {
        reference.starts_with('$')
    }

    fn begins_at_program_objects(&self) -> bool {
        true
    }

    fn field(&self, step: Step<'_>) -> Option<String> {
        match (step.kind, step.name) {
            (EdgeKind::ELEMENT, _) => Some("[…]".to_owned()),
            (EdgeKind::INTERNAL, _) => None,
            (_, name) => name.map(ToOwned::to_owned),
        }
    }

    fn class_of_kind(&self, kind: NodeKind) -> Option<&'static str> {
        match kind {
            NodeKind::STRING => Some("String"),
            NodeKind::SYNTHETIC => Some("(synthetic)"),
            _ => None,
        }
    }

    fn class_of_base<'b>(&self, base: &'b str) -> &'b str {
        ["class ", "module "].iter().find_map(|start| base.strip_prefix(start)).unwrap_or(base)
    }

    fn holds_items_itself(&self) -> bool {
        true
    }
}
