//! Opens snapshot files: progress, problems of the file, objects by their id.

use std::ops::Deref;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::Context as _;
use heapr_v8::analysis::StoredAnswers;
use heapr_v8::devtools::Heap;
use heapr_v8::view::{ObjectDetails, Objects as _, SnapshotView};
use heapr_v8::{ReadOptions, Snapshot, SourceMaps, StoredGraph, StoredSummary};

use crate::report::progress_bar::ProgressBar;
use crate::snapshot::managed::dump_file;
use crate::snapshot::native::{GraphArguments, NativeHeap};
use crate::snapshot::v8::index_cache::{self, PendingIndex};
use crate::snapshot::v8::source_maps::{maps_for, tell_unused};
use crate::snapshot::verbs::is_trace;

/// Parts of a heap that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Classes and self sizes.
    Classes,
    /// Distances and retained sizes, for several large files that are in memory together.
    Dominators,
    /// Classes and all sizes, and an index for the next time; computed at once, on two threads.
    Everything,
}

/// Reads a snapshot with a progress bar.
pub(crate) fn read(file: &Path) -> anyhow::Result<Snapshot> {
    if is_trace(file) {
        return read_native(file);
    }
    if let Some(read) = dump_file::read_for_command(file) {
        return read;
    }
    let bar = Mutex::new(ProgressBar::new("reading"));
    let progress = |done: u64, all: Option<u64>| {
        let mut bar = bar.lock().unwrap_or_else(PoisonError::into_inner);
        bar.show(done as usize, all.unwrap_or(0) as usize);
    };
    let options = ReadOptions { progress: &progress, ..ReadOptions::default() };
    Snapshot::open(file, &options).map_err(|error| of_no_snapshot(file, error))
}

/// Returns the error for a file that cannot be read as a snapshot. If it does not even begin as
/// one, it may be a bad file of another kind that is read here.
fn of_no_snapshot(file: &Path, error: heapr_v8::Error) -> anyhow::Error {
    let is_other = matches!(error, heapr_v8::Error::Unexpected { offset: 0, found: Some(_), .. });
    match heapr_import::open(file) {
        Err(known) if is_other && file.is_file() => anyhow::Error::from(known),
        _ => anyhow::Error::from(error),
    }
    .context(file.display().to_string())
}

/// Reads the graph of a native heap, in the form of a V8 snapshot.
fn read_native(file: &Path) -> anyhow::Result<Snapshot> {
    let heap = NativeHeap::of(file, &GraphArguments::default())?;
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    // An error of writing shows at the reader as a file that ends early.
    let thread = std::thread::spawn(move || {
        let mut out = std::io::BufWriter::with_capacity(1 << 20, writer);
        heap.write(&mut out).and_then(|()| std::io::Write::flush(&mut out))
    });
    let snapshot =
        Snapshot::read(reader, &ReadOptions::default()).with_context(|| file.display().to_string());
    let _ = thread.join();
    snapshot
}

/// Heap, and its index if that is to be written when the heap is dropped.
pub(crate) struct OpenedHeap {
    heap: Arc<Heap>,
    summary: OnceLock<StoredSummary>,
    index: Option<PendingIndex>,
    source_maps: Option<Arc<SourceMaps>>,
    /// Problems of the file, which were told when it was opened.
    pub(crate) problems: Vec<String>,
}

impl OpenedHeap {
    fn of(heap: Heap, file: &Path, index: Option<PendingIndex>, problems: Vec<String>) -> Self {
        let source_maps = maps_for(file);
        if let Some(maps) = &source_maps {
            heap.use_source_maps(Arc::clone(maps));
        }
        Self { heap: Arc::new(heap), summary: OnceLock::new(), index, source_maps, problems }
    }

    /// Returns a view of the heap.
    pub(crate) fn view(&self) -> SnapshotView {
        let view = SnapshotView::of_heap(Arc::clone(&self.heap));
        match &self.source_maps {
            Some(maps) => view.with_source_maps(Arc::clone(maps)),
            None => view,
        }
    }

    /// Returns the summary of the heap.
    pub(crate) fn summary(&self) -> &StoredSummary {
        self.summary.get_or_init(|| StoredSummary::of(&self.heap))
    }
}

impl Deref for OpenedHeap {
    type Target = Heap;

    fn deref(&self) -> &Heap {
        &self.heap
    }
}

impl Drop for OpenedHeap {
    fn drop(&mut self) {
        tell_unused(self.source_maps.as_ref());
        if let Some(index) = self.index.take() {
            index.write(&self.heap, self.summary());
        }
    }
}

/// Opens a snapshot, from its index if it has one, and prints problems of the file on standard
/// error.
pub(crate) fn open(file: &Path, wanted: Wanted) -> anyhow::Result<OpenedHeap> {
    if let Some(stored) = index_cache::store_for(file).and_then(|store| store.open(file)) {
        let problems = stored.summary().problems;
        if let Some(heap) = Heap::load(Arc::new(stored)) {
            tell_problems(file, &problems);
            return Ok(OpenedHeap::of(heap, file, None, problems));
        }
    }
    open_file(file, wanted)
}

/// Answers of an index that need the whole graph, with the objects that they are of.
pub(crate) struct Answered {
    pub(crate) objects: StoredGraph,
    pub(crate) answers: StoredAnswers,
}

