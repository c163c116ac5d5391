//! Places of bundled, minified or compiled scripts in the sources that people wrote.
//!
//! A snapshot names the script that ran (`dist/app.js:1:20481`). Its source map, beside it, within
//! it or in a given folder, leads back to `src/store.ts:12:7`.

mod mapping;
mod search;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use mapping::Mapping;
pub use search::Unused;

/// The source maps of the scripts of a heap: each is looked for when a place of its script is asked
/// for, and read once.
#[derive(Debug, Default)]
pub struct SourceMaps {
    folders: Vec<PathBuf>,
    taken_at: Option<SystemTime>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_script: HashMap<String, Option<Arc<Mapping>>>,
    unused: Vec<Unused>,
}

/// A place in a source. Lines and columns count from 0, as in snapshots and source maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    /// The source's path, as far as the map tells; without the scheme of a bundler.
    pub source: String,
    /// Line, from 0.
    pub line: u32,
    /// Column, from 0.
    pub column: u32,
}

impl SourceMaps {
    /// Maps of `folders`, by the name of the script; then those beside the scripts and in them,
    /// unless the script has changed since the snapshot was taken.
    pub fn new(folders: Vec<PathBuf>, taken_at: Option<SystemTime>) -> Self {
        Self { folders, taken_at, known: Mutex::default() }
    }

    /// The same for a snapshot in a file, which was taken no later than the file was changed.
    pub fn of_file(folders: &[PathBuf], snapshot: &Path) -> Self {
        let changed = std::fs::metadata(snapshot).and_then(|metadata| metadata.modified());
        Self::new(folders.to_vec(), changed.ok())
    }

    /// Where a place of a script stands in the sources; `None` without a map or a line of it there.
    pub fn original(&self, script: &str, line: u32, column: u32) -> Option<Original> {
        self.mapping(script)?.original(line, column)
    }

    /// What a function was called in the sources that begins at this place and is called
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

    /// What a variable was called in the sources that is `minified` in a function at this place,
    /// where that is certain.
    pub(crate) fn original_variable(
        &self,
        script: &str,
        line: u32,
        column: u32,
        minified: &str,
    ) -> Option<String> {
        self.mapping(script)?.variable_name(line, column, minified)
    }

    /// A place that is written `script:line:column`, counted from 1, in its source; itself where no
    /// map leads further.
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

    /// Maps that were found and could not be used, and why: each is told once.
    pub fn take_unused(&self) -> Vec<Unused> {
        std::mem::take(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner).unused)
    }

    fn mapping(&self, script: &str) -> Option<Arc<Mapping>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mapping) = known.by_script.get(script) {
            return mapping.clone();
        }
        let mapping = match search::mapping_of(script, &self.folders, self.taken_at) {
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

impl std::fmt::Display for Original {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.source, u64::from(self.line) + 1, u64::from(self.column) + 1)
    }
}

#[cfg(test)]
mod tests;
