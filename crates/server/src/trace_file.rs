//! An open trace: its explorer, the progress of its reading, and cached results.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use heapr_explore::{Explorer, Found, GrowingTable, Parallelism, Selection, TableLimit};
use heapr_filters::FilterArguments;
use heapr_query::engine::SymbolTree;
use heapr_query::{CullList, Filter, Group, GroupBy, Metric, OwnCode};
use heapr_trace::{Amounts, LanguageFrames, Trace};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::promise::Promise;
use crate::result_cache::ResultCache;

/// Number of cached selections: those of a page and its last few brushings. Each may take some ten
/// MB.
const SELECTIONS_KEPT: usize = 6;
/// Number of cached rankings: scrolling requests the same one again.
const RANKINGS_KEPT: usize = 8;

/// Time for which the reading of events waits for the names. Symbols that are not in the cache take
/// longer.
const NAMES_FIRST: Duration = Duration::from_millis(250);

/// Time for which the reading of events waits for the first request of a table, on machines with
/// few processors. A browser that was itself just started asked 350 to 630 ms after it began to
/// load the page, on a busy machine.
const FIRST_ASKED: Duration = Duration::from_millis(600);
/// Additional time for which it waits until these tables are made.
const FIRST_MADE: Duration = Duration::from_millis(800);
/// Interval at which it checks whether they are made.
const FIRST_LOOK: Duration = Duration::from_millis(5);
/// Number of processors from which the tables of a page need no precedence.
const MANY_PROCESSORS: usize = 4;

/// Number of openings of all files.
static OPENED: AtomicUsize = AtomicUsize::new(0);

/// Identity of a file at its opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    pub(crate) bytes: u64,
}

impl Identity {
    pub(crate) fn of(path: &Path) -> std::io::Result<Self> {
        Ok(Self::of_metadata(&std::fs::metadata(path)?))
    }

    pub(crate) fn of_metadata(metadata: &std::fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino(), bytes: metadata.len() }
    }

    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// Progress of a longer task.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) what: &'static str,
    pub(crate) done: AtomicUsize,
    pub(crate) all: AtomicUsize,
}

/// A parsed filter.
#[derive(Debug, Clone)]
pub(crate) struct ReadFilter {
    pub(crate) filter: Filter,
    pub(crate) cull: CullList,
}

/// A cached ranking.
#[derive(Debug)]
pub(crate) struct CachedRanking {
    pub(crate) groups: Vec<Group>,
    pub(crate) group_count: usize,
    pub(crate) all: Amounts,
}

/// Data of a growing file that carry over from one state to the next.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    table: Mutex<GrowingTable>,
    /// The shown state; its names are valid as long as there are no new mappings.
    shown: Mutex<Weak<TraceFile>>,
    /// Findings of the last state for which they were looked for.
    told: Mutex<Option<Told>>,
}

/// Findings of a state of a growing file.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    /// Number of events of that state.
    pub(crate) event_count: u64,
    /// Number of source lines that were asked for.
    pub(crate) source_lines: u32,
    pub(crate) answer: serde_json::Value,
}

impl Growth {
    fn shown(&self) -> Option<Arc<TraceFile>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Returns the findings that were told last.
    pub(crate) fn told(&self) -> Option<Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps findings for later states.
    pub(crate) fn tell(&self, told: Told) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
    }

    /// Notes the state that is shown.
    pub(crate) fn note_shown(&self, file: &Arc<TraceFile>) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(file);
    }
}

/// Progress of reading a file, shared by all views of it.
#[derive(Debug)]
struct ReadingState {
    /// Outcome of reading the events, with the text of an error.
    events: Promise<Result<(), String>>,
    /// Time to compute the sums that nearly all queries need.
    sums: Promise<Duration>,
    tasks: Mutex<Vec<Arc<Task>>>,
}

type RankingKey = (FilterArguments, GroupBy, Metric);

