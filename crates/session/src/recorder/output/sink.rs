//! Passes the recorder's events on to the ledger with its summary, and to the file.

use std::fs::File;
use std::io::BufWriter;

use heapr_ledger::{CourseTaker, Ledger, ProcessEnds, SummaryBuilder};
use heapr_trace::{
    Block, Event, HeapGraph, HeapId, ProcessIndex, SamplingPeriod, Summary, TraceWriter, Weight,
};

use crate::failure::Failure;
use crate::recorder::intake::samples::{self, Applied};
use crate::recorder::names::module_files::ModuleFiles;
use crate::recorder::output::next_file::NextFile;
use crate::sampling::Steering;
use crate::snapshots::native_snapshot::{ActiveSnapshot, SnapshotReport};
use crate::{Error, LoggingMode, SessionProperties};

/// Least number of events between two checkpoints.
const CHECKPOINT_EVENTS_MIN: u64 = 2_000_000;
/// Least number of events between two checkpoints per live block. Checkpoints then add at most
/// about a tenth to the file.
const CHECKPOINT_EVENTS_PER_BLOCK: u64 = 16;

/// Number of events that are buffered until the ledger and the file read them together: 16 KiB, a
/// third of the first-level cache.
const PENDING_MAX: usize = 256;

/// Ledger and file of a session.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) writer: TraceWriter<BufWriter<File>>,
    /// Files of the modules that were seen.
    pub(crate) module_files: ModuleFiles,
    pub(crate) ledger: Ledger,
    pub(crate) summary: SummaryBuilder,
    pub(crate) course: CourseTaker,
    /// Ends of processes that are not applied yet; `all_ends` has all ends.
    pub(crate) ends: ProcessEnds,
    all_ends: Vec<(u64, ProcessIndex)>,
    pub(crate) event_count: u64,
    pending: Vec<(Event, ProcessIndex)>,
    /// True if mappings are recorded as a heap; otherwise they only explain resident memory.
    records_mappings: bool,
    /// True if events go into the file, not only into the ledger.
    keeps_events: bool,
    pub(crate) events_since_checkpoint: u64,
    snapshot: Option<ActiveSnapshot>,
    /// True if all blocks of the snapshot are in the file.
    is_cut_out: bool,
    /// Size in bytes at which the file is full.
    most_bytes: Option<u64>,
    /// Time of the last event in a full file.
    full_at_ns: Option<u64>,
    /// Steering of the sampling rate; only in a sampling session.
    pub(crate) steering: Option<Steering>,
    /// Number of samples recorded.
    pub(crate) sample_count: u64,
    /// Samples that have ended and whose pages are still marked.
    pub(crate) unmarked: Vec<(ProcessIndex, u64)>,
    /// True if the page of a sample that the next event frees is still marked.
    pub(crate) is_marked: bool,
    events_after_full: u64,
    /// State of a session that writes files in turn.
    pub(crate) next_file: Option<NextFile>,
    pub(crate) last_ns: u64,
    /// First error of the file; after it events are counted but not written.
    pub(crate) write_error: Option<heapr_trace::Error>,
}

