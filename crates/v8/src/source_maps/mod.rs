//! Original source locations for bundled, minified or compiled scripts.
//!
//! A snapshot names the script that ran (`dist/app.js:1:20481`). Its source map, next to it, inside
//! it or in a given folder, leads to `src/store.ts:12:7`.

mod mapping;
mod search;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use mapping::Mapping;

use crate::saved_scripts::SavedScript;
pub use search::{Unused, map_file};

/// Source maps of a heap's scripts. Each is looked for when a location of its script is requested,
/// and read once.
#[derive(Debug, Default)]
pub struct SourceMaps {
    folders: Vec<PathBuf>,
    taken_at: Option<SystemTime>,
    snapshot: Option<PathBuf>,
    kept: OnceLock<Vec<SavedScript>>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_script: HashMap<String, Option<Arc<Mapping>>>,
    unused: Vec<Unused>,
}

/// Location in an original source. Lines and columns count from 0, as in snapshots and source maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    /// Path of the source as in the map, without the scheme of a bundler.
    pub source: String,
    /// Line, from 0.
    pub line: u32,
    /// Column, from 0.
    pub column: u32,
}

impl SourceMaps {
    /// Uses maps in `folders` by script name, then those next to the scripts or inside them. Maps
    /// of scripts that changed after `taken_at`, the time of the snapshot, are not used.
    pub fn new(folders: Vec<PathBuf>, taken_at: Option<SystemTime>) -> Self {
        Self { folders, taken_at, ..Self::default() }
    }

    /// Creates the source maps for a snapshot file, with the maps of scripts saved next to it. The
    /// file's modification time is the latest time of the snapshot.
    pub fn of_file(folders: &[PathBuf], snapshot: &Path) -> Self {
        let changed = std::fs::metadata(snapshot).and_then(|metadata| metadata.modified());
        Self { snapshot: Some(snapshot.to_owned()), ..Self::new(folders.to_vec(), changed.ok()) }
    }

    /// Scripts saved next to the snapshot, as they ran.
    pub fn saved_scripts(&self) -> &[SavedScript] {
        self.kept.get_or_init(|| self.snapshot.as_deref().map(SavedScript::beside).unwrap_or_default())
    }

    /// Returns the text of a script as it ran: saved next to the snapshot, or its file if unchanged
    /// since. A script that starts inside a page is padded to start at the same line and column.
    pub fn text_of(&self, script_id: u32, script: &str) -> Option<String> {
        const LINES_MAX: u32 = 1 << 20;
        let Some(kept) = self.saved_scripts().iter().find(|kept| kept.id == script_id) else {
            return search::unchanged_text(script, self.taken_at);
        };
        let (line, column) = kept.start;
        let before = "\n".repeat(line.min(LINES_MAX) as usize) + &" ".repeat(column.min(LINES_MAX) as usize);
        Some(before + &kept.text)
    }

    /// Returns the saved script of that name; `None` if several scripts of that name differ.
    fn kept_script(&self, script: &str) -> Option<&SavedScript> {
        let name = search::plain_name(script);
        let mut of_name = self.saved_scripts().iter().filter(|kept| search::plain_name(&kept.url) == name);
        let first = of_name.next().filter(|_| !name.is_empty())?;
        of_name.all(|other| other.text == first.text).then_some(first)
    }

    /// Whether any of these scripts has a map.
    pub(crate) fn apply_to<'s>(&self, mut scripts: impl Iterator<Item = &'s String>) -> bool {
        scripts.any(|script| !script.is_empty() && self.mapping(script).is_some())
    }

    /// Returns the original location of a location in a script. `None` if no map or no line of it
    /// covers the location.
    ///
    /// The map of an installed package may lead to sources outside of the package, which were not
    /// published. The location would then name another package or a missing file. In that case the
    /// script itself counts.
    pub fn original(&self, script: &str, line: u32, column: u32) -> Option<Original> {
        let original = self.mapping(script)?.original(line, column)?;
        match package_folder(&search::plain_name(script)) {
            None => Some(original),
            folder => Some(original).filter(|original| package_folder(&original.source) == folder),
        }
    }

    /// Returns the original name of the function that begins at this location and is called
    /// `minified` in the script.
    pub(crate) fn original_name(
        &self,
        script: &str,
        line: u32,
        column: u32,
        minified: &str,
    ) -> Option<String> {
        self.mapping(script)?.name_of(line, column, minified).map(str::to_owned)
    }

    /// Returns the original name of the variable called `minified` in the function at this
    /// location, if it is certain.
    pub(crate) fn original_variable(
        &self,
        script: &str,
        line: u32,
        column: u32,
        minified: &str,
    ) -> Option<String> {
        self.mapping(script)?.variable_name(line, column, minified)
    }

    /// Replaces a location in the form `script:line:column`, counted from 1, by its original one.
    /// Returns it unchanged if no map covers it.
    pub fn place(&self, text: &str) -> String {
        self.mapped_text(text).unwrap_or_else(|| text.to_owned())
    }

    fn mapped_text(&self, text: &str) -> Option<String> {
        let (rest, column) = text.rsplit_once(':')?;
        let (script, line) = rest.rsplit_once(':')?;
        let (line, column): (u32, u32) = (line.parse().ok()?, column.parse().ok()?);
        let original = self.original(script, line.checked_sub(1)?, column.checked_sub(1)?)?;
        Some(original.to_string())
    }

    /// Returns maps that were found but could not be used, with the reason. Each is returned once.
    pub fn take_unused(&self) -> Vec<Unused> {
        std::mem::take(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner).unused)
    }

    fn mapping(&self, script: &str) -> Option<Arc<Mapping>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mapping) = known.by_script.get(script) {
            return mapping.clone();
        }
        let kept = self.kept_script(script);
        let mapping = match search::mapping_of(script, &self.folders, kept, self.taken_at) {
            Ok(mapping) => mapping.map(Arc::new),
            Err(unused) => {
                known.unused.push(unused);
                None
            }
        };
        known.by_script.insert(script.to_owned(), mapping.clone());
        mapping
    }
}

/// Returns the folder of the innermost package that a path lies in: `/srv/node_modules/@a/b`.
fn package_folder(path: &str) -> Option<&str> {
    const FOLDER: &str = "node_modules";
    let is_end = |at: usize| path[at..].starts_with(['/', '\\']);
    let is_begin = |at: usize| at == 0 || path[..at].ends_with(['/', '\\']);
    let (at, _) =
        path.rmatch_indices(FOLDER).find(|&(at, found)| is_begin(at) && is_end(at + found.len()))?;
    let begin = at + FOLDER.len() + 1;
    let name = &path[begin..];
    let first = name.find(['/', '\\'])?;
    let length = match name.starts_with('@') {
        true => first + 1 + name[first + 1..].find(['/', '\\'])?,
        false => first,
    };
    Some(&path[..begin + length])
}

impl std::fmt::Display for Original {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.source, u64::from(self.line) + 1, u64::from(self.column) + 1)
    }
}

#[cfg(test)]
mod tests;