/// Answers a question from the answers that the index of a file has. `None`: there is no index, it
/// is damaged, or it lacks this answer.
///
/// `question` must print nothing.
pub(crate) fn answered<T>(file: &Path, question: impl FnOnce(&Answered) -> Option<T>) -> Option<T> {
    let store = index_cache::store_for(file)?;
    let objects = store.open(file)?;
    let maps = maps_for(file);
    let Some(answers) = objects.answers(maps.as_deref()) else {
        if objects.damage().is_some() {
            store.forget(file);
        }
        return None;
    };
    let problems = objects.summary().problems;
    let answered = Answered { objects, answers };
    let answer = question(&answered);
    if answered.objects.damage().is_some() {
        store.forget(file);
        return None;
    }
    if answer.is_some() {
        tell_problems(file, &problems);
        tell_unused(maps.as_ref());
    }
    answer
}

fn open_file(file: &Path, wanted: Wanted) -> anyhow::Result<OpenedHeap> {
    let index = if wanted == Wanted::Everything { PendingIndex::of(file) } else { None };
    let snapshot = read_and_tell(file)?;
    let problems = snapshot.problems().iter().map(ToString::to_string).collect();
    let heap = match wanted {
        Wanted::Classes => Heap::new(snapshot),
        Wanted::Dominators => Heap::with_dominators(snapshot),
        Wanted::Everything => Heap::with_summary(snapshot),
    };
    Ok(OpenedHeap::of(heap.with_context(|| file.display().to_string())?, file, index, problems))
}

/// Opens a snapshot from its file, as an index has no allocation stacks.
pub(crate) fn open_with_stacks(file: &Path) -> anyhow::Result<OpenedHeap> {
    open_file(file, Wanted::Dominators)
}

/// Reads a snapshot, and prints problems of the file on standard error.
pub(crate) fn read_and_tell(file: &Path) -> anyhow::Result<Snapshot> {
    let snapshot = read(file)?;
    tell_problems(file, &snapshot.problems().iter().map(ToString::to_string).collect::<Vec<_>>());
    Ok(snapshot)
}

pub(crate) fn tell_problems(file: &Path, problems: &[String]) {
    for problem in problems {
        warn!("{}: {problem}", file.display());
    }
}

/// Answers a question on a snapshot, from its index if it has one, and passes the answer to
/// `print`.
///
/// `question` must print nothing: if the index is damaged, it is called again with the file.
pub(crate) fn ask<T>(
    file: &Path,
    question: impl Fn(&SnapshotView) -> anyhow::Result<T>,
    print: impl FnOnce(T) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    if let Some(store) = index_cache::store_for(file)
        && let Some(view) = store.view(file)
    {
        let maps = maps_for(file);
        let view = match &maps {
            Some(maps) => view.with_source_maps(Arc::clone(maps)),
            None => view,
        };
        let answer = view.summary().map_err(anyhow::Error::from).and_then(|summary| {
            let problems = summary.problems.clone();
            Ok((question(&view)?, problems))
        });
        match answer {
            Err(error) if is_damage(&error) => store.forget(file),
            // The file has it.
            Err(error) if error.is::<NotInIndex>() => {}
            Err(error) => return Err(error.context(file.display().to_string())),
            Ok((answer, problems)) => {
                tell_problems(file, &problems);
                tell_unused(maps.as_ref());
                return print(answer);
            }
        }
    }
    let opened = open_file(file, Wanted::Everything)?;
    print(question(&opened.view()).with_context(|| file.display().to_string())?)
}

/// Answer of a question that needs the allocation stacks, which an index does not contain.
#[derive(Debug)]
struct NotInIndex;

impl std::fmt::Display for NotInIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the index has no allocation stacks")
    }
}

impl std::error::Error for NotInIndex {}

/// Returns all details of an object, with the stack that allocated it.
///
/// # Errors
/// The object has a stack, and the view is of an index.
pub(crate) fn details_with_stack(view: &SnapshotView, node: u32) -> anyhow::Result<ObjectDetails> {
    let details = view.details(node)?;
    match details.trace_node_id != 0 && !view.has_allocation_stacks() {
        true => Err(NotInIndex.into()),
        false => Ok(details),
    }
}

fn is_damage(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(heapr_v8::Error::DamagedIndex { .. }))
}

/// Object's id on the command line: `@123` or `123`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectId(pub(crate) u64);

impl std::str::FromStr for ObjectId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix('@').unwrap_or(text);
        // A block's id is its address.
        if let Some(digits) = digits.strip_prefix("0x") {
            return u64::from_str_radix(digits, 16).map(Self).map_err(|_| format!("{text:?} is no address"));
        }
        digits.parse().map(Self).map_err(|_| format!("{text:?} is no id: it is a number as in @119915"))
    }
}

impl ObjectId {
    /// Returns the node of the object.
    pub(crate) fn node(self, heap: &Heap) -> anyhow::Result<u32> {
        heap.snapshot().node_of_id(self.0).with_context(|| format!("the snapshot has no object @{}", self.0))
    }

    /// Returns the node of the object in a view.
    pub(crate) fn node_in(self, view: &SnapshotView) -> anyhow::Result<u32> {
        view.node_of_id(self.0)?.with_context(|| format!("the snapshot has no object @{}", self.0))
    }
}
