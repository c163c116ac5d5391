//! Writes the graph of a dead process, read from its core file, into a trace with one snapshot.
//!
//! Its calls were not recorded. Blocks are the chunks in use in the C library's heap, with the
//! sizes of chunks, without stacks and ages.

use std::io::Write;
use std::path::{Path, PathBuf};

use heapr_glibc_heap::Plan;
use heapr_inject::HeldThread;
use heapr_native::{BlockMap, Cut, KnownBlock, ProcessFacts, Regions, root_areas, scan};
use heapr_proc::{CoreFile, CoreThread, Mapping};
use heapr_symbols::FrameWalker;
use heapr_trace::{
    Block, HeapGraph, HeapId, Module, Process, ProcessIndex, ProcessOrigin, Snapshot, SnapshotColumns,
    SnapshotProcess, SnapshotTrigger, StackIndex, Summary, Thread, ThreadIndex, TraceWriter,
};

use crate::Error;
use crate::core_left_out::MissingMemory;
use crate::recorder::facts::system_facts;
use crate::snapshots::graph_capture::GraphContents;
use crate::snapshots::heap_look::{graph_of, mapped_code, thread_facts};

/// Input and output of [`snapshot_of_core`].
#[derive(Debug, Clone)]
pub struct CoreRequest {
    /// Path of the core file.
    pub core: PathBuf,
    /// Program of the core file, if it is not at its path any more.
    pub executable: Option<PathBuf>,
    /// Root of the files of the machine on which the core was written.
    pub sysroot: Option<PathBuf>,
    /// Path of the trace.
    pub output: PathBuf,
    /// Contents of blocks that are written.
    pub contents: GraphContents,
    /// True if an existing trace may be overwritten.
    pub overwrites: bool,
}

/// Summary of a core file's snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreTaken {
    /// Number of blocks.
    pub block_count: u64,
    /// Bytes that the blocks can hold.
    pub block_bytes: u64,
    /// Number of references between blocks, and from elsewhere.
    pub reference_count: u64,
    /// Number of threads.
    pub thread_count: usize,
    /// Notes on what could not be seen: one sentence each.
    pub notes: Vec<String>,
}

/// Reads a core file and writes the trace.
///
/// # Errors
/// The file is not a core file, its heap is not the C library's, or the trace cannot be written.
pub fn snapshot_of_core(request: &CoreRequest) -> Result<CoreTaken, Error> {
    let refuse = |reason: String| Error::Core { path: request.core.clone(), reason };
    let (core, mut notes) =
        open_core(&request.core, request.executable.as_deref(), request.sysroot.as_deref())?;
    let no_heap = |error: heapr_glibc_heap::Error| refuse(format!("its heap cannot be read: {error}"));
    let plan = Plan::make(&core).map_err(no_heap)?;
    let mut room = plan.room(&core);
    let thread_pointers: Vec<u64> = core.threads().iter().map(|thread| thread.thread_pointer).collect();
    let rundown = heapr_glibc_heap::walk(&plan, &core, &thread_pointers, &mut room).map_err(no_heap)?;
    notes.extend(rundown.findings().iter().map(|finding| format!("the heap is not in order: {finding}")));
    let mut blocks: Vec<KnownBlock> = rundown
        .blocks()
        .map(|block| KnownBlock {
            address_avma: block.address_avma,
            size_bytes: block.usable_bytes,
            usable_bytes: block.usable_bytes,
        })
        .collect();
    blocks.sort_unstable_by_key(|block| block.address_avma);
    blocks.dedup_by_key(|block| block.address_avma);
    let mut walker =
        FrameWalker::new(core.machine(), mapped_code(core.mappings(), |path| PathBuf::from(path)));
    let threads = core.threads().iter().map(|thread| thread_facts(&held(thread), &mut walker, &core));
    let facts = ProcessFacts {
        machine: core.machine(),
        mappings: core.mappings().to_vec(),
        threads: threads.collect(),
        heap: Some(rundown.memory()),
        ..ProcessFacts::default()
    };
    let sizes: Vec<(u64, u64)> = blocks.iter().map(|block| (block.address_avma, block.size_bytes)).collect();
    let map = BlockMap::of_machine(blocks, core.machine());
    let mut areas = root_areas(&facts, &map, &core);
    let missing = MissingMemory::of(&core, &areas);
    areas.extend(missing.areas());
    notes.extend(missing.notes());
    let found = scan(&core, &map, &areas, &Regions::of(&facts.mappings), request.contents.texts(), &|| true)
        .map_err(|cut| match cut {
            Cut::Ended => refuse("the search was ended".to_owned()),
            Cut::TooManyEdges => refuse("it has more than 4 billion references".to_owned()),
        })?;
    notes.push("what the kernel held for it (epoll, timers) is not in a core file".to_owned());
    let mut graph = graph_of(found, areas, notes);
    missing.hold_in_doubt(&mut graph, &map);
    let taken = CoreTaken {
        block_count: sizes.len() as u64,
        block_bytes: sizes.iter().map(|block| block.1).sum(),
        reference_count: (graph.targets.len() + graph.roots.len()) as u64,
        thread_count: facts.threads.len(),
        notes: graph.notes.clone(),
    };
    write(request, &core, &sizes, graph, &taken)
        .map_err(|source| Error::Output { path: request.output.clone(), source })?;
    Ok(taken)
}

