//! Searches the memory of a stopped process, or of a copy of it: its heap, its roots, and the
//! references between its blocks.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use heapr_glibc_heap::{Error as RundownError, HeapMemory, Plan, ReadStore, Rundown};
use heapr_inject::{HeldProcess, ReadFrom, StoppedProcess};
use heapr_known::machine::HERE;
use heapr_native::{
    Area, BlockMap, Cut, FrameFacts, KnownBlock, Memory, ProcessFacts, Regions, Scanned, Texts, ThreadFacts,
    ThreadModule, root_areas, scan,
};
use heapr_proc::page_bytes;
use heapr_proc::{Mapping, kernel_words, mappings, not_as_it_is_in_forks};
use heapr_symbols::{FrameWalker, MappedCode};
use heapr_trace::{EdgeGrade, HeapGraph, RootArea, RootClass, RootEdge};

use crate::snapshots::copied_memory::{CopiedMemory, Form, WrittenMemory};
use crate::snapshots::graph_notes::{of_mappings, of_served};
use crate::snapshots::no_graph::NoGraph;

/// Facts that are found before the process is stopped, because finding them takes longer than the
/// rest.
#[derive(Debug)]
pub(crate) struct Prepared {
    memory: Arc<StoppedProcess>,
    plan: Result<Plan, RundownError>,
    room: ReadStore,
    /// Address ranges that a copy lacks, or has empty.
    not_copied: Vec<(u64, u64)>,
    /// Facts that were read while the process stood still.
    mappings: Vec<Mapping>,
    kernel: Vec<(String, Vec<u64>)>,
    /// Memory that was copied out, and modules found in the copy.
    kept: Option<(CopiedMemory, Vec<ThreadModule>)>,
    texts: Texts,
}

/// Memory as the scan reads it.
pub(super) struct Still<'a> {
    memory: &'a StoppedProcess,
    /// File by which memory is read that the process itself may not read.
    file: Option<File>,
    /// Original process of a copy, and the ranges that only the original has.
    original: Option<(&'a StoppedProcess, &'a [(u64, u64)])>,
}

impl<'a> Still<'a> {
    /// Memory of a copy of `original`, which alone has `only`.
    pub(super) fn of_copy(
        copy: &'a StoppedProcess,
        original: &'a StoppedProcess,
        only: &'a [(u64, u64)],
    ) -> Self {
        Self { original: Some((original, only)), ..Self::alone(copy) }
    }

    pub(super) fn alone(memory: &'a StoppedProcess) -> Self {
        let file = File::open(heapr_proc::folder(memory.pid()).join("mem")).ok();
        Self { memory, file, original: None }
    }

    fn of(&self, address_avma: u64) -> &StoppedProcess {
        match self.original {
            Some((original, only)) if holds(only, address_avma) => original,
            _ => self.memory,
        }
    }
}

fn holds(ranges: &[(u64, u64)], address_avma: u64) -> bool {
    ranges.iter().any(|&(start_avma, end_avma)| (start_avma..end_avma).contains(&address_avma))
}

impl Memory for Still<'_> {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        let count = HeapMemory::read(self.of(address_avma), address_avma, into);
        if count > 0 {
            return count;
        }
        if self.of(address_avma).served().is_any() {
            return 0;
        }
        // A page that the process has locked away for the moment, one at a time.
        let left_bytes = (page_bytes() - address_avma % page_bytes()).min(into.len() as u64) as usize;
        let page = &mut into[..left_bytes];
        let read = self.file.as_ref().map(|file| file.read_at(page, address_avma));
        read.and_then(Result::ok).unwrap_or(0)
    }

    fn written_parts(&self, start_avma: u64, end_avma: u64) -> Option<Vec<(u64, u64)>> {
        self.of(start_avma).written_parts(start_avma, end_avma)
    }

    fn shared_parts(&self, mapping: &Mapping) -> Vec<(u64, u64)> {
        // A copy has the same shared memory, but is not registered there.
        self.original.map_or(self.memory, |(original, _)| original).shared_parts(mapping)
    }
}

impl WrittenMemory for Still<'_> {
    fn root(&self) -> PathBuf {
        heapr_proc::folder(self.memory.pid()).join("root")
    }
}

