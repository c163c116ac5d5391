//! The paths of scripts, which the snapshot holds though DevTools does not look for them.
//!
//! ```text
//!  closure --shared--> SharedFunctionInfo --script_or_debug_info (to V8 12), script (from V8 12 on)--> "/path/app.js"
//! ```

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::source_maps::{Original, SourceMaps};
use crate::{EdgeKind, Location, NodeKind, Snapshot};

/// The path of each script by its number, and the places in it as the sources have them.
#[derive(Debug, Default, Clone)]
pub struct ScriptPaths {
    paths: FxHashMap<u32, String>,
    maps: Option<Arc<SourceMaps>>,
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
        Self { paths, maps: None }
    }

    /// The same, with the places in the sources where source maps lead to them, and the names that
    /// scripts gave themselves (`//# sourceURL=`), as far as they were kept.
    #[must_use]
    pub(crate) fn with_maps(mut self, maps: Option<Arc<SourceMaps>>) -> Self {
        for script in maps.iter().flat_map(|maps| maps.kept_scripts()).filter(|it| !it.url.is_empty()) {
            self.paths.entry(script.id).or_insert_with(|| script.url.clone());
        }
        Self { maps, ..self }
    }

    /// Takes over known paths.
    pub(crate) fn from_paths(paths: FxHashMap<u32, String>) -> Self {
        Self { paths, maps: None }
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
        if let Some(original) = self.original(script_id, line, column) {
            return original.to_string();
        }
        let (line, column) = (u64::from(line) + 1, u64::from(column) + 1);
        match self.get(script_id) {
            Some(path) => format!("{path}:{line}:{column}"),
            None => format!("script {script_id}:{line}:{column}"),
        }
    }

    /// Whether places may stand in sources of other names.
    pub(crate) fn has_maps(&self) -> bool {
        self.maps.is_some()
    }

    /// Where a place (from 0) stands in the sources, if a source map leads there.
    pub fn original(&self, script_id: u32, line: u32, column: u32) -> Option<Original> {
        self.maps.as_ref()?.original(self.get(script_id)?, line, column)
    }

    /// What a variable is called in the sources that is `minified` in a function at this place.
    pub(crate) fn original_variable(&self, location: Location, minified: &str) -> Option<String> {
        let Location { script_id, line, column, .. } = location;
        self.maps.as_ref()?.original_variable(self.get(script_id)?, line, column, minified)
    }

    /// What the function or class is called in the sources whose place this is.
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
