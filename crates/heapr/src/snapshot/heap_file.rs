//! Opens snapshot files: progress, defects of the file, objects by their id.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use heapr_v8::devtools::Heap;
use heapr_v8::{ReadOptions, Snapshot};

use crate::report::progress_bar::ProgressBar;

/// What will be asked of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Classes and sizes.
    Classes,
    /// Distances and retained sizes as well: computed at once, on two threads.
    Everything,
}

/// Reads a snapshot with a progress bar.
pub(crate) fn read(file: &Path) -> anyhow::Result<Snapshot> {
    let bar = Mutex::new(ProgressBar::new("reading"));
    let progress = |done: u64, all: Option<u64>| {
        let mut bar = bar.lock().unwrap_or_else(PoisonError::into_inner);
        bar.show(done as usize, all.unwrap_or(0) as usize);
    };
    let options = ReadOptions { progress: &progress, ..ReadOptions::default() };
    Snapshot::open(file, &options).with_context(|| file.display().to_string())
}

/// Opens a snapshot; what is wrong with the file is told on stderr.
pub(crate) fn open(file: &Path, wanted: Wanted) -> anyhow::Result<Heap> {
    let snapshot = read(file)?;
    for problem in snapshot.problems() {
        eprintln!("heapr: warning: {}: {problem}", file.display());
    }
    let heap = match wanted {
        Wanted::Classes => Heap::new(snapshot),
        Wanted::Everything => Heap::with_summary(snapshot),
    };
    heap.with_context(|| file.display().to_string())
}

/// An object's id on the command line: `@123` or `123`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectId(pub(crate) u64);

impl std::str::FromStr for ObjectId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix('@').unwrap_or(text);
        digits.parse().map(Self).map_err(|_| format!("{text:?} is no id: it is a number as in @119915"))
    }
}

impl ObjectId {
    /// The object's node.
    pub(crate) fn node(self, heap: &Heap) -> anyhow::Result<u32> {
        heap.snapshot().node_of_id(self.0).with_context(|| format!("the snapshot has no object @{}", self.0))
    }
}

/// A name for one line: control characters replaced, no longer than makes sense.
pub(crate) fn one_line(text: &str) -> String {
    const LIMIT: usize = 200;
    let mut line: String = text.chars().take(LIMIT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(LIMIT).is_some() {
        line.push('…');
    }
    line
}
