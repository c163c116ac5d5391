//! Suspects of several snapshots, kept in the cache folder: the same question again is answered at
//! once, as long as no file has changed.

use std::path::{Path, PathBuf};

use heapr_v8::analysis::Suspects;
use heapr_v8::{Fingerprint, SummaryStore};
use serde::{Deserialize, Serialize};

use crate::snapshot::v8::heap_file::{OpenedHeap, tell_problems};
use crate::snapshot::v8::index_cache;

/// An answer with the files that it is of, all but the last one. The store checks that one.
#[derive(Serialize, Deserialize)]
struct Kept<F> {
    earlier: Earlier,
    /// Problems of each file.
    problems: Vec<Vec<String>>,
    found: F,
}

/// Loads the answer, and prints problems of the files on standard error. `None`: it is not kept, or
/// a file has changed.
pub(super) fn load(files: &[PathBuf], top: usize) -> Option<Suspects> {
    let (store, last, earlier) = place(files)?;
    let kept: Kept<Suspects> = store.load(last, &part(earlier.len(), top))?;
    if kept.earlier != earlier {
        return None;
    }
    files.iter().zip(&kept.problems).for_each(|(file, problems)| tell_problems(file, problems));
    Some(kept.found)
}

/// Keeps an answer. Errors of the cache are ignored.
pub(super) fn keep(files: &[PathBuf], heaps: &[OpenedHeap], top: usize, found: &Suspects) {
    // Names of JavaScript depend on source maps, which may change.
    let has_lasting_names = heaps.iter().all(|heap| heap.snapshot().meta().dialect.is_some());
    if has_lasting_names && let Some((store, last, earlier)) = place(files) {
        let part = part(earlier.len(), top);
        let problems = heaps.iter().map(|heap| heap.problems.clone()).collect();
        let _ = store.store(last, &part, &Kept { earlier, problems, found });
    }
}

type Earlier = Vec<(PathBuf, Fingerprint)>;

/// Returns the store, the last file, and what is known of the others. `None`: small files, which
/// are read as quickly.
fn place(files: &[PathBuf]) -> Option<(SummaryStore, &Path, Earlier)> {
    let (last, earlier) = files.split_last()?;
    let store = SummaryStore::new(index_cache::directory_for(last)?);
    let told = |file: &PathBuf| Some((std::fs::canonicalize(file).ok()?, Fingerprint::of(file).ok()?));
    Some((store, last, earlier.iter().map(told).collect::<Option<Earlier>>()?))
}

fn part(earlier_count: usize, top: usize) -> String {
    format!("suspects-{earlier_count}-{top}")
}
