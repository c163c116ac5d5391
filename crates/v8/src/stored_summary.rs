//! Summary of a snapshot, saved in a file of its own so that it is available immediately the next
//! time.
//!
//! The file is small: one line per class. The snapshot's length, modification time and a checksum
//! over samples of its bytes show whether it still belongs to the snapshot.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cache_folder::CacheFolder;
use crate::devtools::{Heap, Statistics};
use crate::fingerprint::Fingerprint;
use crate::node_set::NodeSet;
use crate::objects::{CaptureMode, ScriptPaths};

/// Summary that is printed for a whole snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSummary {
    /// Number of nodes.
    pub node_count: u32,
    /// Number of edges.
    pub edge_count: u32,
    /// Whether the snapshot shows V8's internal objects.
    pub exposes_internals: bool,
    /// Whether the heap's bytes are told by V8's kinds of objects; other languages have fewer.
    pub has_kinds_of_v8: bool,
    /// Defects of the snapshot file.
    pub problems: Vec<String>,
    /// Heap bytes by kind.
    pub statistics: Statistics,
    /// Classes, by descending retained size.
    pub classes: Vec<StoredClass>,
}

/// Line of the summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredClass {
    /// Name that DevTools shows.
    pub name: String,
    /// DevTools' key of the class.
    pub key: String,
    /// Source location of the constructor, `path:line:column`, from 1.
    pub place: Option<String>,
    /// Number of objects.
    pub object_count: u64,
    /// Least distance of the objects.
    pub distance: i32,
    /// Sum of the objects' self sizes, in bytes.
    pub self_bytes: u64,
    /// Bytes that would be freed with the objects.
    pub retained_bytes: u64,
}

impl StoredSummary {
    /// Returns the summary of a whole heap.
    pub fn of(heap: &Heap) -> Self {
        Self::of_some(heap, None)
    }

    /// Returns the summary with only the classes of some objects.
    pub fn of_some(heap: &Heap, only: Option<&NodeSet>) -> Self {
        let (rest, lines) = std::thread::scope(|scope| {
            let rest = scope.spawn(|| Self::without_classes(heap));
            let lines = heap.aggregates_of(only);
            (rest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), lines)
        });
        let paths = ScriptPaths::of(heap.snapshot());
        let classes = lines.into_iter().map(|line| {
            let class = heap.classes().get(line.class);
            StoredClass {
                name: class.name_text().into_owned(),
                key: class.key(),
                place: class
                    .location
                    .map(|(script_id, line, column)| paths.place_at(script_id, line, column)),
                object_count: line.object_count,
                distance: line.distance,
                self_bytes: line.self_bytes,
                retained_bytes: line.retained_bytes,
            }
        });
        Self { classes: classes.collect(), ..rest }
    }

    /// Returns the part of the summary that needs no dominators.
    pub fn without_classes(heap: &Heap) -> Self {
        let snapshot = heap.snapshot();
        Self {
            node_count: snapshot.node_count(),
            edge_count: snapshot.edge_count(),
            exposes_internals: heap.mode() == CaptureMode::ExposeInternals,
            has_kinds_of_v8: snapshot.meta().language().has_kinds_of_v8(),
            problems: snapshot.problems().iter().map(ToString::to_string).collect(),
            statistics: heap.statistics(),
            classes: Vec::new(),
        }
    }

    /// Returns the key, the heading and the bytes of each kind of objects that the language has.
    /// Sums come last; their headings are in parentheses.
    #[must_use]
    pub fn bytes_by_kind(&self) -> Vec<(&'static str, &'static str, u64)> {
        let found = self.statistics;
        if !self.has_kinds_of_v8 {
            let other_bytes = found.v8_heap_bytes.saturating_sub(found.string_bytes);
            return vec![
                ("strings", "strings", found.string_bytes),
                ("other", "other objects", other_bytes),
                ("native", "(native)", found.native_bytes),
                ("total", "(total)", found.total_bytes),
            ];
        }
        vec![
            ("code", "code", found.code_bytes),
            ("strings", "strings", found.string_bytes),
            ("js_arrays", "JS arrays", found.js_array_bytes),
            ("typed_arrays", "typed arrays", found.typed_array_bytes),
            ("system", "system objects", found.system_bytes),
            ("other_js", "other JS objects", found.other_js_bytes()),
            ("other_native", "other non-JS objects", found.other_native_bytes()),
            ("v8_heap", "(V8 heap)", found.v8_heap_bytes),
            ("native", "(native)", found.native_bytes),
            ("total", "(total)", found.total_bytes),
        ]
    }
}

