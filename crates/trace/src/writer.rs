//! Writer of traces.

mod chunk_order;
mod circular;
mod facts;
mod new_file;
mod next_file;
mod packed_chunk;
mod pending;
mod second_thread;

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};

use crate::blocks::block_columns;
use crate::chunk::{
    CHUNK_BYTES_MAX, CHUNK_HEADER_BYTES, ChunkHeader, ChunkInfo, ChunkKind, FILE_HEADER_BYTES, FILE_MAGIC,
    FORMAT_VERSION, ITEMS_PER_CHUNK, SAMPLED_FORMAT_VERSION, trailer,
};
use crate::course::course_columns;
use crate::course_rests::{has_rests, rest_columns};
use crate::error::{Error, Result};
use crate::events::{EVENTS_PER_CHUNK, EventColumns};
use crate::graph_slices::for_each_slice_chunk;
use crate::graph_text_chunks::for_each_text_chunk;
use crate::heap_graph::{GraphHead, for_each_edge_chunk, for_each_root_chunk};
use crate::payload::Packer;
use crate::stacks::StackColumns;
use crate::summary::{put_summary, stack_total_columns};
use crate::tables::Entry;
use crate::variance_chunks::{has_variances, stack_variance_columns, variance_streams};
use crate::window::EventWindow;
use crate::*;

use self::chunk_order::Waiting;
pub use self::circular::WindowEnd;
pub use self::new_file::new_file;
use self::next_file::Definitions;
use self::packed_chunk::{chunk_header, packed_events};
use self::pending::Pending;
use self::second_thread::{LaterChunk, SecondThread};