impl Sink {
    pub(crate) fn create(properties: &SessionProperties) -> Result<Self, Error> {
        let path = &properties.output;
        let next_file = NextFile::begin(properties)?;
        let create =
            if properties.sample.is_some() { TraceWriter::create_sampled } else { TraceWriter::create };
        let mut writer = create(path, properties.overwrite)
            .map_err(|source| Error::Output { path: path.clone(), source })?;
        if next_file.is_some() {
            writer.keep_definitions();
        }
        let mut summary = SummaryBuilder::new();
        if let Some(rate) = properties.sample {
            let mean_bytes = rate.first_mean_bytes();
            let period = SamplingPeriod { process: SamplingPeriod::EVERY_PROCESS, from_ns: 0, mean_bytes };
            summary.add_sampling(period);
            writer.sampling(period).map_err(|source| Error::Output { path: path.clone(), source })?;
        }
        let mut ledger = Ledger::new();
        ledger.keep_left();
        let mode = properties.mode;
        if let LoggingMode::Memory { bytes } = mode {
            writer.keep_window(bytes);
        }
        Ok(Self {
            writer,
            module_files: ModuleFiles::new(),
            ledger,
            summary,
            course: CourseTaker::default(),
            ends: ProcessEnds::default(),
            all_ends: Vec::new(),
            event_count: 0,
            pending: Vec::with_capacity(PENDING_MAX),
            records_mappings: properties.mmap,
            keeps_events: mode != LoggingMode::Snapshot,
            events_since_checkpoint: 0,
            snapshot: None,
            is_cut_out: false,
            most_bytes: properties.max_file_bytes,
            full_at_ns: None,
            steering: properties.sample.map(|rate| Steering::new(rate, properties.full_on_growth)),
            sample_count: 0,
            unmarked: Vec::new(),
            is_marked: false,
            events_after_full: 0,
            next_file,
            last_ns: 0,
            write_error: None,
        })
    }

    /// Processes the next event, unless the file is full. A full file has everything before one
    /// moment and nothing after, however much waited.
    #[inline(always)]
    pub(crate) fn event(&mut self, event: &Event, process: ProcessIndex) {
        if self.full_at_ns.is_some() {
            self.events_after_full += 1;
            return;
        }
        if self.steering.is_some() {
            return self.event_of_samples(event, process);
        }
        self.last_ns = event.time_ns;
        self.event_count += 1;
        self.events_since_checkpoint += 1;
        self.pending.push((*event, process));
        if self.pending.len() >= PENDING_MAX {
            self.take_pending();
        }
    }

    /// Path of [`Self::event`] in a sampling session: one event at a time, because only the ledger
    /// knows which belong into the file.
    #[cold]
    #[inline(never)]
    fn event_of_samples(&mut self, event: &Event, process: ProcessIndex) {
        self.last_ns = event.time_ns;
        self.end_processes_before(event.time_ns);
        if event.time_ns >= self.course.next_ns() {
            self.course.take(event.time_ns, &self.summary, |stack| self.writer.stack_parent(stack));
        }
        let mut ended = None;
        let applied = samples::apply(event, process, &mut self.ledger, &mut self.summary, &mut |block| {
            ended = Some(*block);
        });
        let is_sample = |block: &heapr_trace::Block| {
            self.summary.sampling().is_some_and(|sampling| sampling.is_sample(block))
        };
        if let Some(block) = ended.filter(|_| self.is_marked).filter(is_sample) {
            self.unmarked.push((process, block.address_avma));
        }
        if applied == Applied::Known {
            self.event_count += 1;
            self.events_since_checkpoint += 1;
            if self.keeps_events && self.write_error.is_none() {
                self.write_error = self.writer.event(event).err();
            }
            self.note_size();
        }
        if self.ledger.has_put_aside() {
            self.take_slice(0);
        }
    }

    /// Notes that the file has reached its largest size: the next one is begun soon, or the session
    /// is full.
    fn note_size(&mut self) {
        let Some(most_bytes) = self.most_bytes else { return };
        let written_bytes = self.writer.written_bytes();
        match &mut self.next_file {
            Some(next) => next.is_full = written_bytes >= next.most_bytes(most_bytes),
            None => self.full_at_ns = (written_bytes >= most_bytes).then_some(self.last_ns),
        }
    }

    /// Notes the mean by which a process's allocations are sampled from this time on.
    #[cold]
    pub(crate) fn note_mean(&mut self, process: ProcessIndex, from_ns: u64, mean_bytes: u64) {
        let period = SamplingPeriod { process, from_ns, mean_bytes };
        self.summary.add_sampling(period);
        let outcome = self.writer.sampling(period);
        self.keep(outcome);
    }

    /// Processes an event that may be of a mapping, which not every session records.
    #[inline(always)]
    pub(crate) fn event_of_any_heap(&mut self, event: &Event, process: ProcessIndex) {
        if event.heap != HeapId::MMAP || self.records_mappings {
            self.event(event, process);
        }
    }

