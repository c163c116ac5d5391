//! Reader of a trace: opening finds the chunks and reads the small tables; stacks, summary and
//! events are read on demand.

mod checksums;
mod event_reader;
mod known_processes;
mod opening;
mod stored_variances;

use std::sync::OnceLock;

pub use event_reader::{Checkpoint, EventReader};
use opening::damage_of;

use crate::chunk::{ChunkInfo, ChunkKind, ITEMS_PER_CHUNK};
use crate::course::{COURSE_STREAMS, take_course};
use crate::course_rests::{REST_STREAMS, take_rests};
use crate::error::{Damage, Error, Malformed, Result};
use crate::source::ReadAt;
use crate::stacks::{STACK_STREAMS, StackTable};
use crate::summary::take_summary;
use crate::*;

/// An opened trace.
pub struct Trace {
    pub(crate) source: Box<dyn ReadAt>,
    chunks: Vec<ChunkInfo>,
    damage: Vec<Damage>,
    system: System,
    session: Session,
    processes: Vec<Process>,
    threads: Vec<Thread>,
    modules: Vec<Module>,
    mappings: Vec<Mapping>,
    /// Mapping numbers by process and start, for look-ups.
    mapping_order: Vec<u32>,
    /// Highest end of a process's mappings up to this one, in the order of `mapping_order`.
    mapping_reach: Vec<u64>,
    markers: Vec<Marker>,
    rss_samples: Vec<RssSample>,
    resident_samples: Vec<ResidentSample>,
    memory_accounts: Vec<MemoryAccount>,
    memory_readings: Vec<MemoryReading>,
    losses: Vec<LossEntry>,
    statistics: Vec<Statistic>,
    snapshots: Vec<Snapshot>,
    heap_names: Vec<HeapName>,
    notices: Vec<Notice>,
    sampling: Sampling,
    /// Functions in order of their keys.
    functions: Vec<LanguageFunction>,
    language_frames: LanguageFrames,
    /// The stack tree, and the damage found in it.
    stacks: OnceLock<(StackTable, Vec<Damage>)>,
    /// The summary's totals by stack, decoded once; `None`: too many, or damaged.
    stack_totals: OnceLock<Option<Vec<StackTotals>>>,
    all_damage: OnceLock<Vec<Damage>>,
    is_complete: bool,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Trace").field("chunks", &self.chunks.len()).finish_non_exhaustive()
    }
}

/// Largest number of start addresses that are examined below an address. Modules that overlap in
/// turn begin close together.
const OVERLAPS_MAX: usize = 8;

/// Largest number of totals by stack that stay in memory, 144 bytes each. More are decoded anew
/// for each pass.
const TOTALS_IN_MEMORY_MAX: usize = 1 << 14;

impl Trace {
    /// Returns the machine.
    #[must_use]
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Returns the session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The process images, by index: one for every number in the trace, and usually at least one.
    /// Unknown fields are 0 or empty.
    #[must_use]
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// The threads, by index.
    #[must_use]
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The process of a thread.
    #[inline]
    #[must_use]
    pub fn process_of(&self, thread: ThreadIndex) -> ProcessIndex {
        self.threads.get(thread.0 as usize).map_or(ProcessIndex(0), |thread| thread.process)
    }

    /// The modules, by index.
    #[must_use]
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The mappings, by number.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Returns the user's markers.
    #[must_use]
    pub fn markers(&self) -> &[Marker] {
        &self.markers
    }

    /// The samples of the resident set.
    #[must_use]
    pub fn rss_samples(&self) -> &[RssSample] {
        &self.rss_samples
    }

    /// The samples of the resident set by kind of page, in order of time; empty for older files.
    #[must_use]
    pub fn resident_samples(&self) -> &[ResidentSample] {
        &self.resident_samples
    }

    /// The accounts of the processes' own memory.
    pub fn memory_accounts(&self) -> &[MemoryAccount] {
        &self.memory_accounts
    }

    /// Readings of processes' mappings, in order of time.
    #[must_use]
    pub fn memory_readings(&self) -> &[MemoryReading] {
        &self.memory_readings
    }

    /// The losses, by process and thread.
    #[must_use]
    pub fn losses(&self) -> &[LossEntry] {
        &self.losses
    }

    /// Sum of all losses over processes and threads. Their entries are disjoint.
    #[must_use]
    pub fn whole_loss(&self) -> Loss {
        self.losses.iter().fold(Loss::default(), |sum, LossEntry { loss, .. }| Loss {
            events_lost: sum.events_lost.saturating_add(loss.events_lost),
            stacks_lost: sum.stacks_lost.saturating_add(loss.stacks_lost),
            events_late: sum.events_late.saturating_add(loss.events_late),
            records_invalid: sum.records_invalid.saturating_add(loss.records_invalid),
            processes_refused: sum.processes_refused.saturating_add(loss.processes_refused),
        })
    }

