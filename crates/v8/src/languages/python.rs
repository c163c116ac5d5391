//! Python as CPython keeps it.
//!
//! ```text
//! module pricing: _quotes (dict)      class __main__.Basket: items (list)
//! ```

use super::{Language, Step, internal};
use crate::{EdgeKind, NodeKind};

/// Row of Python.
#[derive(Debug)]
pub(crate) struct Python;

/// Row of Python.
pub(crate) static PYTHON: Python = Python;

/// Beginnings of the names of nodes by which objects are named: what comes first in a name.
const NAMED: [&str; 5] = ["module ", "class ", "thread ", "frame ", "("];

impl Language for Python {
    fn name(&self) -> &'static str {
        "python"
    }

    fn is_passing(&self, root: &str) -> bool {
        ["thread ", "frame "].iter().any(|start| root.starts_with(start))
    }

    fn begins_names(&self, node: &str) -> bool {
        node.is_empty() || NAMED.iter().any(|start| node.starts_with(start))
    }

    fn field(&self, step: Step<'_>) -> Option<String> {
        match (step.kind, step.name) {
            (EdgeKind::ELEMENT, _) | (EdgeKind::INTERNAL, Some("key")) => Some("[…]".to_owned()),
            (EdgeKind::INTERNAL, Some("__dict__" | "__class__" | "cell_contents")) => None,
            (EdgeKind::INTERNAL, Some(name)) => internal(name),
            (_, name) => name.map(ToOwned::to_owned),
        }
    }

    fn class_of_kind(&self, kind: NodeKind) -> Option<&'static str> {
        match kind {
            NodeKind::CLOSURE => Some("function"),
            NodeKind::STRING => Some("str"),
            NodeKind::SYNTHETIC => Some("(synthetic)"),
            _ => None,
        }
    }

    fn holds_items_itself(&self) -> bool {
        true
    }

    fn leads_to_attributes(&self, reference: &str) -> bool {
        reference == "__dict__"
    }
}
