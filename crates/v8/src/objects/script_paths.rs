//! The paths of scripts, which the snapshot holds though DevTools does not look for them.
//!
//! ```text
//!  closure --shared--> SharedFunctionInfo --script_or_debug_info (to V8 12), script (from V8 12 on)--> "/path/app.js"
//! ```

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{EdgeKind, Location, NodeKind, Snapshot};

/// The path of each script by its number.
#[derive(Debug, Default, Clone)]
pub struct ScriptPaths {
    paths: FxHashMap<u32, String>,
}

/// What the newest V8 puts before the path.
const PREFIX: &str = "system / Script / ";

impl ScriptPaths {
    /// Finds the paths of all scripts that locations speak of.
    pub fn of(snapshot: &Snapshot) -> Self {
        let locations = snapshot.locations().all();
        let mut missing: FxHashSet<u32> = locations.iter().map(|location| location.script_id).collect();
        let mut paths = FxHashMap::default();
        for location in locations {
            if missing.is_empty() {
                break;
            }
            if missing.contains(&location.script_id)
                && let Some(path) = path_of(snapshot, location.node)
            {
                missing.remove(&location.script_id);
                paths.insert(location.script_id, path);
            }
        }
        Self { paths }
    }

    /// Takes over known paths.
    pub(crate) fn from_paths(paths: FxHashMap<u32, String>) -> Self {
        Self { paths }
    }

    /// All of them, by the script's number.
    pub(crate) fn all(&self) -> &FxHashMap<u32, String> {
        &self.paths
    }

    /// The path of a script.
    pub fn get(&self, script_id: u32) -> Option<&str> {
        self.paths.get(&script_id).map(String::as_str)
    }

    /// `path:line:column`, counted from 1.
    pub fn place(&self, location: Location) -> String {
        self.place_at(location.script_id, location.line, location.column)
    }

    /// The same of a script, line and column (from 0).
    pub fn place_at(&self, script_id: u32, line: u32, column: u32) -> String {
        let (line, column) = (u64::from(line) + 1, u64::from(column) + 1);
        match self.get(script_id) {
            Some(path) => format!("{path}:{line}:{column}"),
            None => format!("script {script_id}:{line}:{column}"),
        }
    }
}

fn path_of(snapshot: &Snapshot, node: u32) -> Option<String> {
    if snapshot.kind(node) != NodeKind::CLOSURE {
        return None;
    }
    let shared = snapshot.target_of(node, EdgeKind::INTERNAL, b"shared")?;
    let script = snapshot
        .target_of(shared, EdgeKind::INTERNAL, b"script")
        .or_else(|| snapshot.target_of(shared, EdgeKind::INTERNAL, b"script_or_debug_info"))?;
    let name = snapshot.name_text(script);
    let path = name.strip_prefix(PREFIX).unwrap_or(&name);
    (!path.is_empty() && !path.starts_with("system / ")).then(|| path.to_owned())
}
