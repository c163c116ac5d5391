//! Writing a trace.

mod chunk_order;
mod circular;
mod new_file;
mod packed_chunk;
mod second_thread;

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};

use crate::blocks::block_columns;
use crate::chunk::{
    CHUNK_BYTES_MAX, CHUNK_HEADER_BYTES, ChunkHeader, ChunkInfo, ChunkKind, FILE_HEADER_BYTES, FILE_MAGIC,
    FORMAT_VERSION, ITEMS_PER_CHUNK, SAMPLED_FORMAT_VERSION, trailer,
};
use crate::course::course_columns;
use crate::error::{Error, Result};
use crate::events::{EVENTS_PER_CHUNK, EventColumns};
use crate::heap_graph::{GraphHead, for_each_edge_chunk, for_each_root_chunk};
use crate::payload::Packer;
use crate::stacks::StackColumns;
use crate::summary::{put_summary, stack_total_columns};
use crate::tables::Entry;
use crate::window::EventWindow;
use crate::*;

use self::chunk_order::Waiting;
pub use self::circular::WindowEnd;
use self::packed_chunk::{chunk_header, packed_events};
use self::second_thread::{LaterChunk, SecondThread};

/// Writes a trace, in the order in which things become known.
///
/// Definitions (processes, threads, modules, mappings, stack nodes) are numbered as they are added;
/// they are written at the latest before the chunk of events that uses them. After an error nothing
/// more is written: the file can be read up to its last whole chunk.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    sink: W,
    offset: u64,
    index: Vec<ChunkInfo>,
    packer: Packer,
    events: EventColumns,
    /// The present chunk's events, if they are packed by the second thread.
    later: Option<LaterChunk>,
    second_thread: Option<SecondThread>,
    is_second_wanted: bool,
    /// Chunks that come behind one that is not packed yet.
    waiting: VecDeque<Waiting>,
    stacks: StackColumns,
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
    losses: Pending<LossEntry>,
    statistics: Pending<Statistic>,
    heap_names: Pending<HeapName>,
    notices: Pending<Notice>,
    sampling: Pending<SamplingPeriod>,
    functions: Pending<LanguageFunction>,
    /// Circular logging: events and checkpoints wait here.
    window: Option<EventWindow>,
    /// By thread, for the window's end.
    thread_processes: Vec<ProcessIndex>,
    has_failed: bool,
}

/// Entries of a table that are not written yet.
#[derive(Debug)]
struct Pending<T> {
    bytes: Vec<u8>,
    count: u32,
    entry: std::marker::PhantomData<T>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { bytes: Vec::new(), count: 0, entry: std::marker::PhantomData }
    }
}

impl<T: Entry> Pending<T> {
    fn add(&mut self, entry: &T) {
        entry.put(&mut self.bytes);
        self.count += 1;
    }
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace in which all is recorded.
    ///
    /// # Errors
    /// The sink's.
    pub fn new(sink: W) -> Result<Self> {
        Self::of_version(sink, FORMAT_VERSION)
    }

    /// Begins a trace whose allocations may be samples: [`TraceWriter::sampling`].
    ///
    /// # Errors
    /// The sink's.
    pub fn new_sampled(sink: W) -> Result<Self> {
        Self::of_version(sink, SAMPLED_FORMAT_VERSION)
    }

    fn of_version(mut sink: W, version: u32) -> Result<Self> {
        let mut header = [0; FILE_HEADER_BYTES];
        header[..8].copy_from_slice(&FILE_MAGIC);
        header[8..12].copy_from_slice(&version.to_le_bytes());
        sink.write_all(&header).map_err(write_failed)?;
        Ok(Self {
            sink,
            offset: FILE_HEADER_BYTES as u64,
            index: Vec::new(),
            packer: Packer::new(),
            events: EventColumns::new(),
            later: None,
            second_thread: None,
            is_second_wanted: false,
            waiting: VecDeque::new(),
            stacks: StackColumns::default(),
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
            losses: Pending::default(),
            statistics: Pending::default(),
            heap_names: Pending::default(),
            notices: Pending::default(),
            sampling: Pending::default(),
            functions: Pending::default(),
            window: None,
            thread_processes: Vec::new(),
            has_failed: false,
        })
    }