/// Opens a core file and the files that its process had mapped. Also returns notes on what could
/// not be seen.
///
/// # Errors
/// The file is not a core file.
pub(crate) fn open_core(
    path: &Path,
    program: Option<&Path>,
    sysroot: Option<&Path>,
) -> Result<(CoreFile, Vec<String>), Error> {
    let refuse = |reason: String| Error::Core { path: path.to_owned(), reason };
    let mut core = CoreFile::open(path).map_err(|error| refuse(error.to_string()))?;
    let executable = core.executable().to_owned();
    let others = core.use_files(|path| match (program, sysroot) {
        (Some(program), _) if path == executable => program.to_owned(),
        (_, Some(root)) => root.join(path.trim_start_matches('/')),
        _ => PathBuf::from(path),
    });
    let mut notes = Vec::new();
    if !others.is_empty() {
        notes.push(format!(
            "these files are not here as they were mapped: {} (name the program, or --sysroot)",
            others.join(", ")
        ));
    }
    Ok((core, notes))
}

fn held(thread: &CoreThread) -> HeldThread {
    HeldThread {
        tid: thread.tid,
        name: String::new(),
        stack_pointer: thread.stack_pointer,
        thread_pointer: thread.thread_pointer,
        registers: thread.registers.clone(),
    }
}

fn write(
    request: &CoreRequest,
    core: &CoreFile,
    blocks: &[(u64, u64)],
    mut graph: HeapGraph,
    taken: &CoreTaken,
) -> Result<(), heapr_trace::Error> {
    let mut writer = TraceWriter::create(&request.output, request.overwrites)?;
    writer.set_system(&system_facts::system())?;
    writer.set_session(&heapr_trace::Session {
        name: "core".to_owned(),
        heapr_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: vec![core.command_line().to_owned()],
        start_unix_ns: written_unix_ns(&request.core),
        ..heapr_trace::Session::default()
    })?;
    let process = write_tables(&mut writer, core)?;
    let mut snapshot = Snapshot {
        number: 1,
        time_ns: 0,
        event_index: 0,
        name: "core".to_owned(),
        trigger: SnapshotTrigger::Request,
        block_count: taken.block_count,
        block_bytes: taken.block_bytes,
        part_count: 0,
        export_ns: 0,
        processes: vec![SnapshotProcess {
            process,
            rss_bytes: None,
            block_count: taken.block_count,
            block_bytes: taken.block_bytes,
        }],
        notes: vec!["of a core file: blocks have the size of their chunks, no stack and no age".to_owned()],
    };
    let mut columns = SnapshotColumns::new();
    for part in blocks.chunks(SnapshotColumns::BLOCKS_PER_PART as usize) {
        for &(address_avma, size_bytes) in part {
            columns.push(&Block {
                process,
                heap: HeapId::MALLOC,
                address_avma,
                size_bytes,
                stack: StackIndex::EMPTY,
                thread: ThreadIndex(0),
                alloc_ns: 0,
                is_realloc: false,
            });
        }
        writer.snapshot_part(1, snapshot.part_count, 0, &mut columns)?;
        snapshot.part_count += 1;
    }
    graph.process = process;
    writer.heap_graph(&snapshot, &graph)?;
    writer.snapshot(&snapshot)?;
    writer.finish(&Summary::default())
}

