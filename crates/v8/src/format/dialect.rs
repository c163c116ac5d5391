//! Facts on a heap that is not V8's but in its format: the member `heapr` of the header.

use std::collections::HashSet;

use serde_json::Value;

/// Beginnings of the names of nodes by which objects are named: what comes first in a name.
const NAMED: [&str; 5] = ["module ", "class ", "thread ", "frame ", "("];
/// Beginnings of the names of what refers to objects only for the moment.
const PASSING: [&str; 2] = ["thread ", "frame "];
/// Name of the root of objects without any reference from outside of them.
pub(crate) const GARBAGE: &str = "(garbage, not yet collected)";

/// Facts on a heap of another language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialect {
    /// Runtime and version: `CPython 3.11.2`.
    pub runtime: String,
    /// Whether ids are addresses: an object has the same one as long as it lives, and another may
    /// have it afterwards.
    pub ids_are_addresses: bool,
    /// Paths of the scripts, by number.
    pub scripts: Vec<String>,
    collections: HashSet<String>,
    fixed: HashSet<String>,
}

impl Dialect {
    /// Reads the member of a header, if it has one.
    pub(crate) fn of(header: &Value) -> Option<Self> {
        let own = header.get("heapr")?;
        let texts = |name: &str| {
            let values = own[name].as_array().map(Vec::as_slice).unwrap_or_default();
            values.iter().map(|value| value.as_str().unwrap_or_default().to_owned())
        };
        Some(Self {
            runtime: own["runtime"].as_str()?.to_owned(),
            ids_are_addresses: own["ids"].as_str() == Some("addresses"),
            scripts: texts("scripts").collect(),
            collections: texts("collections").collect(),
            fixed: texts("fixed").collect(),
        })
    }

    /// Whether instances of a class hold their contents by position or key.
    pub(crate) fn is_collection(&self, class: &str) -> bool {
        self.collections.contains(class)
    }

    /// Whether instances of a class never change their size.
    pub(crate) fn has_fixed_size(&self, class: &str) -> bool {
        self.fixed.contains(class)
    }

    /// Whether a node of this name begins the names of what it holds.
    pub(crate) fn is_named(name: &str) -> bool {
        name.is_empty() || NAMED.iter().any(|start| name.starts_with(start))
    }

    /// Whether a node of this name refers to objects only for the moment.
    pub(crate) fn is_passing(name: &str) -> bool {
        PASSING.iter().any(|start| name.starts_with(start))
    }

    /// Returns how an internal field appears in a name; `None` for plumbing.
    pub(crate) fn internal_field(name: &str) -> Option<&str> {
        match name {
            "key" => Some("[…]"),
            "__dict__" | "__class__" | "cell_contents" => None,
            name if name.starts_with(['+', '(']) => None,
            name => Some(name),
        }
    }
}