    /// Passes buffered events on to the ledger and the file.
    pub(crate) fn take_pending(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_slice();
        while let Some(&(last, _)) = rest.last() {
            let (course_ns, end_ns) = (self.course.next_ns(), self.ends.next_ns());
            if last.time_ns < course_ns && last.time_ns <= end_ns {
                break;
            }
            let is_end = end_ns < course_ns;
            let is_before = |event: &Event| match is_end {
                true => event.time_ns <= end_ns,
                false => event.time_ns < course_ns,
            };
            let (before, after) = rest.split_at(rest.partition_point(|(event, _)| is_before(event)));
            self.ledger.apply_all(before, &mut self.summary);
            match after.first() {
                Some((event, _)) if is_end => self.end_processes_before(event.time_ns.min(course_ns)),
                Some((event, _)) => {
                    let time_ns = event.time_ns.min(end_ns);
                    self.course.take(time_ns, &self.summary, |stack| self.writer.stack_parent(stack));
                }
                None => {}
            }
            rest = after;
        }
        self.ledger.apply_all(rest, &mut self.summary);
        self.pending = pending;
        if self.keeps_events && self.write_error.is_none() {
            let outcome = self.writer.events(self.pending.iter().map(|(event, _)| event));
            self.write_error = outcome.err();
        }
        self.pending.clear();
        if self.full_at_ns.is_none() {
            self.note_size();
        }
        if self.ledger.has_put_aside() {
            self.take_slice(0);
        }
    }

    /// Notes that a process has ended.
    pub(crate) fn add_end(&mut self, end_ns: u64, process: ProcessIndex) {
        self.ends.add(end_ns, process);
        self.all_ends.push((end_ns, process));
    }

    /// Forgets the end of a process that is recorded again.
    pub(crate) fn forget_end(&mut self, process: ProcessIndex) {
        self.ends.forget(process);
        self.all_ends.retain(|&(_, ended)| ended != process);
    }

    /// Applies the ends before a time up to which all events are merged.
    #[inline(always)]
    pub(crate) fn end_processes_before(&mut self, time_ns: u64) {
        while let Some((end_ns, process)) = self.ends.take_before(time_ns) {
            if end_ns >= self.course.next_ns() {
                self.course.take(end_ns, &self.summary, |stack| self.writer.stack_parent(stack));
            }
            self.ledger.end_process(process, end_ns, &mut self.summary);
        }
    }

    /// Cuts: the blocks that are live at this moment form the snapshot. `reached_ns`: time before
    /// which no more events come.
    pub(crate) fn begin_snapshot(&mut self, mut snapshot: ActiveSnapshot, reached_ns: u64) {
        self.take_pending();
        self.last_ns = self.last_ns.max(reached_ns);
        snapshot.cut_at(self.last_ns, self.event_count);
        self.ledger.begin_cut();
        self.snapshot = Some(snapshot);
        self.is_cut_out = false;
    }

    /// Whether events go into the file.
    pub(crate) fn keeps_events(&self) -> bool {
        self.keeps_events
    }