/// Directory of bounded size with summaries of snapshots and other small answers.
#[derive(Debug, Clone)]
pub struct SummaryStore {
    folder: CacheFolder,
}

/// Version of the format; changes with the meaning of the stored data.
const VERSION: u32 = 4;
/// Largest size of one summary, and of all together, in bytes.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stored<S> {
    version: u32,
    fingerprint: Fingerprint,
    summary: S,
}

impl SummaryStore {
    /// Creates a store in `directory`, which need not exist yet.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { folder: CacheFolder::new(directory.into(), "json", MOST_BYTES) }
    }

    /// Returns the summary of `snapshot`, if it exists and the snapshot file is unchanged. `part`
    /// names the filters that were applied, or another saved answer; it is empty for the whole
    /// summary.
    pub fn load<S: DeserializeOwned>(&self, snapshot: &Path, part: &str) -> Option<S> {
        let entry = self.folder.entry(snapshot, part)?;
        let mut text = Vec::new();
        self.folder.open(&entry)?.take(MOST_BYTES).read_to_end(&mut text).ok()?;
        let stored: Stored<S> = serde_json::from_slice(&text).ok()?;
        if stored.version != VERSION || Fingerprint::of(snapshot).ok()? != stored.fingerprint {
            return None;
        }
        self.folder.touch(&entry);
        Some(stored.summary)
    }

    /// Saves the summary of `snapshot`, or of a part of it, if there is room.
    pub fn store<S: Serialize>(&self, snapshot: &Path, part: &str, summary: &S) -> io::Result<()> {
        let Some(entry) = self.folder.entry(snapshot, part) else { return Ok(()) };
        let stored = Stored { version: VERSION, fingerprint: Fingerprint::of(snapshot)?, summary };
        let text = serde_json::to_vec(&stored)?;
        if let Some(mut file) = self.folder.new_file(&entry, text.len() as u64)? {
            file.write_all(&text)?;
            file.keep_unsynced()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn summary() -> StoredSummary {
        StoredSummary {
            node_count: 3,
            edge_count: 2,
            exposes_internals: false,
            has_kinds_of_v8: true,
            problems: vec![],
            statistics: Statistics { total_bytes: 5_000_000_000, ..Statistics::default() },
            classes: vec![],
        }
    }

    #[test]
    fn a_summary_lasts_until_the_file_changes() {
        let directory = tempfile::tempdir().unwrap();
        let snapshot = directory.path().join("a.heapsnapshot");
        fs::write(&snapshot, "something").unwrap();
        let store = SummaryStore::new(directory.path().join("cache/heapr"));
        assert_eq!(store.load::<StoredSummary>(&snapshot, ""), None);
        store.store(&snapshot, "", &summary()).unwrap();
        assert_eq!(store.load(&snapshot, ""), Some(summary()));
        let mode = fs::metadata(store.folder.entry(&snapshot, "").unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(store.load::<StoredSummary>(&snapshot, "contexts"), None);
        store.store(&snapshot, "contexts", &StoredSummary::default()).unwrap();
        assert_eq!(store.load(&snapshot, "contexts"), Some(StoredSummary::default()));
        assert_eq!(store.load(&snapshot, ""), Some(summary()));
        fs::write(&snapshot, "somethinG").unwrap();
        assert_eq!(store.load::<StoredSummary>(&snapshot, ""), None);
    }

    #[test]
    fn other_languages_have_no_kinds_of_v8() {
        let mut summary = summary();
        summary.statistics.v8_heap_bytes = 100;
        summary.statistics.string_bytes = 30;
        summary.has_kinds_of_v8 = false;
        let rows = summary.bytes_by_kind();
        let other = rows.iter().find(|(key, ..)| *key == "other");
        assert_eq!(other, Some(&("other", "other objects", 70)));
        assert!(rows.iter().all(|(_, heading, _)| !heading.contains("JS")), "{rows:?}");
    }

    #[test]
    fn a_damaged_summary_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let snapshot = directory.path().join("a.heapsnapshot");
        fs::write(&snapshot, "something").unwrap();
        let store = SummaryStore::new(directory.path().join("cache"));
        store.store(&snapshot, "", &summary()).unwrap();
        let entry = store.folder.entry(&snapshot, "").unwrap();
        let text = fs::read(&entry).unwrap();
        for cut in 0..text.len() {
            fs::write(&entry, &text[..cut]).unwrap();
            assert_eq!(store.load::<StoredSummary>(&snapshot, ""), None);
        }
    }
}
