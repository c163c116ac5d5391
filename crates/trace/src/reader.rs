//! Reading a trace: the chunks are found, the small tables read; stacks, summary and events on demand.

use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;

use crate::blocks::{BLOCK_STREAMS, take_blocks};
use crate::bytes::Take;
use crate::chunk::{
    CHUNK_HEADER_BYTES, CHUNK_MAGIC, ChunkHeader, ChunkInfo, ChunkKind, FILE_HEADER_BYTES, FILE_MAGIC,
    FORMAT_VERSION, ITEMS_PER_CHUNK, TRAILER_BYTES, TRAILER_MAGIC, index_offset,
};
use crate::error::{Damage, Error, Malformed, Result};
use crate::events::{EVENT_STREAMS, EventDecoder};
use crate::payload::unpack;
use crate::source::{ReadAt, read_up_to};
use crate::stacks::{STACK_STREAMS, StackTable};
use crate::summary::{TOTALS_STREAMS, take_stack_totals, take_summary};
use crate::tables::{Entry, take_all};
use crate::*;

/// An opened trace.
pub struct Trace {
    source: Box<dyn ReadAt>,
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
    markers: Vec<Marker>,
    rss_samples: Vec<RssSample>,
    losses: Vec<LossEntry>,
    statistics: Vec<Statistic>,
    /// The tree, and what of it could not be used.
    stacks: OnceLock<(StackTable, Vec<Damage>)>,
    all_damage: OnceLock<Vec<Damage>>,
    is_complete: bool,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Trace").field("chunks", &self.chunks.len()).finish_non_exhaustive()
    }
}

/// The live blocks at a time.
#[derive(Debug)]
pub struct Checkpoint {
    /// When: all events up to and including this time have happened.
    pub time_ns: u64,
    /// Number of events before it.
    pub event_index: u64,
    /// The blocks, in order of process, heap and address.
    pub blocks: Vec<Block>,
}

/// Starts of mappings that are looked at below an address: modules that overlap in turn begin close together.
const OVERLAPS_MAX: usize = 8;

/// Indices are dense: one that lies further beyond the number of entries than a lost chunk explains is not believed.
const INDEX_GAP_MAX: usize = 1 << 16;
/// All that stays in memory may unpack to this many times the file's size. The writer's own files reach 10.
const EXPANSION_MAX: u64 = 64;
/// Or to this much: small files of deep recursions shrink by more than a thousand.
const EXPANSION_FREE_BYTES: u64 = 32 << 20;

