//! Root areas: memory outside of blocks, and registers, in which the program may hold pointers to
//! blocks. Memory that only the kernel, a device or heapr writes is left out.
//!
//! ```text
//!  thread      registers, stack from the stack pointer on, thread-local memory
//!  mapping     of a module           pages that the process has written (.data, .bss, relocated constants)
//!              anonymous             less the allocator's own memory, less stacks, less the recorder's
//!              of an allocator       that is not known: what lies between blocks, in doubt
//!              shared                what of it is in memory
//!  heap        chunks in use that the recording does not know
//! ```
//! Memory that is known to be dead is left out: free chunks, the unused part of stacks, the agent.
//! Memory in doubt is scanned: a missed leak does no harm, a wrong one does.

use heapr_known::machine::Machine;
use heapr_proc::Mapping;
use heapr_proc::ranges::joined;
use heapr_trace::{RootArea, RootClass};

pub use crate::modules::Regions;

use crate::block_map::BlockMap;
use crate::memory::Memory;
use crate::modules::{is_looked_through, is_private_anonymous, without};
use crate::stacks::{Descriptors, StackBlock, stack_block};
use crate::thread_modules::{LocalPlace, ThreadModule, local_places};

/// Bytes of a thread's vector of thread-local blocks before the address in its descriptor. The
/// vector's heap block begins there.
const THREAD_VECTOR_HEAD_BYTES: u64 = 16;

/// A stopped thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadFacts {
    /// Thread id.
    pub tid: u32,
    /// Name of the thread.
    pub name: String,
    /// Stack pointer at the stop.
    pub stack_pointer: u64,
    /// Address of the thread's descriptor.
    pub thread_pointer: u64,
    /// All registers as words, vector registers too.
    pub registers: Vec<u64>,
    /// Frames of the stack, innermost first.
    pub frames: Vec<FrameFacts>,
}

/// A frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameFacts {
    /// Address of the instruction that the frame continues with.
    pub pc_avma: u64,
    /// Exclusive end of the frame; the frame begins at the end of the next inner one.
    pub end_avma: u64,
}

/// A stopped process.
#[derive(Debug, Clone, Default)]
pub struct ProcessFacts {
    /// The processor of the process; a core file may be of another one than heapr.
    pub machine: &'static Machine,
    /// Mappings, by address.
    pub mappings: Vec<Mapping>,
    /// All threads.
    pub threads: Vec<ThreadFacts>,
    /// Memory of the C library's allocator; live data in it lies in blocks only. `None`: unknown.
    pub heap: Option<Vec<(u64, u64)>>,
    /// Chunks in use that the recording does not know.
    pub untracked: Vec<(u64, u64)>,
    /// Memory of the agent.
    pub agent: Vec<(u64, u64)>,
    /// Modules with thread-local variables.
    pub thread_modules: Vec<ThreadModule>,
    /// Words that the kernel holds for the program, each list with its purpose.
    pub kernel: Vec<(String, Vec<u64>)>,
}

/// A root area and the memory that is scanned for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    /// The area as it is stored in the trace.
    pub root: RootArea,
    /// Parts of the area that are read.
    pub pieces: Vec<(u64, u64)>,
    /// Root words outside of memory: registers, or words that the kernel holds.
    pub words: Vec<u64>,
    /// Whether the area's memory may be unused, so that a block found from here may be held by no
    /// live pointer.
    pub is_doubtful: bool,
    /// Block whose contents the area is; the block is scanned as the area and not once more as a
    /// block.
    pub block: Option<u32>,
}

impl Area {
    /// Creates an area of a whole range.
    #[must_use]
    pub fn new(class: RootClass, (start_avma, end_avma): (u64, u64), name: &str) -> Self {
        Self {
            root: RootArea { class, start_avma, end_avma, tid: 0, name: name.to_owned() },
            pieces: vec![(start_avma, end_avma)],
            words: Vec::new(),
            is_doubtful: false,
            block: None,
        }
    }
}

/// Returns all areas to scan. `map`: the live blocks.
pub fn root_areas(facts: &ProcessFacts, map: &BlockMap, memory: &impl Memory) -> Vec<Area> {
    let mut areas = Vec::new();
    let mut taken = facts.agent.clone();
    for thread in &facts.threads {
        of_thread(thread, facts, map, memory, &mut areas, &mut taken);
    }
    for (what, words) in &facts.kernel {
        let mut area = Area::new(RootClass::Kernel, (0, words.len() as u64 * 8), what);
        area.pieces.clear();
        area.words.clone_from(words);
        areas.push(area);
    }
    of_ended_threads(facts, memory, &mut areas, &mut taken);
    let heap = facts.heap.as_deref().unwrap_or_default();
    taken.extend(heap);
    let taken = joined(taken);
    let mut module: Option<&Mapping> = None;
    for mapping in &facts.mappings {
        // A mapping without a file right behind a module's data is the rest of this data (.bss).
        let continues = module.is_some_and(|module| module.end_avma == mapping.start_avma);
        let owner = module.filter(|_| continues && is_private_anonymous(mapping) && mapping.name.is_empty());
        areas.extend(of_mapping(mapping, owner, facts.heap.is_some(), map, memory, &taken));
        module = Some(mapping).filter(|mapping| mapping.inode != 0 && !mapping.is_shared);
    }
    areas.extend(of_untracked(&facts.untracked));
    // Stack bounds come from the target's memory and may be wrong: only mapped parts are scanned.
    let mapped = facts.mappings.iter().map(|mapping| (mapping.start_avma, mapping.end_avma));
    let mapped = joined(mapped.collect());
    for area in &mut areas {
        area.pieces = both(&area.pieces, &mapped);
    }
    areas
}