    /// Whether the file has its largest size, after which events are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.full_at_ns.is_some()
    }

    /// Keeps the current snapshot open until its graph has come.
    pub(crate) fn await_graph(&mut self) {
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.await_graph();
        }
    }

    /// Writes the graph that the snapshot awaits.
    pub(crate) fn give_graph(&mut self, graph: Result<HeapGraph, Failure>) {
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.give_graph(graph, &mut self.writer);
        }
    }

    /// Whether the current snapshot needs more work than to wait for its graph.
    pub(crate) fn has_blocks_to_write(&self) -> bool {
        let awaits_graph = self.snapshot.as_ref().is_some_and(ActiveSnapshot::awaits_graph);
        self.snapshot.is_some() && !(awaits_graph && self.is_cut_out)
    }

    /// Whether a snapshot is being taken.
    pub(crate) fn has_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Writes some more groups of the snapshot. Returns the report after the last one.
    pub(crate) fn snapshot_slice(&mut self, group_count: usize) -> Option<SnapshotReport> {
        let is_out = self.take_slice(group_count);
        self.is_cut_out = is_out;
        if !is_out || self.snapshot.as_ref().is_some_and(ActiveSnapshot::awaits_graph) {
            return None;
        }
        let report = self.snapshot.take()?.finish(&mut self.writer);
        Some(report)
    }

    fn take_slice(&mut self, group_count: usize) -> bool {
        let Some(snapshot) = &mut self.snapshot else {
            self.ledger.abandon_cut();
            return false;
        };
        let (writer, sampling) = (&mut self.writer, self.summary.sampling());
        let weight = |block: &Block| {
            sampling.map_or(Weight::exact(block.size_bytes), |sampling| sampling.weight(block))
        };
        self.ledger.cut_slice(group_count, |block| snapshot.add(block, weight(block), writer))
    }

    /// Flushes the file, so that everything so far is readable after a crash.
    pub(crate) fn flush(&mut self) {
        self.take_pending();
        let outcome = self.writer.flush();
        self.keep(outcome);
    }

    /// Writes a checkpoint if one is due.
    pub(crate) fn checkpoint_if_due(&mut self) {
        let due = CHECKPOINT_EVENTS_MIN.max(self.ledger.live_count() as u64 * CHECKPOINT_EVENTS_PER_BLOCK);
        let is_due = self.keeps_events && self.events_since_checkpoint >= due;
        if !is_due && !self.writer.window_wants_checkpoint() {
            return;
        }
        self.events_since_checkpoint = 0;
        self.take_pending();
        let outcome = self.writer.checkpoint(self.last_ns, self.ledger.sorted_blocks());
        self.keep(outcome);
    }

    /// Stores the first error.
    pub(crate) fn keep(&mut self, outcome: heapr_trace::Result<()>) {
        if let Err(error) = outcome
            && self.write_error.is_none()
        {
            self.write_error = Some(error);
        }
    }

    /// Finishes the file and returns its summary.
    pub(crate) fn finish(mut self, duration_ns: u64) -> (Summary, Option<heapr_trace::Error>) {
        self.take_pending();
        if let Some(full_at_ns) = self.full_at_ns {
            for (name, value) in [("full_at_ns", full_at_ns), ("events_after_full", self.events_after_full)] {
                let outcome = self.writer.statistic(name, value);
                self.keep(outcome);
            }
        }
        let mut summary = match self.end_window() {
            Some(summary) => summary,
            None => {
                let mut summary = self.summary.finish();
                summary.course = self.course.finish();
                summary.event_count = match &self.next_file {
                    Some(next) => next.events_in_file(self.event_count),
                    None => self.event_count,
                };
                summary
            }
        };
        summary.duration_ns = duration_ns;
        if self.write_error.is_none()
            && let Err(error) = self.writer.finish(&summary)
        {
            self.write_error = Some(error);
        }
        (summary, self.write_error)
    }

    /// Writes a circular trace's window. Returns a summary of what the window contains, which is
    /// what readers will find.
    fn end_window(&mut self) -> Option<Summary> {
        let mut ledger = self.ledger.emptied();
        let mut summary =
            self.summary.sampling().map_or_else(SummaryBuilder::new, SummaryBuilder::of_samples);
        let mut ends = ProcessEnds::new(self.all_ends.clone());
        let ended = self.writer.end_window(|event, process| {
            while let Some((end_ns, process)) = ends.take_before(event.time_ns) {
                ledger.end_process(process, end_ns, &mut summary);
            }
            ledger.apply(event, process, &mut summary);
        });
        let window = match ended {
            Ok(window) => window?,
            Err(error) => {
                self.keep(Err(error));
                return None;
            }
        };
        if window.dropped_event_count > 0 {
            for (name, value) in
                [("window_start_ns", window.start_ns), ("events_before_window", window.dropped_event_count)]
            {
                let outcome = self.writer.statistic(name, value);
                self.keep(outcome);
            }
        }
        let mut summary = summary.finish();
        summary.event_count = window.event_count;
        Some(summary)
    }
}
