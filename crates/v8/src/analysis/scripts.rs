//! The paths of scripts, which a snapshot knows by way of its functions.

use std::collections::HashMap;

use super::heap::{EdgeName, Heap};
use crate::Location;

/// The path or URL of each script that has a function in the snapshot.
#[derive(Debug, Clone, Default)]
pub struct Scripts {
    names: HashMap<u32, String>,
}

/// A place in a script, counted from 1 as editors do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The script's path or URL, or `script N` where the snapshot does not tell.
    pub script: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl Place {
    /// Whether the script is part of the runtime and not of the program.
    pub fn is_of_the_runtime(&self) -> bool {
        is_of_the_runtime(&self.script)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.script, self.line, self.column)
    }
}

/// Whether a script of that name comes with the runtime.
pub(super) fn is_of_the_runtime(script: &str) -> bool {
    ["node:", "ext:", "internal/", "native ", "extensions::", "chrome-extension:", "devtools:", "bun:"]
        .iter()
        .any(|prefix| script.starts_with(prefix))
        || script.is_empty()
}

impl Scripts {
    /// Goes from each function over its shared information to its script: closure, `shared`, `script` (until Node 20
    /// `script_or_debug_info`), whose name is the path.
    pub fn of(heap: &impl Heap) -> Self {
        let mut names = HashMap::new();
        for location in heap.locations() {
            let node = location.node;
            if names.contains_key(&location.script_id) {
                continue;
            }
            let Some(shared) = field(heap, node, &["shared"]) else { continue };
            let Some(script) = field(heap, shared, &["script", "script_or_debug_info"]) else { continue };
            let name = heap.name(script);
            // Newest engines keep the path in a node of its own; "system / Script" is no path.
            if !name.is_empty() && !name.starts_with("system /") {
                let name = name.strip_prefix("file://").unwrap_or(&name).to_owned();
                names.insert(location.script_id, name);
            }
        }
        Self { names }
    }

    /// The place of a location.
    pub fn place(&self, location: Location) -> Place {
        let script = self.names.get(&location.script_id);
        Place {
            script: script.cloned().unwrap_or_else(|| format!("script {}", location.script_id)),
            line: location.line.saturating_add(1),
            column: location.column.saturating_add(1),
        }
    }
}

/// The target of the first field with one of these names.
pub(super) fn field(heap: &impl Heap, node: u32, names: &[&str]) -> Option<u32> {
    heap.graph().edges(node).find_map(|edge| match heap.edge_name(edge) {
        EdgeName::Name(name) if names.contains(&name.as_ref()) => Some(heap.graph().target(edge)),
        _ => None,
    })
}
