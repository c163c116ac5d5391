//! Suspects of several snapshots, kept in the cache folder: the same question again is answered at
//! once, as long as no file has changed.

use std::path::PathBuf;

use heapr_v8::analysis::Suspects;
use heapr_v8::{Fingerprint, SummaryStore};
use serde::{Deserialize, Serialize};

use crate::snapshot::v8::heap_file::{OpenedHeap, tell_problems};
use crate::snapshot::v8::index_cache;

/// Version of this heapr.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An answer with the files that it is of.
#[derive(Serialize, Deserialize)]
struct Kept<F> {
    /// Version of heapr: another one may find others.
    version: String,
    files: Vec<(PathBuf, Fingerprint)>,
    /// Problems of each file.
    problems: Vec<Vec<String>>,
    found: F,
}

/// Place of the answer for some files, with the state of the files before they are read.
pub(super) struct Place {
    store: SummaryStore,
    last: PathBuf,
    part: String,
    files: Vec<(PathBuf, Fingerprint)>,
}

impl Place {
    /// Returns the place. `None`: a single file, or small ones, which are read as quickly.
    pub(super) fn of(files: &[PathBuf], top: usize) -> Option<Self> {
        let [_, .., last] = files else { return None };
        let store = SummaryStore::new(index_cache::directory_for(last)?);
        let told = |file: &PathBuf| Some((std::fs::canonicalize(file).ok()?, Fingerprint::of(file).ok()?));
        Some(Self {
            store,
            last: last.clone(),
            part: format!("suspects-{}-{top}", files.len() - 1),
            files: files.iter().map(told).collect::<Option<_>>()?,
        })
    }

    /// Loads the answer, and prints problems of the files on standard error. `None`: it is not
    /// kept, or a file has changed.
    pub(super) fn load(&self, files: &[PathBuf]) -> Option<Suspects> {
        let kept: Kept<Suspects> = self.store.load(&self.last, &self.part)?;
        if kept.files != self.files || kept.version != VERSION {
            return None;
        }
        files.iter().zip(&kept.problems).for_each(|(file, problems)| tell_problems(file, problems));
        Some(kept.found)
    }

    /// Keeps an answer, unless a file has changed since. Errors of the cache are ignored.
    pub(super) fn keep(self, heaps: &[OpenedHeap], found: &Suspects) {
        // Names of JavaScript depend on source maps, which may change.
        let has_lasting_names = heaps.iter().all(|heap| heap.snapshot().meta().dialect.is_some());
        let is_as_read =
            |(path, state): &(PathBuf, Fingerprint)| Fingerprint::of(path).is_ok_and(|now| now == *state);
        if has_lasting_names && self.files.iter().all(is_as_read) {
            let problems = heaps.iter().map(|heap| heap.problems.clone()).collect();
            let kept = Kept { version: VERSION.to_owned(), files: self.files, problems, found };
            let _ = self.store.store(&self.last, &self.part, &kept);
        }
    }
}
