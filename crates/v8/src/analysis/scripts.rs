//! Places in scripts.

use crate::Location;
use crate::objects::ScriptPaths;

/// A place in a script, counted from 1 as editors do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
    pub(crate) fn is_of_the_runtime(&self) -> bool {
        is_of_the_runtime(&self.script)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.script, self.line, self.column)
    }
}

/// Whether a script of that name comes with the runtime: Node's have `node:` before their name,
/// until Node 14 no more than a file name (`net.js`); those of a program have a path or a URL.
pub(super) fn is_of_the_runtime(script: &str) -> bool {
    let is_bare = !script.contains(['/', '\\']) && script.ends_with(".js");
    let has_prefix =
        ["node:", "ext:", "internal/", "native ", "extensions::", "chrome-extension:", "devtools:", "bun:"]
            .iter()
            .any(|prefix| script.starts_with(prefix));
    script.is_empty() || is_bare || has_prefix
}

/// Whether a script belongs to an installed package and not to the program itself.
pub(super) fn is_of_a_package(script: &str) -> bool {
    script.split(['/', '\\']).any(|part| part == "node_modules")
}

/// The place of a location: in the sources, if a source map leads there.
pub(super) fn place_of(paths: &ScriptPaths, location: Location) -> Place {
    let Location { script_id, line, column, .. } = location;
    let (script, line, column) = match paths.original(script_id, line, column) {
        Some(original) => (original.source, original.line, original.column),
        None => {
            let path =
                paths.get(script_id).map(|path| path.strip_prefix("file://").unwrap_or(path).to_owned());
            (path.unwrap_or_else(|| format!("script {script_id}")), line, column)
        }
    };
    Place { script, line: line.saturating_add(1), column: column.saturating_add(1) }
}