impl Trace {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read, is empty, is no trace, or is from a newer version. Damage inside is no error: see
    /// [`Trace::damage`].
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|source| Error::Io { action: "opening the file", source })?;
        Self::from_source(Box::new(file))
    }

    /// Opens whatever can be read.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn from_source(source: Box<dyn ReadAt>) -> Result<Self> {
        let size = source.size_bytes().map_err(|source| Error::Io { action: "reading the trace", source })?;
        check_header(&*source)?;
        let mut trace = Self {
            source,
            chunks: Vec::new(),
            damage: Vec::new(),
            system: System::default(),
            session: Session::default(),
            processes: Vec::new(),
            threads: Vec::new(),
            modules: Vec::new(),
            mappings: Vec::new(),
            mapping_order: Vec::new(),
            markers: Vec::new(),
            rss_samples: Vec::new(),
            losses: Vec::new(),
            statistics: Vec::new(),
            stacks: OnceLock::new(),
            all_damage: OnceLock::new(),
            is_complete: true,
        };
        match trace.read_index(size)? {
            Some(chunks) => trace.chunks = chunks,
            None => {
                trace.is_complete = false;
                trace.scan(size)?;
            }
        }
        trace.leave_out_what_swells(size);
        trace.read_tables();
        Ok(trace)
    }

    /// Reads the index that the trailer points to, if both are sound.
    fn read_index(&self, size: u64) -> Result<Option<Vec<ChunkInfo>>> {
        let mut bytes = [0; TRAILER_BYTES];
        let Some(at) = size.checked_sub(TRAILER_BYTES as u64) else { return Ok(None) };
        if read_up_to(&*self.source, &mut bytes, at)? < TRAILER_BYTES {
            return Ok(None);
        }
        let Some(offset) = index_offset(&bytes) else { return Ok(None) };
        let Some(info) = self.header_at(offset)?.map(|header| header.info(offset)) else { return Ok(None) };
        if info.kind != Some(ChunkKind::Index) {
            return Ok(None);
        }
        let Ok([stream]) = self.streams::<1>(&info) else { return Ok(None) };
        Ok(take_index(&stream, info.item_count as usize, size).ok())
    }

    /// The chunk header at `offset`, if one is there and sound.
    fn header_at(&self, offset: u64) -> Result<Option<ChunkHeader>> {
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        if read_up_to(&*self.source, &mut bytes, offset)? < CHUNK_HEADER_BYTES {
            return Ok(None);
        }
        Ok(ChunkHeader::from_bytes(&bytes).ok())
    }

    /// Finds the chunks one after the other; what is between sound ones is damage.
    fn scan(&mut self, size: u64) -> Result<()> {
        let mut offset = FILE_HEADER_BYTES as u64;
        while offset < size {
            let Some(header) = self.header_at(offset)? else {
                let next = self.next_chunk(offset + 1, size)?;
                if !self.is_trailer(offset, next)? {
                    self.damage.push(Damage { offset, bytes: next - offset, what: "no chunk begins here" });
                }
                offset = next;
                continue;
            };
            let end = offset + CHUNK_HEADER_BYTES as u64 + u64::from(header.stored_bytes);
            if end > size {
                self.damage.push(Damage {
                    offset,
                    bytes: size - offset,
                    what: "the file ends within this chunk",
                });
                break;
            }
            if header.kind != ChunkKind::Index as u16 {
                self.chunks.push(header.info(offset));
            }
            offset = end;
        }
        Ok(())
    }

    fn is_trailer(&self, offset: u64, next: u64) -> Result<bool> {
        let mut bytes = [0; TRAILER_BYTES];
        let count = read_up_to(&*self.source, &mut bytes, offset)?;
        Ok(count == TRAILER_BYTES && bytes[..8] == TRAILER_MAGIC && next == offset + TRAILER_BYTES as u64)
    }

    /// Offset of the next sound chunk header at or behind `from`, or the file's end. Each byte is read once: a file full of
    /// magics with nothing behind them is passed as fast as any other.
    fn next_chunk(&self, from: u64, size: u64) -> Result<u64> {
        let mut at = from;
        let mut window = vec![0; 1 << 16];
        while at < size {
            let count = read_up_to(&*self.source, &mut window, at)?;
            if count < CHUNK_HEADER_BYTES {
                break;
            }
            let is_header = |bytes: &[u8]| {
                bytes.starts_with(&CHUNK_MAGIC)
                    && bytes.try_into().is_ok_and(|bytes| ChunkHeader::from_bytes(bytes).is_ok())
            };
            if let Some(place) = window[..count].windows(CHUNK_HEADER_BYTES).position(is_header) {
                return Ok(at + place as u64);
            }
            // The last bytes may be the beginning of a header.
            at += (count - (CHUNK_HEADER_BYTES - 1)) as u64;
        }
        Ok(size)
    }

    /// Leaves out the chunks whose contents stay in memory once they claim, all together, to unpack to more than a file of
    /// this size can hold: a few kilobytes of zstd must not ask for gigabytes. Chunks of events are read one by one.
    fn leave_out_what_swells(&mut self, size: u64) {
        let mut budget = size.saturating_mul(EXPANSION_MAX).saturating_add(EXPANSION_FREE_BYTES);
        let damage = &mut self.damage;
        self.chunks.retain(|chunk| {
            if chunk.kind.is_none_or(|kind| kind == ChunkKind::Events) {
                return true;
            }
            let left = budget.checked_sub(u64::from(chunk.raw_bytes));
            budget = left.unwrap_or(budget);
            if left.is_none() {
                let bytes = CHUNK_HEADER_BYTES as u64 + u64::from(chunk.stored_bytes);
                let what = "it unpacks to more than a file of this size holds";
                damage.push(Damage { offset: chunk.offset, bytes, what });
            }
            left.is_some()
        });
    }

    /// The unpacked streams of a chunk.
    fn streams<const N: usize>(&self, info: &ChunkInfo) -> Result<[Vec<u8>; N]> {
        let damaged = |what| Error::Damaged { offset: info.offset, what };
        let header = self.header_at(info.offset)?.ok_or(damaged("no chunk begins here"))?;
        if header.info(info.offset) != *info {
            return Err(damaged("the chunk is not as the index says"));
        }
        let mut payload = vec![0; header.stored_bytes as usize];
        if read_up_to(&*self.source, &mut payload, info.offset + CHUNK_HEADER_BYTES as u64)? < payload.len() {
            return Err(damaged("the file ends within this chunk"));
        }
        // A fuzzer would never get past a checksum.
        if !cfg!(fuzzing) && crc32fast::hash(&payload) != header.payload_crc {
            return Err(damaged("the chunk's checksum is wrong"));
        }
        unpack(&payload, header.raw_bytes).map_err(|Malformed(what)| damaged(what))
    }

    /// The entries of all chunks of a kind; damaged chunks are noted and left out.
    fn entries<T: Entry>(&mut self, kind: ChunkKind) -> Vec<T> {
        let mut all = Vec::new();
        let chunks: Vec<ChunkInfo> = self.of_kind(kind).copied().collect();
        for info in chunks {
            let entries = self.streams::<1>(&info).and_then(|[stream]| {
                take_all(&stream, info.item_count as usize)
                    .map_err(|Malformed(what)| Error::Damaged { offset: info.offset, what })
            });
            match entries {
                Ok(entries) => all.extend::<Vec<T>>(entries),
                Err(error) => self.note(&info, &error),
            }
        }
        all
    }

    fn note(&mut self, info: &ChunkInfo, error: &Error) {
        self.damage.push(damage_of(info, error));
    }

    fn of_kind(&self, kind: ChunkKind) -> impl DoubleEndedIterator<Item = &ChunkInfo> {
        self.chunks.iter().filter(move |chunk| chunk.kind == Some(kind))
    }

    fn read_tables(&mut self) {
        self.system = self.entries(ChunkKind::System).pop().unwrap_or_default();
        self.session = self.entries(ChunkKind::Session).pop().unwrap_or_default();
        let unknown_process = Process {
            pid: 0,
            parent_pid: 0,
            origin: ProcessOrigin::Exec,
            start_ns: 0,
            end_ns: None,
            executable: String::new(),
            command_line: Vec::new(),
            exit_status: None,
        };
        let entries = self.entries::<(ProcessIndex, Process)>(ChunkKind::Processes);
        let limit = entries.len() * 2 + INDEX_GAP_MAX;
        for (index, process) in entries {
            place(&mut self.processes, index.0, process, &unknown_process, limit);
        }
        let unknown_thread =
            Thread { process: ProcessIndex(0), tid: 0, name: String::new(), start_ns: 0, end_ns: None };
        let entries = self.entries::<(ThreadIndex, Thread)>(ChunkKind::Threads);
        let limit = entries.len() * 2 + INDEX_GAP_MAX;
        for (index, thread) in entries {
            place(&mut self.threads, index.0, thread, &unknown_thread, limit);
        }
        self.modules = self.entries(ChunkKind::Modules);
        let unknown_mapping = Mapping {
            process: ProcessIndex(0),
            module: ModuleIndex(0),
            start_avma: 0,
            end_avma: 0,
            bias_avma: 0,
            loaded_ns: 0,
            unloaded_ns: 0,
        };
        let entries = self.entries::<(u32, Mapping)>(ChunkKind::Mappings);
        let limit = entries.len() * 2 + INDEX_GAP_MAX;
        for (number, mapping) in entries {
            place(&mut self.mappings, number, mapping, &unknown_mapping, limit);
        }
        self.mapping_order = (0..self.mappings.len() as u32).collect();
        let mappings = &self.mappings;
        self.mapping_order.sort_by_key(|&number| {
            let mapping = &mappings[number as usize];
            (mapping.process, mapping.start_avma, mapping.loaded_ns)
        });
        self.markers = self.entries(ChunkKind::Markers);
        self.rss_samples = self.entries(ChunkKind::RssSamples);
        self.losses = self.entries(ChunkKind::Losses);
        self.statistics = self.entries(ChunkKind::Statistics);
    }

    /// The machine.
    #[must_use]
    pub fn system(&self) -> &System {
        &self.system
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The process images, by index.
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

    /// The user's markers.
    #[must_use]
    pub fn markers(&self) -> &[Marker] {
        &self.markers
    }

    /// The samples of the resident set.
    #[must_use]
    pub fn rss_samples(&self) -> &[RssSample] {
        &self.rss_samples
    }

    /// What was lost.
    #[must_use]
    pub fn losses(&self) -> &[LossEntry] {
        &self.losses
    }

    /// Numbers about the recording.
    #[must_use]
    pub fn statistics(&self) -> &[Statistic] {
        &self.statistics
    }

    /// What of the frame, the tables and the stack tree could not be used. Events are read later: see
    /// [`EventReader::damage`].
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        self.all_damage.get_or_init(|| [self.damage.as_slice(), &self.loaded_stacks().1].concat())
    }

    /// Whether the file was ended in good order.
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

    /// From the session's start to its end, or to the last event of a file that was not ended.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.last_ns).max().unwrap_or(0)
    }

    /// The stack tree; read at the first call. In place of the nodes of a damaged chunk stand unknown frames, so that
    /// those after it keep their numbers; [`Trace::damage`] tells.
    pub fn stacks(&self) -> &StackTable {
        &self.loaded_stacks().0
    }

    fn loaded_stacks(&self) -> &(StackTable, Vec<Damage>) {
        self.stacks.get_or_init(|| {
            let mut table = StackTable::default();
            let mut damage = Vec::new();
            for info in self.of_kind(ChunkKind::Stacks) {
                let count = info.item_count as usize;
                let decoded = self.streams::<STACK_STREAMS>(info).and_then(|streams| {
                    table
                        .decode(&streams, count)
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

    /// The module and the address in it that a running address belonged to.
    #[must_use]
    pub fn locate(
        &self,
        process: ProcessIndex,
        address_avma: u64,
        time_ns: u64,
    ) -> Option<(ModuleIndex, u64)> {
        let mapping_at = |place: usize| &self.mappings[self.mapping_order[place] as usize];
        // Places of the mappings that begin at or before the address; looked at by their start, from the highest down.
        let mut end = self.mapping_order.partition_point(|&number| {
            let mapping = &self.mappings[number as usize];
            (mapping.process, mapping.start_avma) <= (process, address_avma)
        });
        let mut found: Option<&Mapping> = None;
        for _ in 0..OVERLAPS_MAX {
            let Some(last) = end.checked_sub(1).map(mapping_at).filter(|last| last.process == process) else {
                break;
            };
            let start_avma = last.start_avma;
            let start = self.mapping_order[..end].partition_point(|&number| {
                let mapping = &self.mappings[number as usize];
                (mapping.process, mapping.start_avma) < (process, start_avma)
            });
            // Of those with one start the last that was loaded by then.
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

    /// The summary; `None` if the file was not ended.
    ///
    /// # Errors
    /// It is damaged.
    pub fn summary(&self) -> Result<Option<Summary>> {
        let Some(mut summary) = self.summary_totals()? else { return Ok(None) };
        let counts = self.of_kind(ChunkKind::StackTotals).map(|info| info.item_count as usize);
        // Counts are claims until the chunks are read: a chunk's worth at most is believed at once.
        summary.by_stack.reserve(counts.sum::<usize>().min(1 << 16));
        self.for_each_stack_totals(|totals| summary.by_stack.push(totals))?;
        Ok(Some(summary))
    }

    /// The summary without the totals by stack, which [`Trace::for_each_stack_totals`] shows.
    ///
    /// # Errors
    /// It is damaged.
    pub fn summary_totals(&self) -> Result<Option<Summary>> {
        let Some(info) = self.of_kind(ChunkKind::Summary).next_back() else { return Ok(None) };
        let [stream] = self.streams::<1>(info)?;
        let summary =
            take_summary(&stream).map_err(|Malformed(what)| Error::Damaged { offset: info.offset, what })?;
        Ok(Some(summary))
    }

    /// Shows the summary's totals by stack in their order (stack, heap), without holding all of them in memory.
    ///
    /// # Errors
    /// They are damaged; those before the damage were shown.
    pub fn for_each_stack_totals(&self, mut visit: impl FnMut(StackTotals)) -> Result<()> {
        let stack_count = self.stacks().len();
        for info in self.of_kind(ChunkKind::StackTotals) {
            let streams = self.streams::<TOTALS_STREAMS>(info)?;
            take_stack_totals(&streams, info.item_count as usize, stack_count, &mut visit)
                .map_err(|Malformed(what)| Error::Damaged { offset: info.offset, what })?;
        }
        Ok(())
    }

    /// The events of `from_ns..to_ns`, chunk by chunk; only chunks that hold some of them are read.
    #[must_use]
    pub fn events(&self, from_ns: u64, to_ns: u64) -> EventReader<'_> {
        let chunks = self
            .of_kind(ChunkKind::Events)
            .filter(|chunk| chunk.last_ns >= from_ns && chunk.first_ns < to_ns)
            .copied()
            .collect();
        EventReader {
            trace: self,
            chunks,
            next: 0,
            from_ns,
            to_ns,
            decoder: EventDecoder::new(),
            events: Vec::new(),
            damage: Vec::new(),
        }
    }

    /// The events after a checkpoint and before `to_ns`. A checkpoint lies between two chunks of events: those of the
    /// same nanosecond before it are not among them.
    #[must_use]
    pub fn events_after(&self, checkpoint: &Checkpoint, to_ns: u64) -> EventReader<'_> {
        let mut before = 0_u64;
        let mut reader = self.events(0, to_ns);
        let is_after = |chunk: &ChunkInfo| {
            let is_after = before >= checkpoint.event_index;
            before += u64::from(chunk.item_count);
            is_after
        };
        reader.chunks.retain(is_after);
        reader
    }

    /// The last checkpoint at or before a time.
    ///
    /// # Errors
    /// It is damaged.
    pub fn checkpoint_before(&self, time_ns: u64) -> Result<Option<Checkpoint>> {
        let is_part = |chunk: &ChunkInfo| chunk.kind == Some(ChunkKind::Checkpoint);
        let mut end = self.chunks.len();
        // From the last back: one that is not whole (the file ends within it) is passed over.
        while let Some(last) =
            self.chunks[..end].iter().rposition(|chunk| is_part(chunk) && chunk.first_ns <= time_ns)
        {
            let at_ns = self.chunks[last].first_ns;
            let before =
                self.chunks[..last].iter().rposition(|chunk| !is_part(chunk) || chunk.first_ns != at_ns);
            let first = before.map_or(0, |before| before + 1);
            if let Some((begin, blocks)) = self.blocks_of(first, last)? {
                let events =
                    self.chunks[..begin].iter().filter(|chunk| chunk.kind == Some(ChunkKind::Events));
                let event_index = events.map(|chunk| u64::from(chunk.item_count)).sum();
                return Ok(Some(Checkpoint { time_ns: at_ns, event_index, blocks }));
            }
            end = first;
        }
        Ok(None)
    }

    /// The last checkpoint in these chunks of one time, with the place of its first chunk; `None` if parts are missing.
    fn blocks_of(&self, first: usize, last: usize) -> Result<Option<(usize, Vec<Block>)>> {
        let mut blocks = Vec::new();
        let (mut begin, mut expected, mut is_whole) = (first, 0, false);
        for (place, info) in self.chunks.iter().enumerate().take(last + 1).skip(first) {
            let streams = self.streams::<BLOCK_STREAMS>(info)?;
            let known = blocks.len();
            let (part, is_last) = take_blocks(&streams, info.item_count as usize, info.first_ns, &mut blocks)
                .map_err(|Malformed(what)| Error::Damaged { offset: info.offset, what })?;
            if part == 0 {
                // A later one of the same nanosecond.
                blocks.drain(..known);
                (begin, expected) = (place, 0);
            }
            is_whole = is_last && part == expected;
            expected = expected.wrapping_add(1);
        }
        Ok(is_whole.then_some((begin, blocks)))
    }

    /// The last embedded bundle of symbols.
    ///
    /// # Errors
    /// It is damaged.
    pub fn embedded_symbols(&self) -> Result<Option<Vec<u8>>> {
        let Some(info) = self.of_kind(ChunkKind::Symbols).next_back() else { return Ok(None) };
        self.streams::<1>(info).map(|[stream]| Some(stream))
    }
}

fn damage_of(info: &ChunkInfo, error: &Error) -> Damage {
    let what = match error {
        Error::Damaged { what, .. } => what,
        _ => "the chunk cannot be read",
    };
    Damage { offset: info.offset, bytes: CHUNK_HEADER_BYTES as u64 + u64::from(info.stored_bytes), what }
}

fn check_header(source: &dyn ReadAt) -> Result<()> {
    let mut header = [0; FILE_HEADER_BYTES];
    let count = read_up_to(source, &mut header, 0)?;
    if count == 0 {
        return Err(Error::Empty);
    }
    if count < FILE_HEADER_BYTES || header[..8] != FILE_MAGIC {
        return Err(Error::NotATrace { found: header[..count.min(8)].to_vec() });
    }
    let found = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    if found > FORMAT_VERSION {
        return Err(Error::NewerVersion { found, known: FORMAT_VERSION });
    }
    Ok(())
}

/// Puts an entry at its index.
fn place<T: Clone>(table: &mut Vec<T>, index: u32, entry: T, unknown: &T, limit: usize) {
    let index = index as usize;
    if index >= limit {
        return;
    }
    if index >= table.len() {
        table.resize(index + 1, unknown.clone());
    }
    table[index] = entry;
}

/// The chunks of an untrusted index.
fn take_index(stream: &[u8], count: usize, size: u64) -> std::result::Result<Vec<ChunkInfo>, Malformed> {
    let mut take = Take::new(stream);
    let mut chunks = Vec::new();
    let mut expected = FILE_HEADER_BYTES as u64;
    for _ in 0..count {
        let offset = expected.checked_add(take.varint()?).ok_or(Malformed("an offset is beyond 64 bits"))?;
        let kind = u16::try_from(take.varint()?).ok().and_then(ChunkKind::from_number);
        let [stored_bytes, raw_bytes, item_count] = [take.varint32()?, take.varint32()?, take.varint32()?];
        let first_ns = take.varint()?;
        let last_ns = first_ns.wrapping_add(take.varint()?);
        expected = offset
            .checked_add(CHUNK_HEADER_BYTES as u64 + u64::from(stored_bytes))
            .filter(|&end| end <= size)
            .ok_or(Malformed("a chunk lies beyond the file"))?;
        chunks.push(ChunkInfo { offset, kind, stored_bytes, raw_bytes, item_count, first_ns, last_ns });
    }
    Ok(chunks)
}

/// Events of a range, in batches of a chunk each.
#[derive(Debug)]
pub struct EventReader<'a> {
    trace: &'a Trace,
    chunks: Vec<ChunkInfo>,
    next: usize,
    from_ns: u64,
    to_ns: u64,
    decoder: EventDecoder,
    events: Vec<Event>,
    damage: Vec<Damage>,
}

impl EventReader<'_> {
    /// The next events, in order of time; `None` at the end. A damaged chunk is left out (see [`EventReader::damage`]).
    ///
    /// # Errors
    /// The operating system's.
    pub fn next_batch(&mut self) -> Result<Option<&[Event]>> {
        loop {
            let Some(&info) = self.chunks.get(self.next) else { return Ok(None) };
            self.next += 1;
            self.events.clear();
            let decoded = match self.trace.streams::<EVENT_STREAMS>(&info) {
                Ok(streams) => self.decoder.decode(
                    &streams,
                    info.first_ns,
                    info.item_count as usize,
                    self.trace.stacks().len(),
                    &mut self.events,
                ),
                Err(Error::Damaged { what, .. }) => Err(Malformed(what)),
                Err(error) => return Err(error),
            };
            if let Err(Malformed(what)) = decoded {
                let bytes = CHUNK_HEADER_BYTES as u64 + u64::from(info.stored_bytes);
                self.damage.push(Damage { offset: info.offset, bytes, what });
            }
            let start = self.events.partition_point(|event| event.time_ns < self.from_ns);
            let end = self.events.partition_point(|event| event.time_ns < self.to_ns);
            if start < end {
                return Ok(Some(&self.events[start..end]));
            }
        }
    }

    /// Chunks of events that could not be used so far.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Chunks read, and in all: for a progress display.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        (self.next, self.chunks.len())
    }
}