    /// Bytes written so far, with those that a window holds.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.offset + self.window.as_ref().map_or(0, EventWindow::held_bytes)
    }

    /// Writes the machine.
    ///
    /// # Errors
    /// The sink's; so with all methods below.
    pub fn set_system(&mut self, system: &System) -> Result<()> {
        self.single(ChunkKind::System, system)
    }

    /// Writes the session.
    pub fn set_session(&mut self, session: &Session) -> Result<()> {
        self.single(ChunkKind::Session, session)
    }

    /// Adds a process image.
    pub fn add_process(&mut self, process: Process) -> Result<ProcessIndex> {
        let index = ProcessIndex(self.process_count);
        self.process_count += 1;
        self.processes.add(&(index, process));
        Ok(index)
    }

    /// Replaces what is known of a process image.
    pub fn update_process(&mut self, index: ProcessIndex, process: &Process) -> Result<()> {
        self.processes.add(&(index, process.clone()));
        Ok(())
    }

    /// Adds a thread.
    pub fn add_thread(&mut self, thread: Thread) -> Result<ThreadIndex> {
        let index = ThreadIndex(self.thread_count);
        self.thread_count += 1;
        self.thread_processes.push(thread.process);
        self.threads.add(&(index, thread));
        Ok(index)
    }

    /// Replaces what is known of a thread.
    pub fn update_thread(&mut self, index: ThreadIndex, thread: &Thread) -> Result<()> {
        self.threads.add(&(index, thread.clone()));
        Ok(())
    }

    /// Adds a module, or finds it among those added.
    pub fn add_module(&mut self, module: Module) -> Result<ModuleIndex> {
        let next = ModuleIndex(self.module_numbers.len() as u32);
        if let Some(&known) = self.module_numbers.get(&module) {
            return Ok(known);
        }
        self.modules.add(&module);
        self.module_numbers.insert(module, next);
        Ok(next)
    }

    /// Adds a mapping; gives its number.
    pub fn add_mapping(&mut self, mapping: Mapping) -> Result<u32> {
        let number = self.mapping_table.len() as u32;
        self.mappings.add(&(number, mapping));
        self.mapping_table.push(mapping);
        Ok(number)
    }

    /// Ends a mapping.
    pub fn unload_mapping(&mut self, number: u32, time_ns: u64) -> Result<()> {
        if let Some(mapping) = self.mapping_table.get_mut(number as usize) {
            mapping.unloaded_ns = time_ns;
            self.mappings.add(&(number, *mapping));
        }
        Ok(())
    }

    /// Adds a stack node, whose caller was added before.
    pub fn add_stack(&mut self, node: StackNode) -> Result<StackIndex> {
        let index = self.stacks.push(node);
        if self.stacks.count >= ITEMS_PER_CHUNK {
            self.write_stacks()?;
        }
        Ok(index)
    }

    /// Adds an event, not earlier than the last.
    #[inline]
    pub fn event(&mut self, event: &Event) -> Result<()> {
        if let Some(later) = &mut self.later {
            self.events.last_ns = self.events.last_ns.max(event.time_ns);
            return if later.push(event) { self.write_events() } else { Ok(()) };
        }
        self.events.push_all(std::iter::once(event), 1);
        if self.events.count >= EVENTS_PER_CHUNK { self.write_events() } else { Ok(()) }
    }

    /// Adds a marker.
    pub fn marker(&mut self, marker: &Marker) -> Result<()> {
        self.markers.add(marker);
        Ok(())
    }

    /// Adds a sample of the resident set.
    pub fn rss_sample(&mut self, sample: RssSample) -> Result<()> {
        self.rss_samples.add(&sample);
        Ok(())
    }

    /// Adds a sample of what the resident set is.
    pub fn resident_sample(&mut self, sample: ResidentSample) -> Result<()> {
        self.resident_samples.add(&sample);
        Ok(())
    }

    /// Adds what a process's own memory was.
    pub fn memory_account(&mut self, account: &MemoryAccount) -> Result<()> {
        self.memory_accounts.add(account);
        Ok(())
    }

    /// The path of a module that a mapping is of.
    pub fn module_path(&self, mapping_number: u32) -> Option<&str> {
        let module = self.mapping_table.get(mapping_number as usize)?.module;
        let found = self.module_numbers.iter().find(|(_, number)| **number == module);
        found.map(|(module, _)| module.path.as_str())
    }

    /// Adds a loss.
    pub fn loss(
        &mut self,
        process: Option<ProcessIndex>,
        thread: Option<ThreadIndex>,
        loss: Loss,
    ) -> Result<()> {
        self.losses.add(&LossEntry { process, thread, loss });
        Ok(())
    }

    /// Adds a name of a program's own heap.
    pub fn heap_name(&mut self, name: &HeapName) -> Result<()> {
        self.heap_names.add(name);
        Ok(())
    }

    /// Adds what is to be known of the recording of a process.
    pub fn notice(&mut self, notice: &Notice) -> Result<()> {
        self.notices.add(notice);
        Ok(())
    }

    /// Adds how a process is sampled from a time on; only to a trace begun by
    /// [`TraceWriter::new_sampled`].
    pub fn sampling(&mut self, period: SamplingPeriod) -> Result<()> {
        self.sampling.add(&period);
        Ok(())
    }

    /// Adds a function that frames of a language name. One with the same process, language and
    /// number takes its place.
    pub fn function(&mut self, function: &LanguageFunction) -> Result<()> {
        self.functions.add(function);
        Ok(())
    }

    /// Adds a number about the recording.
    pub fn statistic(&mut self, name: &str, value: u64) -> Result<()> {
        self.statistics.add(&Statistic { name: name.to_owned(), value });
        Ok(())
    }

    /// Writes the live blocks as of `time_ns`, after all events up to then. They should come by
    /// process, heap and address: what is near each other in memory is packed best next to each
    /// other.
    pub fn checkpoint(&mut self, time_ns: u64, blocks: impl IntoIterator<Item = Block>) -> Result<()> {
        self.write_events()?;
        let mut part = 0;
        let mut waiting = Vec::with_capacity(ITEMS_PER_CHUNK);
        for block in blocks {
            // Only with another block at hand it is known that a full part is not the last.
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

    /// Writes a part of a snapshot, and empties it. Parts are numbered from 0; between two of them
    /// anything else may be written.
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

    /// Ends a snapshot whose parts are written: from here on the file has it.
    pub fn snapshot(&mut self, snapshot: &Snapshot) -> Result<()> {
        // What the blocks refer to comes before it.
        self.write_definitions()?;
        let mut bytes = Vec::new();
        snapshot.put(&mut bytes);
        self.chunk(ChunkKind::Snapshots, &[&bytes], 1, snapshot.time_ns, snapshot.time_ns)
    }

    /// Writes the graph of one of a snapshot's processes; before the snapshot's end.
    pub fn heap_graph(&mut self, snapshot: &Snapshot, graph: &HeapGraph) -> Result<()> {
        let (number, time_ns) = (snapshot.number, snapshot.time_ns);
        for_each_root_chunk(number, graph, |count, streams| {
            self.chunk(ChunkKind::GraphRoots, &streams, count, time_ns, time_ns)
        })?;
        for_each_edge_chunk(number, graph, |count, streams| {
            self.chunk(ChunkKind::GraphEdges, &streams, count, time_ns, time_ns)
        })?;
        let mut bytes = Vec::new();
        GraphHead::of(snapshot, graph).put(&mut bytes);
        self.chunk(ChunkKind::Graphs, &[&bytes], 1, time_ns, time_ns)
    }

    /// Writes everything so far, so that it can be read if nothing more comes.
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

    /// Writes names of the modules' addresses, as [`SymbolEmbedder`] puts them into a file.
    pub fn symbols(&mut self, bundle: &[u8]) -> Result<()> {
        // With room for the sizes of the streams.
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
        if !summary.course.moments.is_empty() {
            let columns = course_columns(&summary.course);
            let streams = columns.each_ref().map(Vec::as_slice);
            let count = summary.course.moments.len() as u32;
            self.chunk(ChunkKind::Course, &streams, count, 0, 0)?;
        }
        let mut bytes = Vec::new();
        put_summary(summary, &mut bytes);
        self.chunk(ChunkKind::Summary, &[&bytes], 1, 0, summary.duration_ns)?;
        self.write_index()?;
        self.sink.flush().map_err(write_failed)
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
        let mut tables: [(ChunkKind, (Vec<u8>, u32)); 14] = [
            (ChunkKind::Processes, take_pending(&mut self.processes)),
            (ChunkKind::Threads, take_pending(&mut self.threads)),
            (ChunkKind::Modules, take_pending(&mut self.modules)),
            (ChunkKind::Mappings, take_pending(&mut self.mappings)),
            (ChunkKind::Markers, take_pending(&mut self.markers)),
            (ChunkKind::RssSamples, take_pending(&mut self.rss_samples)),
            (ChunkKind::ResidentSamples, take_pending(&mut self.resident_samples)),
            (ChunkKind::MemoryAccounts, take_pending(&mut self.memory_accounts)),
            (ChunkKind::Losses, take_pending(&mut self.losses)),
            (ChunkKind::Statistics, take_pending(&mut self.statistics)),
            (ChunkKind::HeapNames, take_pending(&mut self.heap_names)),
            (ChunkKind::Notices, take_pending(&mut self.notices)),
            (ChunkKind::Functions, take_pending(&mut self.functions)),
            (ChunkKind::Sampling, take_pending(&mut self.sampling)),
        ];
        for (kind, (bytes, count)) in &mut tables {
            if *count > 0 {
                self.chunk(*kind, &[bytes], *count, 0, 0)?;
            }
        }
        self.write_stacks()
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

fn take_pending<T>(pending: &mut Pending<T>) -> (Vec<u8>, u32) {
    (std::mem::take(&mut pending.bytes), std::mem::take(&mut pending.count))
}

fn write_failed(source: io::Error) -> Error {
    Error::Io { action: "writing the trace", source }
}

/// The index's stream: per chunk its distance from the end of the one before, and its header's
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