impl Prepared {
    /// Finds the heap of a running process. The search is repeated, because a heap that is just
    /// being changed is not recognised.
    pub(crate) fn of(pid: u32, texts: Texts) -> Self {
        const TRIES: u32 = 4;
        let memory = Arc::new(StoppedProcess::about_to_stop(pid));
        let mut plan = Plan::make(&*memory);
        for _ in 1..TRIES {
            if !matches!(plan, Err(RundownError::NoMainArena { .. })) {
                break;
            }
            plan = Plan::make(&*memory);
        }
        let room = plan.as_ref().map(|plan| plan.room(&*memory)).unwrap_or_default();
        let (mappings, kernel) = (Vec::new(), Vec::new());
        Self {
            memory,
            plan,
            room,
            not_copied: not_as_it_is_in_forks(pid),
            mappings,
            kernel,
            kept: None,
            texts,
        }
    }

    /// Reads facts that only the process itself has, while it stands still.
    pub(crate) fn take_down(&mut self, pid: u32) {
        self.mappings = mappings::read(pid).unwrap_or_default();
        self.kernel = kernel_words(pid);
    }

    /// Copies all memory to be searched out of a copy. Returns whether that succeeded.
    pub(crate) fn keep(&mut self, copy: u32, goes_on: &dyn Fn() -> bool) -> bool {
        let memory = StoppedProcess::copy(copy);
        let of_copy = Still::of_copy(&memory, &self.memory, &self.not_copied);
        let kept = CopiedMemory::of(&of_copy, &self.mappings, Form::Plain, goes_on);
        self.kept = kept.map(|kept| (kept, thread_modules(copy)));
        self.kept.is_some()
    }

