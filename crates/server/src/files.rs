//! The open files, by number.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use heapr_explore::{FrameUnion, TableLimit};
use heapr_filters::FilterArguments;
use heapr_query::{GroupBy, SnapshotSeries};
use heapr_session::SessionName;
use heapr_trace::ProcessIndex;
use heapr_v8::analysis::Comparison;

use crate::entry::{Change, Content, Entry};
use crate::error::{Error, Result};
use crate::follower;
use crate::host::{GraphHolders, GraphLeaks, HeapError, Host};
use crate::resident_file::ResidentFile;
use crate::result_cache::ResultCache;
use crate::session::RunningSession;
use crate::snapshot_file::SnapshotFile;
use crate::trace_file::{Identity, TraceFile};
use crate::uploads::Uploads;

/// Limits of memory use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Limit for the table of a trace's events; beyond it queries replay the events.
    pub table: TableLimit,
}

impl Default for Limits {
    /// Limits the table to a third of the machine's memory, at most 6 GiB.
    fn default() -> Self {
        let pages = rustix::system::sysinfo();
        let memory_bytes = pages.totalram.saturating_mul(u64::from(pages.mem_unit));
        Self { table: TableLimit { memory_bytes: (memory_bytes / 3).min(6 << 30) } }
    }
}

/// Source of an entry.
#[derive(Debug, Clone)]
pub enum Source {
    /// A running session and its file.
    File(PathBuf),
    /// A session that runs, and where it writes.
    Session {
        /// Name of the session.
        name: SessionName,
        /// Path of its trace.
        path: PathBuf,
    },
}

/// A file with resident memory.
pub(crate) enum ResidentSource {
    /// Saved answers of `heapr explain`.
    Kept(Arc<ResidentFile>),
    /// A recording.
    Trace(Arc<TraceFile>),
}

/// Key of a series of native snapshots: files with snapshot numbers, the filter, the grouping.
pub(crate) type SeriesKey = (Vec<(usize, Vec<u32>)>, FilterArguments, GroupBy);

/// Key of a native graph: the opening, the snapshot, the process.
pub(crate) type GraphKey = (usize, u32, Option<u32>);

/// Key of an address space: the opening, the process, the number of processes to choose from.
pub(crate) type PlaceKey = (usize, Option<ProcessIndex>, usize);

/// All open files and the caches that span several of them.
pub struct Files {
    entries: RwLock<Vec<Arc<Entry>>>,
    pub(crate) uploads: Uploads,
    pub(crate) host: Arc<dyn Host>,
    limits: Limits,
    /// Common trees of two traces, by the numbers of their openings.
    pub(crate) unions: ResultCache<[usize; 2], FrameUnion>,
    /// Comparisons of two snapshots, by their numbers and openings.
    pub(crate) comparisons: ResultCache<[(usize, u32); 2], Comparison>,
    /// Holders and leaks of native graphs.
    pub(crate) graph_holders: ResultCache<GraphKey, GraphHolders>,
    pub(crate) graph_leaks: ResultCache<GraphKey, GraphLeaks>,
    /// Address spaces over time, as JSON.
    pub(crate) places: ResultCache<PlaceKey, Vec<u8>>,
    /// Series of native snapshots.
    pub(crate) series: ResultCache<SeriesKey, SnapshotSeries>,
}

/// Number of cached common trees; each takes as much memory as the stacks of both files.
const UNIONS_KEPT: usize = 2;
/// Number of cached comparisons of snapshots; each has a line per class.
const COMPARISONS_KEPT: usize = 8;
/// Number of cached lists of holders and of leaks; each has a line per holder or stack.
const GRAPHS_KEPT: usize = 6;
/// Number of cached address spaces; each has some thousand cells at some moments.
const PLACES_KEPT: usize = 4;
/// Number of cached series of native snapshots; each has a line per stack, with frames.
const SERIES_KEPT: usize = 6;