fn of_thread(
    thread: &ThreadFacts,
    facts: &ProcessFacts,
    map: &BlockMap,
    memory: &impl Memory,
    areas: &mut Vec<Area>,
    taken: &mut Vec<(u64, u64)>,
) {
    let sp_avma = thread.stack_pointer;
    let mut registers = Area::new(RootClass::Registers, (0, 0), &thread.name);
    registers.root.end_avma = thread.registers.len() as u64 * 8;
    registers.pieces.clear();
    registers.words = thread.registers.clone();
    // A thread whose stack is a heap block holds this block.
    if let Some(hit) = map.find(sp_avma) {
        registers.words.push(map.start_avma(hit.block as usize));
    }
    let descriptor = &facts.machine.descriptor;
    let block = stack_block(descriptor, memory, thread.thread_pointer);
    let stack = match block {
        Some(block) => Some((block.start_avma, block.end_avma)),
        None => kernel_made_stack(facts, thread),
    };
    let vector_at_avma = thread.thread_pointer.wrapping_add(descriptor.variables_list_at);
    if let Some(vector_avma) = memory.word(vector_at_avma) {
        registers.words.push(vector_avma.wrapping_sub(THREAD_VECTOR_HEAD_BYTES));
    }
    let push = |areas: &mut Vec<Area>, mut area: Area| {
        area.root.tid = thread.tid;
        area.root.name.clone_from(&thread.name);
        areas.push(area);
    };
    push(areas, registers);
    let locals = local_places(&facts.thread_modules, &thread.name, vector_at_avma, map, memory);
    let in_locals = locals.iter().filter(|place| place.block.is_none());
    let in_locals: Vec<_> = in_locals.map(|place| (place.start_avma, place.end_avma)).collect();
    taken.extend(&in_locals);
    locals.iter().for_each(|place| of_locals(thread.tid, place, map, areas));
    let Some((start_avma, end_avma)) = stack else { return };
    let end_of_frames = block.map_or(end_avma, |block| block.descriptor_avma);
    let is_own = (start_avma..end_avma).contains(&sp_avma);
    // A thread that runs on another stack may return to any depth of this one: all of it is
    // scanned.
    let low_avma = sp_avma.saturating_sub(facts.machine.red_zone_bytes);
    let first_avma = if is_own { low_avma.max(start_avma) & !7 } else { start_avma };
    let mut rest_avma = first_avma;
    if is_own {
        for (number, frame) in thread.frames.iter().enumerate() {
            if frame.end_avma <= rest_avma || frame.end_avma > end_of_frames {
                break;
            }
            let mut area = Area::new(RootClass::Frame, (rest_avma, frame.end_avma), "");
            area.root.tid = thread.tid;
            area.root.name = format!("{number} {:x} {}", frame.pc_avma, thread.name);
            areas.push(area);
            rest_avma = frame.end_avma;
        }
    }
    if rest_avma < end_of_frames {
        let mut area = Area::new(RootClass::Stack, (rest_avma, end_of_frames), "");
        area.pieces = without((rest_avma, end_of_frames), &joined(in_locals));
        push(areas, area);
    }
    if end_of_frames < end_avma {
        push(areas, Area::new(RootClass::ThreadLocal, (end_of_frames, end_avma), ""));
    }
    // Memory below the stack pointer is dead: the whole stack is taken out of the mappings.
    taken.push((start_avma, end_avma));
}

/// Adds the area of a thread's variables of one module.
fn of_locals(tid: u32, place: &LocalPlace, map: &BlockMap, areas: &mut Vec<Area>) {
    let mut area = Area::new(RootClass::ThreadLocal, (place.start_avma, place.end_avma), &place.name);
    area.root.tid = tid;
    area.block = place.block;
    // The thread also holds the block in which its variables lie.
    if let Some(block) = place.block {
        let range = (place.start_avma, place.start_avma);
        let mut holds = Area::new(RootClass::ThreadLocal, range, &place.name);
        holds.root.tid = tid;
        holds.pieces.clear();
        holds.words = vec![map.start_avma(block as usize)];
        areas.push(holds);
    }
    areas.push(area);
}