/// Writes a trace, in the order in which data becomes known.
///
/// Definitions (processes, threads, modules, mappings, stack nodes) are numbered in the order of
/// addition. They are written at the latest before the chunk of events that uses them. After an
/// error nothing more is written: the file can be read up to its last whole chunk.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    sink: W,
    offset: u64,
    index: Vec<ChunkInfo>,
    packer: Packer,
    events: EventColumns,
    /// The current chunk's events, if the second thread packs them.
    later: Option<LaterChunk>,
    second_thread: Option<SecondThread>,
    is_second_wanted: bool,
    /// Chunks that wait behind one that is not yet packed.
    waiting: VecDeque<Waiting>,
    stacks: StackColumns,
    /// Callers of all nodes, by node; the first entry is of the empty stack.
    stack_parents: Vec<StackIndex>,
    processes: Pending<(ProcessIndex, Process)>,
    process_count: u32,
    threads: Pending<(ThreadIndex, Thread)>,
    thread_count: u32,
    modules: Pending<Module>,
    module_numbers: HashMap<Module, ModuleIndex>,
    mappings: Pending<(u32, Mapping)>,
    mapping_table: Vec<Mapping>,
    markers: Pending<Marker>,
    rss_samples: Pending<RssSample>,
    resident_samples: Pending<ResidentSample>,
    memory_accounts: Pending<MemoryAccount>,
    memory_readings: Pending<MemoryReading>,
    losses: Pending<LossEntry>,
    statistics: Pending<Statistic>,
    heap_names: Pending<HeapName>,
    notices: Pending<Notice>,
    sampling: Pending<SamplingPeriod>,
    /// Whether some allocations may be samples.
    is_sampled: bool,
    functions: Pending<LanguageFunction>,
    /// Circular logging: holds events and checkpoints until the end.
    window: Option<EventWindow>,
    /// Process of each thread, for the window's end.
    thread_processes: Vec<ProcessIndex>,
    version: u32,
    /// Chunks to begin the next file with; `None` if no file follows.
    definitions: Option<Definitions>,
    has_failed: bool,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace in which every allocation is recorded.
    ///
    /// # Errors
    /// Writing to the sink fails.
    pub fn new(sink: W) -> Result<Self> {
        Self::of_version(sink, FORMAT_VERSION)
    }

    /// Begins a trace whose allocations may be samples: [`TraceWriter::sampling`].
    ///
    /// # Errors
    /// Writing to the sink fails.
    pub fn new_sampled(sink: W) -> Result<Self> {
        Self::of_version(sink, SAMPLED_FORMAT_VERSION)
    }

    fn of_version(mut sink: W, version: u32) -> Result<Self> {
        let offset = put_header(&mut sink, version)?;
        Ok(Self {
            sink,
            offset,
            index: Vec::new(),
            packer: Packer::new(),
            events: EventColumns::new(),
            later: None,
            second_thread: None,
            is_second_wanted: false,
            waiting: VecDeque::new(),
            stacks: StackColumns::default(),
            stack_parents: vec![StackIndex::EMPTY],
            processes: Pending::default(),
            process_count: 0,
            threads: Pending::default(),
            thread_count: 0,
            modules: Pending::default(),
            module_numbers: HashMap::new(),
            mappings: Pending::default(),
            mapping_table: Vec::new(),
            markers: Pending::default(),
            rss_samples: Pending::default(),
            resident_samples: Pending::default(),
            memory_accounts: Pending::default(),
            memory_readings: Pending::default(),
            losses: Pending::default(),
            statistics: Pending::default(),
            heap_names: Pending::default(),
            notices: Pending::default(),
            sampling: Pending::default(),
            is_sampled: false,
            functions: Pending::default(),
            window: None,
            thread_processes: Vec::new(),
            version,
            definitions: None,
            has_failed: false,
        })
    }

    /// Number of bytes written so far, including those that a window holds.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.offset + self.window.as_ref().map_or(0, EventWindow::held_bytes)
    }

    /// Adds a stack node. Its caller must have been added before.
    pub fn add_stack(&mut self, node: StackNode) -> Result<StackIndex> {
        let index = self.stacks.push(node);
        self.stack_parents.push(node.parent);
        if self.stacks.count >= ITEMS_PER_CHUNK {
            self.write_stacks()?;
        }
        Ok(index)
    }

    /// Caller of a node of the stack tree; the empty stack for a node without one.
    #[must_use]
    pub fn stack_parent(&self, stack: StackIndex) -> StackIndex {
        self.stack_parents.get(stack.0 as usize).copied().unwrap_or(StackIndex::EMPTY)
    }

    /// Adds an event. Times must not decrease.
    #[inline]
    pub fn event(&mut self, event: &Event) -> Result<()> {
        if let Some(later) = &mut self.later {
            self.events.last_ns = self.events.last_ns.max(event.time_ns);
            return if later.push(event) { self.write_events() } else { Ok(()) };
        }
        self.events.push_all(std::iter::once(event), 1);
        if self.events.count >= EVENTS_PER_CHUNK { self.write_events() } else { Ok(()) }
    }

    /// Writes the live blocks as of `time_ns`, after all events up to then. They should be in order
    /// of process, heap and address: neighbours in memory compress best next to each other.
    pub fn checkpoint(&mut self, time_ns: u64, blocks: impl IntoIterator<Item = Block>) -> Result<()> {
        self.write_events()?;
        let mut part = 0;
        let mut waiting = Vec::with_capacity(ITEMS_PER_CHUNK);
        for block in blocks {
            // Only another block shows that a full part is not the last.
            if waiting.len() == ITEMS_PER_CHUNK {
                self.checkpoint_part(&waiting, part, false, time_ns)?;
                waiting.clear();
                part += 1;
            }
            waiting.push(block);
        }
        self.checkpoint_part(&waiting, part, true, time_ns)?;
        if let Some(window) = &mut self.window {
            window.trim();
        }
        Ok(())
    }

    fn checkpoint_part(&mut self, blocks: &[Block], part: u32, is_last: bool, time_ns: u64) -> Result<()> {
        let columns = block_columns(blocks, part, is_last, time_ns);
        let (payload, raw_bytes) = self.packer.pack(&columns.each_ref().map(Vec::as_slice));
        let count = blocks.len() as u32;
        let header = chunk_header(ChunkKind::Checkpoint, &payload, raw_bytes, count, time_ns, time_ns);
        match &mut self.window {
            Some(window) => {
                window.push(header, self.packer.without_room(payload), Some(part));
                Ok(())
            }
            None => self.write_chunk(header, payload),
        }
    }

    /// Writes a part of a snapshot, and clears the columns. Parts are numbered from 0; anything
    /// else may be written between two of them.
    pub fn snapshot_part(
        &mut self,
        number: u32,
        part: u32,
        time_ns: u64,
        blocks: &mut SnapshotColumns,
    ) -> Result<()> {
        let count = blocks.count();
        let (payload, raw_bytes) = self.packer.pack(&blocks.streams(number, part));
        blocks.clear();
        let header = chunk_header(ChunkKind::SnapshotBlocks, &payload, raw_bytes, count, time_ns, time_ns);
        self.write_chunk(header, payload)
    }

    /// Ends a snapshot whose parts are written. Readers see it from here on.
    pub fn snapshot(&mut self, snapshot: &Snapshot) -> Result<()> {
        // Definitions come before the snapshot that refers to them.
        self.write_definitions()?;
        let mut bytes = Vec::new();
        snapshot.put(&mut bytes);
        self.chunk(ChunkKind::Snapshots, &[&bytes], 1, snapshot.time_ns, snapshot.time_ns)
    }

    /// Writes the graph of one of a snapshot's processes; call this before
    /// [`TraceWriter::snapshot`].
    pub fn heap_graph(&mut self, snapshot: &Snapshot, graph: &HeapGraph) -> Result<()> {
        let (number, time_ns) = (snapshot.number, snapshot.time_ns);
        for_each_root_chunk(number, graph, |count, streams| {
            self.chunk(ChunkKind::GraphRoots, &streams, count, time_ns, time_ns)
        })?;
        for_each_edge_chunk(number, graph, |count, streams| {
            self.chunk(ChunkKind::GraphEdges, &streams, count, time_ns, time_ns)
        })?;
        for_each_text_chunk(number, graph.process, &graph.texts, |count, streams| {
            self.chunk(ChunkKind::GraphTexts, &streams, count, time_ns, time_ns)
        })?;
        for_each_slice_chunk(number, graph.process, &graph.sliced, |count, streams| {
            self.chunk(ChunkKind::GraphSlices, &streams, count, time_ns, time_ns)
        })?;
        let mut bytes = Vec::new();
        GraphHead::of(snapshot, graph).put(&mut bytes);
        self.chunk(ChunkKind::Graphs, &[&bytes], 1, time_ns, time_ns)
    }

    /// Writes everything so far, so that it is readable even if nothing follows.
    pub fn flush(&mut self) -> Result<()> {
        match self.window {
            // Events stay in memory anyway: no reason to cut their chunks short.
            Some(_) => self.write_definitions()?,
            None => self.write_events()?,
        }
        self.write_waiting(true)?;
        self.end_second_thread();
        self.sink.flush().map_err(write_failed)
    }

    /// Writes symbols for the modules' addresses, as [`SymbolEmbedder`] embeds them.
    pub fn symbols(&mut self, bundle: &[u8]) -> Result<()> {
        // 64 bytes of margin for the sizes of the streams.
        if bundle.len() > CHUNK_BYTES_MAX as usize - 64 {
            return Err(Error::SymbolsTooLarge { bytes: bundle.len() as u64 });
        }
        self.chunk(ChunkKind::Symbols, &[bundle], 1, 0, 0)
    }

    /// Ends the trace: summary, index, trailer.
    pub fn finish(&mut self, summary: &Summary) -> Result<()> {
        self.is_second_wanted = false;
        self.write_events()?;
        self.write_waiting(true)?;
        for part in summary.by_stack.chunks(ITEMS_PER_CHUNK) {
            let columns = stack_total_columns(part);
            let streams = columns.each_ref().map(Vec::as_slice);
            self.chunk(ChunkKind::StackTotals, &streams, part.len() as u32, 0, summary.duration_ns)?;
        }
        // Variances of replayed samples may all be 0, and are not estimated from the sums then.
        if self.is_sampled && summary.event_count > 0 || has_variances(summary) {
            self.variances(summary)?;
        }
        if !summary.course.moments.is_empty() {
            let columns = course_columns(&summary.course);
            let streams = columns.each_ref().map(Vec::as_slice);
            let count = summary.course.moments.len() as u32;
            self.chunk(ChunkKind::Course, &streams, count, 0, 0)?;
            if has_rests(&summary.course) {
                let columns = rest_columns(&summary.course);
                let streams = columns.each_ref().map(Vec::as_slice);
                self.chunk(ChunkKind::CourseRests, &streams, count, 0, 0)?;
            }
        }
        let mut bytes = Vec::new();
        put_summary(summary, &mut bytes);
        self.chunk(ChunkKind::Summary, &[&bytes], 1, 0, summary.duration_ns)?;
        self.write_index()?;
        self.sink.flush().map_err(write_failed)
    }

    /// Writes the variances of a summary of samples.
    fn variances(&mut self, summary: &Summary) -> Result<()> {
        for part in summary.by_stack.chunks(ITEMS_PER_CHUNK) {
            let columns = stack_variance_columns(part);
            let streams = columns.each_ref().map(Vec::as_slice);
            self.chunk(ChunkKind::StackVariances, &streams, part.len() as u32, 0, summary.duration_ns)?;
        }
        let streams = variance_streams(summary);
        let streams = streams.each_ref().map(Vec::as_slice);
        self.chunk(ChunkKind::Variances, &streams, 1, 0, summary.duration_ns)
    }

    fn write_index(&mut self) -> Result<()> {
        let at = self.offset;
        let bytes = index_bytes(&self.index);
        let count = self.index.len() as u32;
        self.chunk(ChunkKind::Index, &[&bytes], count, 0, 0)?;
        self.write(&trailer(at))
    }

    fn single(&mut self, kind: ChunkKind, entry: &impl Entry) -> Result<()> {
        let mut bytes = Vec::new();
        entry.put(&mut bytes);
        self.chunk(kind, &[&bytes], 1, 0, 0)
    }

    /// Writes the definitions that the next events may use, and the small tables.
    fn write_definitions(&mut self) -> Result<()> {
        let mut tables: [(ChunkKind, (Vec<u8>, u32)); 15] = [
            (ChunkKind::Processes, self.processes.take()),
            (ChunkKind::Threads, self.threads.take()),
            (ChunkKind::Modules, self.modules.take()),
            (ChunkKind::Mappings, self.mappings.take()),
            (ChunkKind::Markers, self.markers.take()),
            (ChunkKind::RssSamples, self.rss_samples.take()),
            (ChunkKind::ResidentSamples, self.resident_samples.take()),
            (ChunkKind::MemoryAccounts, self.memory_accounts.take()),
            (ChunkKind::MemoryReadings, self.memory_readings.take()),
            (ChunkKind::Losses, self.losses.take()),
            (ChunkKind::Statistics, self.statistics.take()),
            (ChunkKind::HeapNames, self.heap_names.take()),
            (ChunkKind::Notices, self.notices.take()),
            (ChunkKind::Functions, self.functions.take()),
            (ChunkKind::Sampling, self.sampling.take()),
        ];
        let mut outcome = Ok(());
        for (kind, (bytes, count)) in &mut tables {
            if *count > 0 {
                // (A next file needs the tables behind one that fails.)
                outcome = outcome.and(self.chunk(*kind, &[bytes], *count, 0, 0));
            }
        }
        outcome.and(self.write_stacks())
    }

    fn write_stacks(&mut self) -> Result<()> {
        if self.stacks.count == 0 {
            return Ok(());
        }
        let stacks = std::mem::take(&mut self.stacks);
        let outcome = self.chunk(ChunkKind::Stacks, &stacks.streams(), stacks.count as u32, 0, 0);
        self.stacks = stacks;
        self.stacks.clear();
        outcome
    }

    fn write_events(&mut self) -> Result<()> {
        self.write_definitions()?;
        if !self.hand_over() && self.events.count > 0 {
            let (header, payload) = packed_events(&mut self.events, &mut self.packer);
            match &mut self.window {
                Some(window) => {
                    window.push(header, self.packer.without_room(payload), None);
                    window.trim();
                }
                None => self.write_chunk(header, payload)?,
            }
        }
        self.begin_chunk();
        self.write_waiting(false)
    }

    fn chunk(
        &mut self,
        kind: ChunkKind,
        streams: &[&[u8]],
        count: u32,
        first_ns: u64,
        last_ns: u64,
    ) -> Result<()> {
        let (payload, raw_bytes) = self.packer.pack(streams);
        let header = chunk_header(kind, &payload, raw_bytes, count, first_ns, last_ns);
        self.write_chunk(header, payload)
    }

    fn write_now(&mut self, header: &ChunkHeader, payload: &[u8]) -> Result<()> {
        if let Some(definitions) = &mut self.definitions {
            definitions.keep(header, payload);
        }
        self.index.push(header.info(self.offset));
        self.write(&header.to_bytes())?;
        self.write(payload)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.has_failed {
            return Err(write_failed(io::Error::other("an earlier write failed")));
        }
        self.offset += bytes.len() as u64;
        self.sink.write_all(bytes).map_err(|error| {
            self.has_failed = true;
            write_failed(error)
        })
    }
}