impl std::fmt::Debug for Files {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Files").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl Files {
    /// Begins to open the files. Errors are reported by the first request for the file.
    #[must_use]
    pub fn open(paths: &[PathBuf], host: Arc<dyn Host>, limits: Limits) -> Arc<Self> {
        let sources: Vec<Source> = paths.iter().cloned().map(Source::File).collect();
        Self::open_sources(&sources, host, limits)
    }

    /// Begins to open files and sessions.
    #[must_use]
    pub fn open_sources(sources: &[Source], host: Arc<dyn Host>, limits: Limits) -> Arc<Self> {
        let entry = |source: &Source| {
            let (path, session) = match source {
                Source::File(path) => (path, None),
                Source::Session { name, path } => (path, Some(Arc::new(RunningSession::new(name.clone())))),
            };
            Arc::new(Entry::new(path, session.is_none() && is_heap(path, &*host), session))
        };
        let files = Arc::new(Self {
            entries: RwLock::new(sources.iter().map(entry).collect()),
            uploads: Uploads::default(),
            host,
            limits,
            unions: ResultCache::new(UNIONS_KEPT),
            comparisons: ResultCache::new(COMPARISONS_KEPT),
            graph_holders: ResultCache::new(GRAPHS_KEPT),
            graph_leaks: ResultCache::new(GRAPHS_KEPT),
            places: ResultCache::new(PLACES_KEPT),
            series: ResultCache::new(SERIES_KEPT),
        });
        for entry in &files.entries() {
            match &entry.session {
                None => files.begin(entry),
                Some(session) => {
                    let reading = follower::Reading { host: Arc::clone(&files.host), limit: limits.table };
                    follower::start(Arc::downgrade(entry), Arc::clone(session), reading);
                }
            }
        }
        files
    }

