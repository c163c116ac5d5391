//! Source locations in scripts.

use serde::{Deserialize, Serialize};

use crate::Location;
use crate::objects::ScriptPaths;

/// Source location, counted from 1 as in editors.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Path or URL of the script, or `script N` if the snapshot does not have it.
    pub script: String,
    /// False if the snapshot does not have the script's path.
    pub has_path: bool,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl Place {
    /// Beginning of a module's script.
    pub(super) fn of_module(script: String) -> Self {
        Self { script, has_path: true, line: 1, column: 1 }
    }

    /// Whether the script is part of the runtime rather than the program.
    pub(crate) fn is_of_the_runtime(&self) -> bool {
        is_of_the_runtime(&self.script)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.script, self.line, self.column)
    }
}

/// Modules of Node 14 and before, whose scripts have only a bare name. Scripts of a workerd worker
/// also have a bare name (`index.js`).
const OLD_MODULES: [&str; 44] = [
    "assert",
    "async_hooks",
    "buffer",
    "child_process",
    "cluster",
    "console",
    "constants",
    "crypto",
    "dgram",
    "diagnostics_channel",
    "dns",
    "domain",
    "events",
    "fs",
    "http",
    "http2",
    "https",
    "inspector",
    "module",
    "net",
    "os",
    "path",
    "perf_hooks",
    "policy",
    "process",
    "punycode",
    "querystring",
    "readline",
    "repl",
    "stream",
    "string_decoder",
    "sys",
    "timers",
    "tls",
    "trace_events",
    "tty",
    "url",
    "util",
    "v8",
    "vm",
    "wasi",
    "worker_threads",
    "zlib",
    "freelist",
];

/// Whether a script of that name comes with the runtime. Node's scripts start with `node:`; until
/// Node 14 they are bare file names (`net.js`). Scripts of a program have a path or a URL.
#[must_use]
pub fn is_of_the_runtime(script: &str) -> bool {
    let is_bare = script.strip_suffix(".js").is_some_and(|name| {
        OLD_MODULES.contains(&name) || name.starts_with('_') && !name.contains(['/', '\\'])
    });
    let has_prefix = [
        "node:",
        "ext:",
        "internal/",
        "native ",
        "extensions::",
        "workerd:",
        "chrome-extension:",
        "devtools:",
        "bun:",
        "python:",
    ]
    .iter()
    .any(|prefix| script.starts_with(prefix));
    script.is_empty() || is_bare || has_prefix
}

/// Whether a script belongs to an installed package rather than the program itself.
pub(super) fn is_of_a_package(script: &str) -> bool {
    script.split(['/', '\\']).any(|part| matches!(part, "node_modules" | "site-packages" | "dist-packages"))
}

/// Source location of a [`Location`]; in the original sources if a source map covers it.
pub(super) fn place_of(paths: &ScriptPaths, location: Location) -> Place {
    let Location { script_id, line, column, .. } = location;
    let (path, line, column) = match paths.original(script_id, line, column) {
        Some(original) => (Some(original.source), original.line, original.column),
        None => {
            let path =
                paths.get(script_id).map(|path| path.strip_prefix("file://").unwrap_or(path).to_owned());
            (path, line, column)
        }
    };
    let has_path = path.is_some();
    let script = path.unwrap_or_else(|| format!("script {script_id}"));
    Place { script, has_path, line: line.saturating_add(1), column: column.saturating_add(1) }
}