/// Writes the process, its threads and the files that it has loaded. Returns the process's number.
fn write_tables(
    writer: &mut TraceWriter<impl Write>,
    core: &CoreFile,
) -> Result<ProcessIndex, heapr_trace::Error> {
    let process = writer.add_process(Process {
        pid: core.pid(),
        parent_pid: 0,
        origin: ProcessOrigin::Exec,
        start_ns: 0,
        end_ns: None,
        executable: core.executable().to_owned(),
        command_line: core.command_line().split(' ').map(str::to_owned).collect(),
        exit_status: None,
    })?;
    for thread in core.threads() {
        let name = String::new();
        writer.add_thread(Thread { process, tid: thread.tid, name, start_ns: 0, end_ns: None })?;
    }
    for (path, start_avma, end_avma, bias_avma) in modules(core) {
        let module = writer.add_module(Module { path, build_id: Vec::new() })?;
        writer.add_mapping(heapr_trace::Mapping {
            process,
            module,
            start_avma,
            end_avma,
            bias_avma,
            loaded_ns: 0,
            unloaded_ns: u64::MAX,
        })?;
    }
    Ok(process)
}

/// Time at which the core was written, which stands for the process's end.
fn written_unix_ns(core: &Path) -> u64 {
    let written = core.metadata().and_then(|metadata| metadata.modified()).ok();
    let since = written.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0))
}

/// Path, range and bias of each loaded file.
fn modules(core: &CoreFile) -> Vec<(String, u64, u64, u64)> {
    let mut found: Vec<(String, u64, u64, u64)> = Vec::new();
    for mapping in core.mappings().iter().filter(|mapping| mapping.inode != 0) {
        match found.last_mut() {
            Some(last) if last.0 == mapping.name && mapping.file_off != 0 => last.2 = mapping.end_avma,
            _ => {
                let Some(first_svma) = first_svma(core, mapping) else { continue };
                let bias_avma = mapping.start_avma.wrapping_sub(first_svma);
                found.push((mapping.name.clone(), mapping.start_avma, mapping.end_avma, bias_avma));
            }
        }
    }
    found
}

/// Start of the first segment in the file's own addresses.
fn first_svma(core: &CoreFile, mapping: &Mapping) -> Option<u64> {
    let mut head = [0; 4096];
    let count = core.read_memory(mapping.start_avma, &mut head);
    let head = &head[..count];
    if mapping.file_off != 0 || !head.starts_with(b"\x7fELF\x02") {
        return None;
    }
    let word = |at: usize| {
        head.get(at..at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
    };
    let (first, count) = (usize::try_from(word(32)).ok()?, word(56) as u16);
    let starts = (0..usize::from(count)).map(|number| first.saturating_add(number * 56));
    // PT_LOAD of the file's beginning.
    let load = starts.into_iter().find(|&at| word(at) as u32 == 1 && word(at.saturating_add(8)) < 4096);
    load.map(|at| word(at.saturating_add(16)) & !4095)
}