/// An open trace.
#[derive(Debug)]
pub(crate) struct TraceFile {
    pub(crate) path: PathBuf,
    /// Number of the opening, unique over all files.
    pub(crate) number: usize,
    pub(crate) explorer: Explorer,
    pub(crate) modified_unix_ns: i128,
    /// Recognition of user code.
    pub(crate) own: OwnCode,
    names: Promise<()>,
    host: Arc<dyn Host>,
    /// Explorer by lines; made on demand.
    by_line: OnceLock<Explorer>,
    reading: Arc<ReadingState>,
    /// Data of earlier states of a growing file.
    pub(crate) growth: Option<Arc<Growth>>,
    /// Views with other language frames; made on demand.
    shown_otherwise: Mutex<Vec<Arc<TraceFile>>>,
    selections: ResultCache<(FilterArguments, Found), Selection>,
    rankings: ResultCache<RankingKey, CachedRanking>,
    /// Numbers of tables and flame graphs that were begun, and that are made.
    answers_begun: AtomicUsize,
    answers_made: AtomicUsize,
    /// Warning about files that have been rebuilt since the recording; looked up on demand.
    other_builds: OnceLock<Option<String>>,
    closed: Cancel,
}

impl TraceFile {
    /// Opens a trace and begins to find names and to read events, each on its own thread. `growth`:
    /// data of earlier states of the same file.
    pub(crate) fn open(
        path: &Path,
        trace: Trace,
        host: Arc<dyn Host>,
        limit: TableLimit,
        growth: Option<Arc<Growth>>,
    ) -> Arc<Self> {
        let trace = Arc::new(trace);
        let modified = std::fs::metadata(path).map(|metadata| (metadata.mtime(), metadata.mtime_nsec()));
        let (seconds, nanoseconds) = modified.unwrap_or_default();
        let own = host.own_code(&trace);
        let explorer = Explorer::with_parallelism(trace, processors());
        let modified_unix_ns = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        let (events, sums) = (Promise::new(), Promise::new());
        let state = Arc::new(ReadingState { events, sums, tasks: Mutex::default() });
        let parts = (explorer, own, modified_unix_ns);
        let file = Arc::new(Self::new(path.to_owned(), parts, &host, state, growth.clone()));
        let naming = Arc::clone(&file);
        let known = growth.as_ref().and_then(|growth| growth.shown());
        std::thread::spawn(move || {
            let task = naming.begin("finding names");
            // A panic in this thread must not leave requests waiting.
            let _done = OnDrop(|| naming.names.set(()));
            let mut names = host.names(naming.explorer.trace());
            if !known.is_some_and(|known| naming.explorer.adopt_names(&known.explorer, &mut *names)) {
                naming.explorer.name(&mut *names);
            }
            drop(names);
            // Nearly all pages begin with the built-in list.
            naming.explorer.prepare_culling(&CullList::built_in());
            naming.end(&task);
        });
        let reading = Arc::clone(&file);
        std::thread::spawn(move || {
            let task = reading.begin("reading events");
            reading.let_the_first_picture_go_before();
            let _done = OnDrop(|| {
                if reading.reading.events.get().is_none() {
                    reading.reading.events.set(Err("reading the events has failed".to_owned()));
                }
                if reading.reading.sums.get().is_none() {
                    reading.reading.sums.set(Duration::ZERO);
                }
            });
            let mut progress = |done: usize, all: usize| {
                task.done.store(done, Ordering::Relaxed);
                task.all.store(all, Ordering::Relaxed);
            };
            let is_closed = || reading.closed.is_set();
            let outcome = match growth {
                Some(growth) => {
                    let mut table = growth.table.lock().unwrap_or_else(PoisonError::into_inner);
                    reading.explorer.read_added_events(&mut table, limit, &mut progress, &is_closed)
                }
                None => reading.explorer.read_events(limit, &mut progress, &is_closed),
            };
            reading.reading.events.set(outcome.map_err(|error| error.to_string()));
            reading.end(&task);
            let task = reading.begin("adding up events");
            task.all.store(1, Ordering::Relaxed);
            let start = Instant::now();
            // It fails only if the file was closed.
            let _ = reading.explorer.prepare(&is_closed);
            reading.reading.sums.set(start.elapsed());
            reading.end(&task);
        });
        file
    }

    /// Creates a file without names and events.
    fn new(
        path: PathBuf,
        (explorer, own, modified_unix_ns): (Explorer, OwnCode, i128),
        host: &Arc<dyn Host>,
        reading: Arc<ReadingState>,
        growth: Option<Arc<Growth>>,
    ) -> Self {
        Self {
            path,
            number: OPENED.fetch_add(1, Ordering::Relaxed),
            explorer,
            modified_unix_ns,
            own,
            names: Promise::new(),
            host: Arc::clone(host),
            by_line: OnceLock::new(),
            reading,
            growth,
            shown_otherwise: Mutex::default(),
            selections: ResultCache::new(SELECTIONS_KEPT),
            rankings: ResultCache::new(RANKINGS_KEPT),
            answers_begun: AtomicUsize::new(0),
            answers_made: AtomicUsize::new(0),
            other_builds: OnceLock::new(),
            closed: Cancel::default(),
        }
    }

