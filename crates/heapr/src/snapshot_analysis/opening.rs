//! Snapshot files to heaps.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use heapr_v8::devtools::Heap;
use heapr_v8::{ReadOptions, Snapshot};

use crate::report::progress_bar::ProgressBar;

/// Reads a file and computes what the analyses need; tells on stderr what is wrong with the file.
pub(super) fn open(file: &Path) -> anyhow::Result<Heap> {
    let bar = Mutex::new(ProgressBar::new("reading"));
    let show = |done: u64, all: Option<u64>| {
        if let Some(all) = all {
            // Parts of 4 KiB, so that the numbers fit everywhere.
            let part = |bytes: u64| usize::try_from(bytes >> 12).unwrap_or(usize::MAX);
            bar.lock().unwrap_or_else(PoisonError::into_inner).show(part(done), part(all));
        }
    };
    let options = ReadOptions { progress: &show, ..ReadOptions::default() };
    let snapshot = Snapshot::open(file, &options).with_context(|| file.display().to_string())?;
    drop(bar);
    for problem in snapshot.problems().iter().take(3) {
        eprintln!("heapr: {}: {problem}", file.display());
    }
    Heap::with_summary(snapshot).with_context(|| file.display().to_string())
}

/// `@123` or `123`.
pub(super) fn parse_id(text: &str) -> Result<u64, String> {
    text.strip_prefix('@').unwrap_or(text).parse().map_err(|_| format!("{text:?} is no id like @123"))
}

/// The node of an id.
pub(super) fn node_of(heap: &Heap, id: u64) -> anyhow::Result<u32> {
    heap.snapshot().node_of_id(id).with_context(|| format!("no object has the id @{id}"))
}
