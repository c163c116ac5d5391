//! Paths of scripts. Snapshots contain them, but DevTools does not look for them.
//!
//! ```text
//!  closure --shared--> SharedFunctionInfo --script_or_debug_info (to V8 12), script (from V8 12 on)--> "/path/app.js"
//! ```

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::source_maps::{Original, SourceMaps};
use crate::{EdgeKind, Location, NodeKind, Snapshot};

/// Path of each script by its number, and source maps for locations in it.
#[derive(Debug, Default, Clone)]
pub struct ScriptPaths {
    paths: FxHashMap<u32, String>,
    maps: Option<Arc<SourceMaps>>,
}

/// Prefix of the path in the newest V8.
const PREFIX: &str = "system / Script / ";

impl ScriptPaths {
    /// Finds the paths of all scripts that locations refer to.
    pub fn of(snapshot: &Snapshot) -> Self {
        if let Some(dialect) = &snapshot.meta().dialect {
            let scripts = dialect.scripts.iter().cloned();
            return Self { paths: (0..).zip(scripts).collect(), maps: None };
        }
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
        Self { paths, maps: None }
    }

    /// Adds source maps, and the names that saved scripts gave themselves (`//# sourceURL=`).
    #[must_use]
    pub(crate) fn with_maps(mut self, maps: Option<Arc<SourceMaps>>) -> Self {
        for script in maps.iter().flat_map(|maps| maps.saved_scripts()).filter(|it| !it.url.is_empty()) {
            self.paths.entry(script.id).or_insert_with(|| script.url.clone());
        }
        Self { maps, ..self }
    }

    /// Creates the table from known paths.
    pub(crate) fn from_paths(paths: FxHashMap<u32, String>) -> Self {
        Self { paths, maps: None }
    }

    /// All paths, by the script's number.
    pub(crate) fn all(&self) -> &FxHashMap<u32, String> {
        &self.paths
    }

    /// Returns the path of a script.
    pub fn get(&self, script_id: u32) -> Option<&str> {
        self.paths.get(&script_id).map(String::as_str)
    }

    /// Formats a location as `path:line:column`, counted from 1.
    pub fn place(&self, location: Location) -> String {
        self.place_at(location.script_id, location.line, location.column)
    }

    /// Formats a script, line and column (from 0) as `path:line:column`, counted from 1.
    pub fn place_at(&self, script_id: u32, line: u32, column: u32) -> String {
        if let Some(original) = self.original(script_id, line, column) {
            return original.to_string();
        }
        let (line, column) = (u64::from(line) + 1, u64::from(column) + 1);
        match self.get(script_id) {
            Some(path) => format!("{path}:{line}:{column}"),
            None => format!("script {script_id}:{line}:{column}"),
        }
    }

    /// Whether source maps are in use.
    pub(crate) fn has_maps(&self) -> bool {
        self.maps.is_some()
    }

    /// Returns the original source location of a line and column (from 0), if a source map covers
    /// it.
    pub fn original(&self, script_id: u32, line: u32, column: u32) -> Option<Original> {
        self.maps.as_ref()?.original(self.get(script_id)?, line, column)
    }

    /// Returns the original name of the variable called `minified` in the function at this
    /// location.
    pub(crate) fn original_variable(&self, location: Location, minified: &str) -> Option<String> {
        let Location { script_id, line, column, .. } = location;
        self.maps.as_ref()?.original_variable(self.get(script_id)?, line, column, minified)
    }

    /// Returns the original name of the function or class at this location.
    pub(crate) fn original_name(&self, location: Location, minified: &str) -> Option<String> {
        let Location { script_id, line, column, .. } = location;
        self.maps.as_ref()?.original_name(self.get(script_id)?, line, column, minified)
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
