//! Places of bundled, minified or compiled scripts in the sources that people wrote.
//!
//! A snapshot names the script that ran (`dist/app.js:1:20481`). Its source map, beside it, within
//! it or in a given folder, leads back to `src/store.ts:12:7`.

mod mapping;
mod search;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use mapping::Mapping;

use crate::kept_scripts::KeptScript;
pub use search::{Unused, map_file};

/// The source maps of the scripts of a heap: each is looked for when a place of its script is asked
/// for, and read once.
#[derive(Debug, Default)]
pub struct SourceMaps {
    folders: Vec<PathBuf>,
    taken_at: Option<SystemTime>,
    snapshot: Option<PathBuf>,
    kept: OnceLock<Vec<KeptScript>>,
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
        Self { folders, taken_at, ..Self::default() }
    }

    /// The same for a snapshot in a file, which was taken no later than the file was changed; with
    /// the maps of scripts that were kept beside it.
    pub fn of_file(folders: &[PathBuf], snapshot: &Path) -> Self {
        let changed = std::fs::metadata(snapshot).and_then(|metadata| metadata.modified());
        Self { snapshot: Some(snapshot.to_owned()), ..Self::new(folders.to_vec(), changed.ok()) }
    }

    /// The scripts that were kept beside the snapshot, as they ran.
    pub fn kept_scripts(&self) -> &[KeptScript] {
        self.kept.get_or_init(|| self.snapshot.as_deref().map(KeptScript::beside).unwrap_or_default())
    }

    /// The text of a script as it ran: kept beside the snapshot, or of its file if that has not
    /// changed since. What begins further down in a page begins there here, too.
    pub fn text_of(&self, script_id: u32, script: &str) -> Option<String> {
        const LINES_MAX: u32 = 1 << 20;
        let Some(kept) = self.kept_scripts().iter().find(|kept| kept.id == script_id) else {
            return search::unchanged_text(script, self.taken_at);
        };
        let (line, column) = kept.start;
        let before = "\n".repeat(line.min(LINES_MAX) as usize) + &" ".repeat(column.min(LINES_MAX) as usize);
        Some(before + &kept.text)
    }

    /// The one kept script of that name; nothing where several have it and differ.
    fn kept_script(&self, script: &str) -> Option<&KeptScript> {
        let name = search::plain_name(script);
        let mut of_name = self.kept_scripts().iter().filter(|kept| search::plain_name(&kept.url) == name);
        let first = of_name.next().filter(|_| !name.is_empty())?;
        of_name.all(|other| other.text == first.text).then_some(first)
    }

    /// Where a place of a script stands in the sources; `None` without a map or a line of it
    /// there.
    ///
    /// The map of an installed package may lead to sources that were not packed: such a place
    /// would name another package or none, and nobody could open it. There the script itself
    /// counts.
    pub fn original(&self, script: &str, line: u32, column: u32) -> Option<Original> {
        let original = self.mapping(script)?.original(line, column)?;
        match package_folder(&search::plain_name(script)) {
            None => Some(original),
            folder => Some(original).filter(|original| package_folder(&original.source) == folder),
        }
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

/// The folder of the innermost package that a path lies in: `/srv/node_modules/@a/b`.
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