    /// The view with the language frames that a request asks for. It shares the read events, and
    /// gets its names at the first request.
    pub(crate) fn shown(self: &Arc<Self>, words: &FilterArguments) -> Arc<Self> {
        let wanted = words.lang_frames.map(LanguageFrames::from);
        let Some(wanted) = wanted.filter(|&wanted| wanted != self.explorer.language_frames()) else {
            return Arc::clone(self);
        };
        let mut known = self.shown_otherwise.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = known.iter().find(|file| file.explorer.language_frames() == wanted) {
            return Arc::clone(file);
        }
        let parts = (self.explorer.showing(wanted), self.host.own_code(self.trace()), self.modified_unix_ns);
        let reading = Arc::clone(&self.reading);
        let file = Arc::new(Self::new(self.path.clone(), parts, &self.host, reading, self.growth.clone()));
        known.push(Arc::clone(&file));
        drop(known);
        let naming = Arc::clone(&file);
        std::thread::spawn(move || {
            let task = naming.begin("finding names");
            let _done = OnDrop(|| naming.names.set(()));
            naming.explorer.name(&mut *naming.host.names(naming.trace()));
            naming.end(&task);
        });
        file
    }

    /// Lets the first view go before the reading of events on machines with few processors: it
    /// needs only totals and names.
    fn let_the_first_picture_go_before(&self) {
        let is_answered = self.explorer.needs_no_events(&Filter::default(), Found::default());
        self.names.wait_at_most(NAMES_FIRST);
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if !is_answered || self.names.get().is_none() || processors >= MANY_PROCESSORS {
            return;
        }
        let begin = Instant::now();
        // Relaxed: at worst the reading begins a moment later.
        let counts =
            || (self.answers_begun.load(Ordering::Relaxed), self.answers_made.load(Ordering::Relaxed));
        while !self.closed.is_set() {
            let (begun, made) = counts();
            let bound = if begun == 0 { FIRST_ASKED } else { FIRST_ASKED + FIRST_MADE };
            if (begun > 0 && begun == made) || begin.elapsed() > bound {
                return;
            }
            std::thread::sleep(FIRST_LOOK);
        }
    }

    /// Stops the reading: the file is not shown any more.
    pub(crate) fn close(&self) {
        drop(self.closed.guard());
    }