/// Takes the stacks of ended threads out of the scan: the C library only caches them for later
/// threads. The descriptor of a thread that is not joined yet remains a root: it holds the result.
fn of_ended_threads(
    facts: &ProcessFacts,
    memory: &impl Memory,
    areas: &mut Vec<Area>,
    taken: &mut Vec<(u64, u64)>,
) {
    const MAPPINGS_MAX: usize = 20_000;
    let live: Vec<u64> = facts.threads.iter().map(|thread| thread.thread_pointer).collect();
    let Some(descriptors) = Descriptors::of(&facts.machine.descriptor, memory, &live) else { return };
    let anonymous = facts
        .mappings
        .iter()
        .filter(|mapping| is_private_anonymous(mapping) && mapping.is_writable && mapping.name.is_empty());
    for mapping in anonymous.take(MAPPINGS_MAX) {
        let Some(ended) = descriptors.ended_before(memory, mapping.end_avma) else { continue };
        let StackBlock { start_avma, descriptor_avma, end_avma } = ended.block;
        taken.push((start_avma, end_avma));
        if !ended.is_done {
            let mut area = Area::new(RootClass::ThreadLocal, (descriptor_avma, end_avma), "ended thread");
            area.root.tid = 0;
            areas.push(area);
        }
    }
}

/// Bounds of the first thread's stack, if this thread, whose stack the kernel made, is the first.
fn kernel_made_stack(facts: &ProcessFacts, thread: &ThreadFacts) -> Option<(u64, u64)> {
    let mapping = facts.mappings.iter().find(|mapping| mapping.name == "[stack]")?;
    let range = (mapping.start_avma, mapping.end_avma);
    let is_first = mapping.contains(thread.stack_pointer)
        || facts.threads.first().is_some_and(|first| first.thread_pointer == thread.thread_pointer);
    is_first.then_some(range)
}

fn of_mapping(
    mapping: &Mapping,
    owner: Option<&Mapping>,
    is_heap_known: bool,
    map: &BlockMap,
    memory: &impl Memory,
    taken: &[(u64, u64)],
) -> Option<Area> {
    if !is_looked_through(mapping) {
        return None;
    }
    let range = (mapping.start_avma, mapping.end_avma);
    let left = without(range, taken);
    if left.is_empty() {
        return None;
    }
    let is_file = mapping.inode != 0;
    let written = memory.written_parts(range.0, range.1);
    // Read-only shared memory and anonymous memory without a written page hold no pointers of the
    // program. A file whose written pages are unknown is scanned.
    if mapping.is_shared && !mapping.is_writable || !is_file && written.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    let pieces = match written {
        // Reserved address space.
        None if !mapping.is_readable => return None,
        Some(written) if !mapping.is_shared => both(&left, &written),
        // Code of a file: pointers written into it are not expected.
        None if is_file && mapping.is_executable => return None,
        _ if mapping.is_shared => both(&left, &memory.shared_parts(mapping)),
        _ => left,
    };
    if pieces.is_empty() {
        return None;
    }
    let has_blocks = map.has_any(range.0, range.1);
    let (class, name) = match owner {
        Some(owner) => (RootClass::Global, owner.name.as_str()),
        None if mapping.is_shared => (RootClass::Shared, mapping.name.as_str()),
        None if is_file => (RootClass::Global, mapping.name.as_str()),
        // Memory that holds blocks of an unknown allocator: which parts are in use is unknown, too.
        None if has_blocks && !is_heap_known => (RootClass::Unknown, mapping.name.as_str()),
        None => (RootClass::Mapping, mapping.name.as_str()),
    };
    let mut area = Area::new(class, range, name);
    area.pieces = pieces;
    area.is_doubtful = class == RootClass::Unknown;
    Some(area)
}

/// Intersection of two lists of ranges, each by address.
fn both(one: &[(u64, u64)], other: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for &(start_avma, end_avma) in one {
        let first = other.partition_point(|&(_, other_end_avma)| other_end_avma <= start_avma);
        for &(other_avma, other_end_avma) in &other[first..] {
            if other_avma >= end_avma {
                break;
            }
            found.push((start_avma.max(other_avma), end_avma.min(other_end_avma)));
        }
    }
    found
}

/// Areas of untracked chunks; chunks near each other share an area.
fn of_untracked(chunks: &[(u64, u64)]) -> Vec<Area> {
    const APART_BYTES: u64 = 64 << 20;
    let mut areas: Vec<Area> = Vec::new();
    for &chunk in chunks {
        match areas.last_mut() {
            Some(area) if chunk.0.saturating_sub(area.root.end_avma) < APART_BYTES => {
                area.root.end_avma = chunk.1;
                area.pieces.push(chunk);
            }
            _ => areas.push(Area::new(RootClass::Untracked, chunk, "")),
        }
    }
    areas
}