    /// Numbers about the recording.
    #[must_use]
    pub fn statistics(&self) -> &[Statistic] {
        &self.statistics
    }

    /// The snapshots of live blocks, in the order of their moments;
    /// [`Trace::for_each_snapshot_block`] reads the blocks.
    #[must_use]
    pub fn snapshots(&self) -> &[Snapshot] {
        &self.snapshots
    }

    /// Names of the heaps that programs register themselves.
    #[must_use]
    pub fn heap_names(&self) -> &[HeapName] {
        &self.heap_names
    }

    /// Remarks about the recordings of single processes.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The sampling of allocations; [`Sampling::is_exact`] if all are recorded.
    #[must_use]
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// Returns the trace with these amounts marked as unknown.
    #[must_use]
    pub fn with_untold(self, untold: Untold) -> Self {
        Self { sampling: self.sampling.clone().with_untold(untold), ..self }
    }

    /// Whether the amounts are estimates.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        !self.sampling.is_exact()
    }

    /// Functions that frames of languages refer to.
    #[must_use]
    pub fn functions(&self) -> &[LanguageFunction] {
        &self.functions
    }

    /// Choice of the frames to show to readers of the trace.
    #[must_use]
    pub fn language_frames(&self) -> LanguageFrames {
        self.language_frames
    }

    /// Returns the trace with another choice of the frames to show.
    #[must_use]
    pub fn with_language_frames(self, language_frames: LanguageFrames) -> Self {
        Self { language_frames, ..self }
    }

    /// The function of a frame of a language, if the file has it.
    #[must_use]
    pub fn function(&self, process: ProcessIndex, place: LanguagePlace) -> Option<&LanguageFunction> {
        let key = (process, place.language, place.function);
        let found = self.functions.binary_search_by_key(&key, LanguageFunction::key).ok()?;
        self.functions.get(found)
    }

    /// Damage to the file's structure, the tables and the stack tree. Events are read later: see
    /// [`EventReader::damage`], or [`Trace::check`] for all chunks.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        self.all_damage
            .get_or_init(|| [self.damage.as_slice(), &self.loaded_stacks(self.processes.len()).1].concat())
    }

    /// Whether the file was finished in good order.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The chunks, in the order of the file.
    #[must_use]
    pub fn chunks(&self) -> &[ChunkInfo] {
        &self.chunks
    }

    /// Number of events.
    #[must_use]
    pub fn event_count(&self) -> u64 {
        self.of_kind(ChunkKind::Events).map(|chunk| u64::from(chunk.item_count)).sum()
    }

    /// Time from the session's start to its end, or to the last event of an unfinished file.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.last_ns).max().unwrap_or(0)
    }

    /// The stack tree; read at the first call. Unknown frames replace the nodes of a damaged chunk,
    /// so that later nodes have the right numbers; [`Trace::damage`] reports it.
    pub fn stacks(&self) -> &StackTable {
        &self.loaded_stacks(self.processes.len()).0
    }

    /// The stack tree, loaded at the first call. Nodes of processes from `process_limit` on are
    /// damage.
    fn loaded_stacks(&self, process_limit: usize) -> &(StackTable, Vec<Damage>) {
        self.stacks.get_or_init(|| {
            let mut table = StackTable::default();
            let mut damage = Vec::new();
            for info in self.of_kind(ChunkKind::Stacks) {
                let count = info.item_count as usize;
                let decoded = self.streams::<STACK_STREAMS>(info).and_then(|streams| {
                    table
                        .decode(&streams, count, process_limit)
                        .map_err(|Malformed(what)| Error::Damaged { offset: info.offset, what })
                });
                if let Err(error) = decoded {
                    damage.push(damage_of(info, &error));
                    table.push_unknown(count.min(ITEMS_PER_CHUNK));
                }
            }
            (table, damage)
        })
    }

    /// The module that was mapped at an address at a time, and the address as the module's file
    /// states it.
    #[must_use]
    pub fn locate(
        &self,
        process: ProcessIndex,
        address_avma: u64,
        time_ns: u64,
    ) -> Option<(ModuleIndex, u64)> {
        let mapping_at = |place: usize| &self.mappings[self.mapping_order[place] as usize];
        // Index behind the mappings that begin at or before the address. They are examined by
        // start, from the highest down.
        let mut end = self.mapping_order.partition_point(|&number| {
            let mapping = &self.mappings[number as usize];
            (mapping.process, mapping.start_avma) <= (process, address_avma)
        });
        let mut found: Option<&Mapping> = None;
        for _ in 0..OVERLAPS_MAX {
            let Some(last) = end
                .checked_sub(1)
                .filter(|&place| self.mapping_reach[place] > address_avma)
                .map(mapping_at)
                .filter(|last| last.process == process)
            else {
                break;
            };
            let start_avma = last.start_avma;
            let start = self.mapping_order[..end].partition_point(|&number| {
                let mapping = &self.mappings[number as usize];
                (mapping.process, mapping.start_avma) < (process, start_avma)
            });
            // Of the mappings with one start the last that was loaded by then.
            let loaded = start
                + self.mapping_order[start..end]
                    .partition_point(|&number| self.mappings[number as usize].loaded_ns <= time_ns);
            let candidate = (start < loaded).then(|| mapping_at(loaded - 1));
            let is_later = |mapping: &&Mapping| found.is_none_or(|known| known.loaded_ns < mapping.loaded_ns);
            if let Some(mapping) =
                candidate.filter(|mapping| address_avma < mapping.end_avma).filter(is_later)
            {
                found = Some(mapping);
            }
            end = start;
        }
        let mapping = found?;
        Some((mapping.module, address_avma.wrapping_sub(mapping.bias_avma)))
    }

    /// The summary; `None` if the file was not finished.
    ///
    /// # Errors
    /// The summary is damaged.
    pub fn summary(&self) -> Result<Option<Summary>> {
        let Some(mut summary) = self.summary_totals()? else { return Ok(None) };
        let counts = self.of_kind(ChunkKind::StackTotals).map(|info| info.item_count as usize);
        // Counts are claims until the chunks are read: reserve for at most one chunk.
        summary.by_stack.reserve(counts.sum::<usize>().min(1 << 16));
        self.for_each_stack_totals(|totals| summary.by_stack.push(totals))?;
        summary.by_stack.shrink_to_fit();
        Ok(Some(summary))
    }

    /// The summary without the totals by stack, which [`Trace::for_each_stack_totals`] reads.
    ///
    /// # Errors
    /// The summary is damaged.
    pub fn summary_totals(&self) -> Result<Option<Summary>> {
        let Some(info) = self.of_kind(ChunkKind::Summary).next_back() else { return Ok(None) };
        let [stream] = self.streams::<1>(info)?;
        let mut summary = take_summary(&stream, self.processes.len())
            .map_err(|Malformed(what)| Error::Damaged { offset: info.offset, what })?;
        self.add_totals_variances(&mut summary)?;
        Ok(Some(summary))
    }

    /// Passes the summary's totals by stack to `visit` in their order (stack, heap). Only few are
    /// held in memory.
    ///
    /// # Errors
    /// The totals are damaged; those before the damage were visited.
    pub fn for_each_stack_totals(&self, visit: impl FnMut(StackTotals)) -> Result<()> {
        let in_memory = self.stack_totals.get_or_init(|| {
            let counts = self.of_kind(ChunkKind::StackTotals).map(|info| info.item_count as usize);
            let count = counts.fold(0, usize::saturating_add);
            if count > TOTALS_IN_MEMORY_MAX {
                return None;
            }
            let mut all = Vec::with_capacity(count);
            self.decode_stack_totals(|totals| all.push(totals)).ok().map(|()| all)
        });
        match in_memory {
            Some(all) => {
                all.iter().copied().for_each(visit);
                Ok(())
            }
            None => self.decode_stack_totals(visit),
        }
    }

    /// The course of live memory; `None` if the file has no course.
    ///
    /// # Errors
    /// The course is damaged.
    pub fn course(&self) -> Result<Option<Course>> {
        let Some(info) = self.of_kind(ChunkKind::Course).next_back() else { return Ok(None) };
        let streams = self.streams::<COURSE_STREAMS>(info)?;
        let mut course = take_course(&streams, info.item_count as usize, self.stacks().len())
            .map_err(|Malformed(what)| Error::Damaged { offset: info.offset, what })?;
        self.add_course_variances(&mut course)?;
        self.add_course_rests(&mut course)?;
        Ok(Some(course))
    }

    /// Adds the sums of small stacks to a course. A course without them, or with damaged ones,
    /// tells the large stacks alone.
    fn add_course_rests(&self, course: &mut Course) -> Result<()> {
        let is_of_it = |info: &&ChunkInfo| info.item_count as usize == course.moments.len();
        let Some(info) = self.of_kind(ChunkKind::CourseRests).next_back().filter(is_of_it) else {
            return Ok(());
        };
        let outcome = match self.streams::<REST_STREAMS>(info) {
            Ok(streams) => take_rests(&streams, course, (self.stacks().len(), self.processes.len())),
            Err(Error::Damaged { what, .. }) => Err(Malformed(what)),
            Err(error) => return Err(error),
        };
        if outcome.is_err() {
            course.moments.iter_mut().for_each(|moment| moment.rests.clear());
        }
        Ok(())
    }

    /// The last embedded bundle of symbols.
    ///
    /// # Errors
    /// The bundle is damaged.
    pub fn embedded_symbols(&self) -> Result<Option<Vec<u8>>> {
        let Some(info) = self.of_kind(ChunkKind::Symbols).next_back() else { return Ok(None) };
        self.streams::<1>(info).map(|[stream]| Some(stream))
    }
}