/// Writes the file's header; returns its size in bytes.
fn put_header(sink: &mut impl Write, version: u32) -> Result<u64> {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&FILE_MAGIC);
    header[8..12].copy_from_slice(&version.to_le_bytes());
    sink.write_all(&header).map_err(write_failed)?;
    Ok(FILE_HEADER_BYTES as u64)
}

fn write_failed(source: io::Error) -> Error {
    Error::Io { action: "writing the trace", source }
}

/// Encodes the index: per chunk its distance from the end of the previous one, and its header's
/// fields.
pub(crate) fn index_bytes(index: &[ChunkInfo]) -> Vec<u8> {
    use crate::bytes::PutBytes;
    let mut bytes = Vec::new();
    let mut expected = FILE_HEADER_BYTES as u64;
    for chunk in index {
        bytes.put_varint(chunk.offset.saturating_sub(expected));
        expected = chunk.offset + CHUNK_HEADER_BYTES as u64 + u64::from(chunk.stored_bytes);
        bytes.put_varint(u64::from(chunk.kind_number));
        for value in [chunk.stored_bytes, chunk.raw_bytes, chunk.item_count] {
            bytes.put_varint(u64::from(value));
        }
        bytes.put_varint(chunk.first_ns);
        bytes.put_varint(chunk.last_ns.wrapping_sub(chunk.first_ns));
    }
    bytes
}