    fn begin(&self, what: &'static str) -> Arc<Task> {
        let task = Arc::new(Task { what, done: AtomicUsize::new(0), all: AtomicUsize::new(0) });
        self.reading.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&task));
        task
    }

    fn end(&self, task: &Arc<Task>) {
        let mut tasks = self.reading.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|known| !Arc::ptr_eq(known, task));
    }

    pub(crate) fn tasks(&self) -> Vec<Arc<Task>> {
        self.reading.tasks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn trace(&self) -> &Arc<Trace> {
        self.explorer.trace()
    }

    /// Parses a filter.
    pub(crate) fn filter(&self, words: &FilterArguments) -> Result<ReadFilter> {
        let read = || anyhow::Ok((words.filter(self.trace())?, words.cull_list()?));
        let (filter, cull) = read().map_err(|error| Error::bad("filter", format!("{error:#}")))?;
        filter.check()?;
        Ok(ReadFilter { filter, cull })
    }

    /// All stacks by names; `None` until the names are found. The explorer's own tree would stay
    /// without names if it were asked for before.
    pub(crate) fn named_tree(&self) -> Option<&SymbolTree> {
        self.names.get().map(|()| self.explorer.tree())
    }

    pub(crate) fn wait_for_names(&self, cancel: &Cancel) -> Result<()> {
        self.names.wait(cancel)
    }

    /// The explorer with names of functions, or with a name for each of their lines.
    pub(crate) fn named(&self, by_line: bool, cancel: &Cancel) -> Result<&Explorer> {
        self.wait_for_names(cancel)?;
        if !by_line {
            return Ok(&self.explorer);
        }
        Ok(self.by_line.get_or_init(|| {
            let task = self.begin("finding lines");
            let _done = OnDrop(|| self.end(&task));
            self.explorer.telling_lines(&mut *self.host.names(self.trace()))
        }))
    }

    pub(crate) fn wait_for_events(&self, cancel: &Cancel) -> Result<()> {
        self.reading.events.wait(cancel)?.map_err(|message| Error::Unusable {
            path: self.path.display().to_string(),
            message,
            offset: None,
        })
    }

    /// Time that adding up took; `None` while it runs.
    pub(crate) fn adding_up_took(&self) -> Option<Duration> {
        self.reading.sums.get()
    }

    /// Selection of a filter.
    pub(crate) fn select(
        &self,
        words: &FilterArguments,
        filter: &Filter,
        found: Found,
        cancel: &Cancel,
    ) -> Result<Arc<Selection>> {
        if !filter.takes_all_stacks() {
            self.wait_for_names(cancel)?;
        }
        if !self.explorer.needs_no_events(filter, found) {
            self.wait_for_events(cancel)?;
        }
        // Culling does not change the selection, unless the filter names innermost frames, which
        // culling determines.
        let key = match words.innermost_frames.as_slice() {
            [] => FilterArguments { cull_frames: Vec::new(), no_default_cull: false, ..words.clone() },
            _ => words.clone(),
        };
        // One pass over the table serves all panels: it tells threads apart in any case. Histograms
        // take time, and are included if requested or cached. Totals in the file's summary need no
        // pass.
        let has_table = self.explorer.table().is_some() && filter.at.is_none();
        let mut found = found;
        if has_table && !self.explorer.needs_no_events(filter, found) {
            let everything = (key.clone(), Found { threads: true, histograms: true });
            found = Found { threads: true, histograms: found.histograms || self.selections.has(&everything) };
        }
        self.selections.get(&(key, found), cancel, |is_cancelled| {
            Ok(self.explorer.select(filter, found, is_cancelled)?)
        })
    }

    /// Counts an answer of the first view: a table or flame graph that needs no events. The answer
    /// counts as made when the returned guard is dropped.
    pub(crate) fn answering(&self, filter: &Filter, found: Found) -> Option<impl Drop + use<'_>> {
        if !self.explorer.needs_no_events(filter, found) {
            return None;
        }
        self.answers_begun.fetch_add(1, Ordering::Relaxed);
        Some(OnDrop(|| {
            self.answers_made.fetch_add(1, Ordering::Relaxed);
        }))
    }

    /// Groups of a filter's selection, largest first.
    pub(crate) fn rank(
        &self,
        words: &FilterArguments,
        read: &ReadFilter,
        by: GroupBy,
        sort: Metric,
        cancel: &Cancel,
    ) -> Result<(Arc<Selection>, Arc<CachedRanking>)> {
        let found = Found { threads: by == GroupBy::Threads, histograms: false };
        let _answering = self.answering(&read.filter, found);
        let selection = self.select(words, &read.filter, found, cancel)?;
        let explorer = self.named(by == GroupBy::Lines, cancel)?;
        let ranking = self.rankings.get(&(words.clone(), by, sort), cancel, |_| {
            let ranking = explorer.rank(&selection, &read.cull, by, sort)?;
            let mut all = ranking.rest;
            ranking.groups.iter().for_each(|group| all += &group.amounts);
            Ok(CachedRanking { groups: ranking.groups, group_count: ranking.group_count, all })
        })?;
        Ok((selection, ranking))
    }

    /// Warnings about the recording, one line each, as `heapr report` prints them.
    pub(crate) fn warnings(&self, is_running: bool) -> Vec<String> {
        let mut warnings = heapr_export::warnings(self.trace(), self.explorer.event_damage(), is_running);
        warnings.extend(heapr_export::sampled_text(self.trace().sampling()));
        warnings.extend(self.other_builds.get_or_init(|| self.looked_up_builds()).clone());
        warnings
    }

    fn looked_up_builds(&self) -> Option<String> {
        let modules = self.trace().modules().iter();
        heapr_symbols::OtherBuilds::of(
            modules.map(|module| (module.path.as_str(), module.build_id.as_slice())),
        )
        .sentence()
    }

    /// Parts of the file that could not be used.
    pub(crate) fn damage(&self) -> Vec<heapr_trace::Damage> {
        let mut damage = self.trace().damage().to_vec();
        for one in self.explorer.event_damage() {
            if !damage.contains(one) {
                damage.push(*one);
            }
        }
        damage
    }
}

/// Parallelism with as many threads as processors.
fn processors() -> Parallelism {
    Parallelism::over(std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}