    /// Returns the process's own memory.
    pub(crate) fn memory(&self) -> impl Memory + '_ {
        Still { memory: &self.memory, file: None, original: None }
    }

    /// Searches all memory of `from`. `blocks`: address and size of the recorded ones. Returns the
    /// graph and the addresses of its blocks.
    pub(crate) fn look(
        &mut self,
        held: &HeldProcess,
        from: ReadFrom,
        blocks: Vec<(u64, u64)>,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<(HeapGraph, BlockMap), NoGraph> {
        match from {
            ReadFrom::Kept => {
                let (kept, modules) = self.kept.take().ok_or(NoGraph::Gone)?;
                let at = Place { heap: &kept, memory: &kept, local: &|path| kept.local(path), modules };
                self.look_at(at, held, blocks, goes_on)
            }
            ReadFrom::Copy(pid) => {
                let copy = StoppedProcess::copy(pid);
                let original = Arc::clone(&self.memory);
                let not_copied = std::mem::take(&mut self.not_copied);
                self.look_still(&copy, &Still::of_copy(&copy, &original, &not_copied), held, blocks, goes_on)
            }
            ReadFrom::Process => {
                let process = Arc::clone(&self.memory);
                self.look_still(&process, &Still::alone(&process), held, blocks, goes_on)
            }
        }
    }

    fn look_still(
        &mut self,
        heap: &StoppedProcess,
        memory: &Still<'_>,
        held: &HeldProcess,
        blocks: Vec<(u64, u64)>,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<(HeapGraph, BlockMap), NoGraph> {
        // The process itself may have ended, or execed.
        let root = memory.root();
        let local = |path: &str| root.join(path.trim_start_matches('/'));
        let modules = thread_modules(heap.pid());
        self.look_at(Place { heap, memory, local: &local, modules }, held, blocks, goes_on)
    }

    fn look_at(
        &mut self,
        at: Place<'_, impl HeapMemory + Sync, impl Memory>,
        held: &HeldProcess,
        blocks: Vec<(u64, u64)>,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<(HeapGraph, BlockMap), NoGraph> {
        let Place { heap, memory, local, modules } = at;
        let Self { memory: process, plan, room, mappings, kernel, texts, .. } = self;
        let served = process.served();
        if mappings.is_empty() {
            return Err(NoGraph::Gone);
        }
        let mut notes = Vec::new();
        let thread_pointers: Vec<u64> = held.threads.iter().map(|thread| thread.thread_pointer).collect();
        let rundown = match plan {
            Ok(plan) => {
                heapr_glibc_heap::walk(plan, heap, &thread_pointers, room).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        if !held.is_quiet {
            notes.push(
                "a thread was at allocating: blocks that it had just got are not in the graph".to_owned(),
            );
        }
        notes.extend(of_served(served));
        let known = Known::of(blocks, rundown, &mut notes);
        let mut facts = ProcessFacts {
            machine: &HERE,
            mappings: std::mem::take(mappings),
            threads: Vec::new(),
            heap: known.heap,
            untracked: known.untracked,
            agent: held.agent.clone(),
            thread_modules: modules,
            kernel: std::mem::take(kernel),
        };
        let map = BlockMap::new(known.blocks);
        // A file that the stopped process serves itself (FUSE) cannot be opened.
        let is_there = |code: &MappedCode| !served.is_of_file(code.start_avma);
        let code = mapped_code(&facts.mappings, local).into_iter().filter(is_there);
        let mut walker = FrameWalker::new(&HERE, code.collect());
        let threads = held.threads.iter().map(|thread| thread_facts(thread, &mut walker, memory));
        facts.threads = threads.collect();
        let areas = root_areas(&facts, &map, memory);
        let regions = Regions::of(&facts.mappings);
        let found = scan(memory, &map, &areas, &regions, *texts, goes_on).map_err(|cut| match cut {
            Cut::Ended => NoGraph::TooLong,
            Cut::TooManyEdges => NoGraph::TooLarge,
        })?;
        let mut graph = graph_of(found, areas, notes);
        keep_stale(&mut graph, &map, &known.stale);
        Ok((graph, map))
    }
}

/// Memory to be searched.
struct Place<'a, H, M> {
    /// Memory as the heap is read.
    heap: &'a H,
    memory: &'a M,
    /// Maps a path of the process to a path here.
    local: &'a dyn Fn(&str) -> PathBuf,
    modules: Vec<ThreadModule>,
}

/// Returns the modules with thread-local variables, of the process or copy `pid`.
fn thread_modules(pid: u32) -> Vec<ThreadModule> {
    let exe = || std::fs::read_link(heapr_proc::folder(pid).join("exe")).unwrap_or_default();
    // If they are unknown, holders only have less telling names.
    let found = heapr_inject::thread_modules(pid).unwrap_or_default();
    let named = found.into_iter().map(|module| ThreadModule {
        number: module.number,
        path: if module.path.is_empty() { exe().to_string_lossy().into_owned() } else { module.path },
        bytes: module.bytes,
    });
    named.collect()
}

/// Converts the result of a scan to its stored form.
pub(crate) fn graph_of(found: Scanned, areas: Vec<Area>, notes: Vec<String>) -> HeapGraph {
    let mut graph = HeapGraph {
        first_edge: found.first_edge,
        targets: found.targets,
        slots: found.slots,
        grades: found.grades,
        areas: areas.into_iter().map(|area| area.root).collect(),
        roots: found.roots,
        types: found.types,
        type_names: found.type_names,
        texts: found.texts,
        sliced: found.sliced,
        notes,
        ..HeapGraph::default()
    };
    if found.unread_bytes > 0 {
        graph.notes.push(format!("{} bytes could not be read", found.unread_bytes));
    }
    graph.notes.extend(of_mappings(&graph.areas));
    graph
}

/// Returns the code of readable files; `local` maps a path of the process to a path here.
pub(crate) fn mapped_code(mappings: &[Mapping], local: impl Fn(&str) -> PathBuf) -> Vec<MappedCode> {
    let code = mappings.iter().filter(|mapping| mapping.is_executable && mapping.name.starts_with('/'));
    code.map(|mapping| MappedCode {
        start_avma: mapping.start_avma,
        end_avma: mapping.end_avma,
        file_off: mapping.file_off,
        path: local(&mapping.name),
    })
    .collect()
}

pub(crate) fn thread_facts(
    thread: &heapr_inject::HeldThread,
    walker: &mut FrameWalker,
    memory: &impl Memory,
) -> ThreadFacts {
    /// Largest number of frames that are named per stack.
    const FRAMES_MAX: usize = 64;
    let frames = walker.walk(&thread.registers, &|at| memory.word(at), FRAMES_MAX);
    let frames = frames.iter().map(|frame| FrameFacts { pc_avma: frame.pc_avma, end_avma: frame.end_avma });
    ThreadFacts {
        tid: thread.tid,
        name: thread.name.clone(),
        stack_pointer: thread.stack_pointer,
        thread_pointer: thread.thread_pointer,
        registers: thread.registers.clone(),
        frames: frames.collect(),
    }
}

/// Marks blocks as held that the recording has as live and the allocator as free. The freeing call
/// was not seen, and the blocks are no leaks.
fn keep_stale(graph: &mut HeapGraph, map: &BlockMap, stale: &[u64]) {
    if stale.is_empty() {
        return;
    }
    let area = graph.areas.len() as u32;
    let name = "freed without being seen".to_owned();
    graph.areas.push(RootArea { class: RootClass::Unknown, start_avma: 0, end_avma: 0, tid: 0, name });
    let nodes = stale.iter().filter_map(|&address_avma| map.block_at(address_avma));
    let edges = nodes.map(|target| RootEdge { area, offset_bytes: 0, target, grade: EdgeGrade::Start });
    graph.roots.extend(edges);
    graph.notes.push(format!("{} blocks were freed without being seen: they count as held", stale.len()));
}

/// Blocks and heap as known from the recording and the allocator together.
struct Known {
    blocks: Vec<KnownBlock>,
    heap: Option<Vec<(u64, u64)>>,
    untracked: Vec<(u64, u64)>,
    stale: Vec<u64>,
}

impl Known {
    fn of(mut blocks: Vec<(u64, u64)>, rundown: Result<Rundown, String>, notes: &mut Vec<String>) -> Self {
        blocks.sort_unstable();
        blocks.dedup_by_key(|&mut (address_avma, _)| address_avma);
        let as_asked = |&(address_avma, size_bytes): &(u64, u64)| KnownBlock {
            address_avma,
            size_bytes,
            usable_bytes: size_bytes,
        };
        let rundown = match rundown {
            Ok(rundown) => rundown,
            Err(reason) => {
                notes.push(format!(
                    "its allocator's own memory is not known ({reason}): what only memory between blocks refers to is possibly \
                     leaked, not definitely"
                ));
                let blocks = blocks.iter().map(as_asked).collect();
                return Self { blocks, heap: None, untracked: Vec::new(), stale: Vec::new() };
            }
        };
        for finding in rundown.findings() {
            notes.push(format!("the heap is not in order: {finding}"));
        }
        let mut chunks: Vec<(u64, u64)> =
            rundown.blocks().map(|block| (block.address_avma, block.usable_bytes)).collect();
        chunks.sort_unstable();
        let heap = rundown.memory();
        let is_in_heap = |address_avma: u64| {
            let behind = heap.partition_point(|&(_, end_avma)| end_avma <= address_avma);
            heap.get(behind).is_some_and(|&(start_avma, _)| start_avma <= address_avma)
        };
        let (mut known, mut untracked, mut stale) =
            (Vec::with_capacity(blocks.len()), Vec::new(), Vec::new());
        let mut chunks = chunks.into_iter().peekable();
        for block in &blocks {
            while let Some((start_avma, bytes)) = chunks.next_if(|chunk| chunk.0 < block.0) {
                untracked.push((start_avma, start_avma + bytes));
            }
            let chunk = chunks.next_if(|chunk| chunk.0 == block.0);
            let usable_bytes = chunk.map_or(block.1, |(_, usable_bytes)| usable_bytes.max(block.1));
            known.push(KnownBlock { usable_bytes, ..as_asked(block) });
            if chunk.is_none() && is_in_heap(block.0) {
                stale.push(block.0);
            }
        }
        untracked.extend(chunks.map(|(start_avma, bytes)| (start_avma, start_avma + bytes)));
        // A block of another allocator may lie in such a chunk.
        Self { blocks: known, heap: Some(heap), untracked, stale }
    }
}