    fn begin(&self, entry: &Arc<Entry>) {
        let path = entry.path();
        let identity = Identity::of(&path).ok();
        let generation = entry.begin(identity);
        if entry.is_snapshot {
            let entry = Arc::clone(entry);
            let host = Arc::clone(&self.host);
            std::thread::spawn(move || {
                let opened =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        match ResidentFile::open(&path) {
                            Ok(Some(file)) => Ok(Content::Resident(Arc::new(file))),
                            Ok(None) => SnapshotFile::open(&path, &*host)
                                .map(|snapshot| Content::Snapshot(Arc::new(snapshot))),
                            Err(message) => Err(HeapError { message, offset: None }),
                        }
                    }));
                let content = match opened {
                    Ok(Ok(content)) => content,
                    Ok(Err(HeapError { message, offset })) => Content::Failed { message, offset },
                    Err(_) => Content::Failed {
                        message: "reading it has failed: this is an error of heapr's".to_owned(),
                        offset: None,
                    },
                };
                entry.opened(generation, content);
            });
            return;
        }
        let content = match heapr_import::open(&path) {
            Ok(trace) => {
                let trace = trace.with_language_frames(self.host.language_frames());
                Content::Trace(TraceFile::open(&path, trace, Arc::clone(&self.host), self.limits.table, None))
            }
            Err(error) => {
                let offset = match &error {
                    heapr_import::Error::Trace(heapr_trace::Error::Damaged { offset, .. })
                    | heapr_import::Error::Malformed { offset, .. } => Some(*offset),
                    _ => None,
                };
                Content::Failed { message: error.to_string(), offset }
            }
        };
        entry.opened(generation, content);
    }

    /// All entries at this moment; more may be added.
    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fails if no file can be read. One that cannot be is shown with its error beside the others,
    /// and so is a damaged heap.
    ///
    /// # Errors
    /// The error of the first file.
    pub fn refuse_unreadable(&self) -> Result<()> {
        let entries = self.entries();
        let error = |entry: &Arc<Entry>| match entry.content() {
            Content::Failed { message, offset } if !entry.is_snapshot => {
                Some(entry.unusable(message, offset))
            }
            _ => None,
        };
        let mut errors: Vec<_> = entries.iter().map_while(error).collect();
        if errors.len() == entries.len() && !errors.is_empty() {
            return Err(errors.swap_remove(0));
        }
        Ok(())
    }

    /// Begins to open one more file, and returns its number.
    pub(crate) fn add(&self, path: &Path) -> usize {
        let entry = Arc::new(Entry::new(path, is_heap(path, &*self.host), None));
        let number = {
            let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
            entries.push(Arc::clone(&entry));
            entries.len() - 1
        };
        self.begin(&entry);
        number
    }

    /// Opens a file anew.
    pub(crate) fn reopen(&self, number: usize) -> Result<()> {
        let entry = self.entry(number)?;
        // A running session is reopened all the time.
        if entry.session.as_ref().is_some_and(|session| session.stage().is_running()) {
            return Ok(());
        }
        if let Content::Trace(trace) = entry.content() {
            trace.close();
        }
        self.begin(&entry);
        Ok(())
    }

    pub(crate) fn entry(&self, number: usize) -> Result<Arc<Entry>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(number).cloned().ok_or_else(|| Error::NotFound { what: "file", name: number.to_string() })
    }

    fn usable(&self, number: usize) -> Result<(Arc<Entry>, Content)> {
        let entry = self.entry(number)?;
        if let Some(session) = &entry.session {
            session.note_interest();
        }
        if let Change::Shrunk { was_bytes, is_bytes } = entry.change() {
            return Err(Error::Shrunk { path: entry.path().display().to_string(), was_bytes, is_bytes });
        }
        match entry.content() {
            Content::Opening => Err(Error::Opening { path: entry.path().display().to_string() }),
            Content::Failed { message, offset } => Err(entry.unusable(message, offset)),
            content => Ok((entry, content)),
        }
    }

    /// The trace with a number.
    pub(crate) fn trace(&self, number: usize) -> Result<Arc<TraceFile>> {
        match self.usable(number)?.1 {
            Content::Trace(trace) => Ok(trace),
            _ => Err(Error::OtherKind { file: number, wanted: "trace" }),
        }
    }

    /// The file with resident memory with a number.
    pub(crate) fn resident(&self, number: usize) -> Result<ResidentSource> {
        match self.usable(number)?.1 {
            Content::Resident(file) => Ok(ResidentSource::Kept(file)),
            Content::Trace(trace) => Ok(ResidentSource::Trace(trace)),
            _ => Err(Error::OtherKind { file: number, wanted: "trace or kept answer" }),
        }
    }

    /// The snapshot with a number.
    pub(crate) fn snapshot(&self, number: usize) -> Result<Arc<SnapshotFile>> {
        match self.usable(number)?.1 {
            Content::Snapshot(snapshot) => Ok(snapshot),
            _ => Err(Error::OtherKind { file: number, wanted: "snapshot" }),
        }
    }
}

/// Whether a file is a heap, of V8 or in another format, or a saved answer.
fn is_heap(path: &Path, host: &dyn Host) -> bool {
    is_snapshot(path) || host.is_other_heap(path)
}

/// Whether a file is a V8 snapshot or a saved answer. Such a file begins as JSON or as gzip or zstd
/// data; an unreadable file is judged by its name. All other files are opened as traces, which
/// reports an error if they are not.
fn is_snapshot(path: &Path) -> bool {
    if heapr_import::tool_of(path).is_some() {
        return false;
    }
    const GZIP: &[u8] = &[0x1f, 0x8b];
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    let mut start = [0; 64];
    if let Ok(count) = heapr_files::regular(path).and_then(|mut file| file.read(&mut start))
        && count > 0
    {
        let start = &start[..count];
        return start.trim_ascii_start().starts_with(b"{")
            || start.starts_with(GZIP)
            || start.starts_with(ZSTD);
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    [".heapsnapshot", ".heaptimeline"].iter().any(|ending| name.contains(ending))
}
