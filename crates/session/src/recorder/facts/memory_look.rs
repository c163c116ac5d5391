//! Reads a process's own memory, sorted by the kind of its mappings.

use std::collections::BTreeSet;

use heapr_glibc_heap::HeapMemory as _;
use heapr_inject::StoppedProcess;
use heapr_known::glibc::ARENA_HEAP_BYTES;
use heapr_known::{allocator_libraries, go};
use heapr_proc::smaps::{self, MappingPages};
use heapr_proc::{Mapping, stack_pointers};

use crate::recorder::facts::own_ranges;

/// Size of the guard page below a thread's stack. Some allocators map such pages, too.
const GUARD_BYTES: u64 = 4096;
/// Default size of a thread's stack with its guard page.
const STACK_BYTES: u64 = 8 << 20;
/// Largest number of threads whose stack pointers are read one by one.
const THREADS_MAX: usize = 2048;

/// Anonymous bytes of a process at one moment, resident or swapped out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MemoryLook {
    /// All anonymous bytes.
    pub(crate) total_bytes: u64,
    /// Bytes of the agent's own mappings.
    pub(crate) agent_bytes: u64,
    /// Bytes of files' writable data that were written, and of the zeroed data behind them.
    pub(crate) data_bytes: u64,
    /// Bytes of stacks.
    pub(crate) stack_bytes: u64,
    /// Bytes of the `brk` heap and of the C library's arenas.
    pub(crate) heap_bytes: u64,
    /// Part of `heap_bytes` from `brk`: (start, end, bytes).
    pub(crate) by_brk: Vec<(u64, u64, u64)>,
    /// Bytes of Go's heap.
    pub(crate) go_bytes: u64,
    /// All other mappings: (start, end, bytes).
    pub(crate) mapped: Vec<(u64, u64, u64)>,
    /// File names of libraries that replace malloc.
    pub(crate) malloc_libraries: Vec<String>,
}

impl MemoryLook {
    /// Reads a process. `own_mappings_avma`: address at which the agent lists its mappings.
    /// `has_go`: the process is known to contain Go's runtime.
    pub(crate) fn of(pid: u32, own_mappings_avma: u64, has_go: bool) -> Option<Self> {
        let memory = StoppedProcess::of(pid);
        let found = smaps::read(pid).ok()?;
        let own = own_ranges::listed(&memory, own_mappings_avma);
        let own = if own_ranges::has_agent_file(&found) { own } else { own_ranges::of_attached(pid, own) };
        let pointers = if heapr_proc::threads(pid).map_or(0, Iterator::count) <= THREADS_MAX {
            stack_pointers(pid)
        } else {
            Vec::new()
        };
        let is_arena = |mapping: &Mapping| is_arena(&memory, mapping);
        let ends_as_stack = |mapping: &Mapping| ends_as_stack(&memory, mapping.end_avma);
        let loaded_end = |mapping: &Mapping| loaded_end(&memory, mapping.start_avma);
        Some(Self::sorted(&found, &own, &pointers, has_go, (is_arena, ends_as_stack, loaded_end)))
    }

    /// Bytes of the process without those of its agent.
    pub(crate) fn own_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.agent_bytes)
    }

    /// Sorts mappings by kind. `is_arena`: whether a mapping is an arena of the C library.
    /// `ends_as_stack`: whether a mapping ends as the C library's thread stacks do. `loaded_end`:
    /// end in memory of the module that begins with a mapping.
    fn sorted(
        found: &[MappingPages],
        own: &BTreeSet<(u64, u64)>,
        pointers: &[u64],
        has_go: bool,
        (is_arena, ends_as_stack, loaded_end): (
            impl Fn(&Mapping) -> bool,
            impl Fn(&Mapping) -> bool,
            impl Fn(&Mapping) -> Option<u64>,
        ),
    ) -> Self {
        let mut look = Self::default();
        let begins_go = |mapping: &Mapping| mapping.start_avma == go::ARENAS_AVMA.start;
        let is_go = has_go || found.iter().any(|found| begins_go(&found.mapping));
        // As of Go 1.26 the arenas lie anywhere, where the program is known to be Go's.
        let is_go_arena = |mapping: &Mapping| {
            let is_anywhere =
                has_go && mapping.start_avma.is_multiple_of(go::ARENA_BYTES) && mapping.name.is_empty();
            is_go && go::ARENAS_AVMA.contains(&mapping.start_avma) || is_anywhere
        };
        let stacks = StackSizes::of(found, pointers);
        let mut before = Before::default();
        for MappingPages { mapping, pages } in found {
            let bytes = pages.anonymous_bytes.saturating_add(pages.swapped_bytes);
            let is_file = mapping.inode != 0;
            if is_file && mapping.file_off == 0 {
                before.module_end = loaded_end(mapping);
            }
            if is_file {
                look.note_library(file_name(&mapping.name));
            }
            let is_agent_file = file_name(&mapping.name).starts_with("heapr-agent-");
            let is_data = is_file || (mapping.start_avma == before.data_end && mapping.name.is_empty());
            let is_guarded = mapping.start_avma == before.guard_end;
            before.step(mapping);
            if bytes == 0 || mapping.is_shared {
                continue;
            }
            look.total_bytes = look.total_bytes.saturating_add(bytes);
            let is_own = || {
                let at_or_before = own.range(..=(mapping.start_avma, u64::MAX)).next_back();
                at_or_before.is_some_and(|&(_, end)| mapping.start_avma < end)
            };
            let is_like_one = || stacks.has(mapping.bytes()) || ends_as_stack(mapping);
            let is_stack = || is_guarded && is_like_one() || is_of_thread(pointers, mapping);
            if mapping.name == "[heap]" {
                look.by_brk.push((mapping.start_avma, mapping.end_avma, bytes));
            }
            // The agent's file, with the zeroed data behind it.
            let is_of_agent_file = is_data && if is_file { is_agent_file } else { before.was_agent_file };
            before.was_agent_file = is_file && is_agent_file;
            let part = if is_own() || is_of_agent_file {
                &mut look.agent_bytes
            } else if is_data {
                look.add_data(mapping, bytes, before.module_end.filter(|_| !is_file));
                continue;
            } else if mapping.name == "[heap]" || (mapping.name.is_empty() && is_arena(mapping)) {
                &mut look.heap_bytes
            } else if is_go_arena(mapping) {
                // Most of the stacks of Go's threads are in its heap, too.
                &mut look.go_bytes
            } else if mapping.name.starts_with("[stack") || is_stack() {
                &mut look.stack_bytes
            } else {
                look.mapped.push((mapping.start_avma, mapping.end_avma, bytes));
                continue;
            };
            *part = part.saturating_add(bytes);
        }
        look
    }

    fn note_library(&mut self, file: &str) {
        if allocator_libraries::is_library(file) && !self.malloc_libraries.iter().any(|known| known == file) {
            self.malloc_libraries.push(file.to_owned());
        }
    }

    /// Adds a mapping that begins with data of a module, which ends at `module_end`.
    fn add_data(&mut self, mapping: &Mapping, bytes: u64, module_end: Option<u64>) {
        // The kernel merges adjacent mappings with a module's zeroed data.
        let end_avma = module_end.unwrap_or(u64::MAX);
        let mut data_bytes = bytes;
        if end_avma < mapping.end_avma {
            data_bytes = bytes.min(end_avma.saturating_sub(mapping.start_avma));
            let behind_avma = end_avma.max(mapping.start_avma);
            self.mapped.push((behind_avma, mapping.end_avma, bytes - data_bytes));
        }
        self.data_bytes = self.data_bytes.saturating_add(data_bytes);
    }
}

/// Facts of the mappings before one: data continues in nameless memory, guard pages lie below
/// stacks.
#[derive(Default)]
struct Before {
    /// End of the writable mapping of a file.
    data_end: u64,
    /// End of the guard of a stack.
    guard_end: u64,
    /// End of the module in memory.
    module_end: Option<u64>,
    was_agent_file: bool,
}

impl Before {
    fn step(&mut self, mapping: &Mapping) {
        let is_data = mapping.inode != 0 && mapping.is_writable;
        self.data_end = if is_data { mapping.end_avma } else { 0 };
        let is_guard = !mapping.is_readable && mapping.bytes() == GUARD_BYTES;
        self.guard_end = if is_guard { mapping.end_avma } else { 0 };
    }
}

/// Sizes that stacks of threads have.
///
/// A running thread's stack pointer is unknown, and the C library caches stacks of ended threads.
/// Such stacks are recognised by the size of another stack, the default size, or the thread
/// descriptor at the end.
enum StackSizes {
    Unknown,
    /// Sizes of the stacks of known threads.
    OfThreads(Vec<u64>),
}

impl StackSizes {
    fn of(found: &[MappingPages], pointers: &[u64]) -> Self {
        if pointers.is_empty() {
            return Self::Unknown;
        }
        let stacks = found.iter().filter(|found| is_of_thread(pointers, &found.mapping));
        Self::OfThreads(stacks.map(|found| found.mapping.bytes()).collect())
    }

    fn has(&self, bytes: u64) -> bool {
        match self {
            Self::Unknown => true,
            Self::OfThreads(sizes) => {
                sizes.contains(&bytes) || [STACK_BYTES, STACK_BYTES - GUARD_BYTES].contains(&bytes)
            }
        }
    }
}

/// True if a thread's stack pointer is in a mapping.
fn is_of_thread(pointers: &[u64], mapping: &Mapping) -> bool {
    pointers.iter().any(|&pointer| mapping.contains(pointer))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns the end in memory of the module that begins at an address, by its program headers,
/// rounded up to a page.
fn loaded_end(memory: &StoppedProcess, start_avma: u64) -> Option<u64> {
    const HEADER_WORDS: usize = 8;
    const SEGMENT_WORDS: usize = 7;
    const SEGMENTS_MAX: usize = 64;
    const PT_LOAD: u64 = 1;
    const PAGE_BYTES: u64 = 4096;
    let words = |at_avma: u64, count: usize| {
        let mut bytes = vec![0; count * 8];
        let is_read = memory.read(at_avma, &mut bytes) == bytes.len();
        is_read.then(|| {
            bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect::<Vec<_>>()
        })
    };
    let header = words(start_avma, HEADER_WORDS)?;
    let &[magic, .., flags_and_sizes, counts] = header.as_slice() else { return None };
    let (segment_bytes, count) = (flags_and_sizes >> 48, (counts & 0xffff) as usize);
    if magic as u32 != u32::from_le_bytes(*b"\x7fELF")
        || segment_bytes != 8 * SEGMENT_WORDS as u64
        || count > SEGMENTS_MAX
    {
        return None;
    }
    let segments = words(start_avma.checked_add(header[4])?, count * SEGMENT_WORDS)?;
    let loaded = segments.chunks_exact(SEGMENT_WORDS).filter(|segment| segment[0] & 0xffff_ffff == PT_LOAD);
    // The first segment begins at the header.
    let begins = loaded.clone().find(|segment| segment[1] == 0)?[2];
    let end = loaded.map(|segment| segment[2].saturating_add(segment[5])).max()?;
    start_avma.checked_add(end.checked_sub(begins)?)?.checked_next_multiple_of(PAGE_BYTES)
}

/// Whether a mapping ends with glibc's thread descriptor, and so is a thread's stack.
fn ends_as_stack(memory: &StoppedProcess, end_avma: u64) -> bool {
    const FACTS_BYTES: usize = 4096;
    /// Alignment of the descriptor; its first and third word hold its own address.
    const ALIGN_WORDS: usize = 8;
    let mut bytes = [0; FACTS_BYTES];
    let start_avma = end_avma.saturating_sub(FACTS_BYTES as u64);
    if memory.read(start_avma, &mut bytes) != FACTS_BYTES {
        return false;
    }
    let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
    (0..words.len() - ALIGN_WORDS).step_by(ALIGN_WORDS).any(|at| {
        let own_avma = start_avma + 8 * at as u64;
        words[at] == own_avma && words[at + 2] == own_avma
    })
}

/// Whether a mapping begins with the header of a heap of a glibc arena: arena, previous heap, size,
/// usable size.
fn is_arena(memory: &StoppedProcess, mapping: &Mapping) -> bool {
    if !mapping.start_avma.is_multiple_of(ARENA_HEAP_BYTES) || mapping.bytes() > ARENA_HEAP_BYTES {
        return false;
    }
    let mut words = [None; 4];
    let places = [0, 8, 16, 24].map(|offset| mapping.start_avma + offset);
    memory.read_words(&places, &mut words);
    let [Some(arena), Some(before), Some(size), Some(usable)] = words else { return false };
    arena != 0
        && before.is_multiple_of(ARENA_HEAP_BYTES)
        && size <= usable
        && usable <= mapping.bytes()
        && size.is_multiple_of(4096)
        && size > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(text: &str, own: &[(u64, u64)], pointers: &[u64]) -> MemoryLook {
        let found = smaps::parse(text.as_bytes()).unwrap();
        let is_arena = |mapping: &Mapping| mapping.start_avma == 0x7000_0400_0000;
        let loaded_end = |mapping: &Mapping| (mapping.start_avma == 0x40_0000).then_some(0x40_3000);
        let own = own.iter().copied().collect();
        let ends_as_stack = |mapping: &Mapping| mapping.end_avma == 0x7000_02c0_0000;
        MemoryLook::sorted(&found, &own, pointers, false, (is_arena, ends_as_stack, loaded_end))
    }

    #[test]
    fn what_is_mapped_next_to_a_modules_zeroed_data_is_none_of_it() {
        let text = "\
            400000-401000 rw-p 00000000 08:01 7   /usr/bin/it\nAnonymous: 4 kB\n\
            401000-409000 rw-p 00000000 00:00 0\nAnonymous: 28 kB\n";
        let found = look(text, &[], &[]);
        assert_eq!((found.data_bytes, found.total_bytes), (12 << 10, 32 << 10));
        assert_eq!(found.mapped, [(0x40_3000, 0x40_9000, 20 << 10)]);
    }

    #[test]
    fn the_stack_of_a_thread_is_told_by_its_end() {
        let memory = StoppedProcess::of(std::process::id());
        let mapping_of = |address: &u8| {
            let address_avma = std::ptr::from_ref(address) as u64;
            let mappings = heapr_proc::mappings::read(std::process::id()).unwrap();
            mappings.into_iter().find(|mapping| mapping.contains(address_avma)).unwrap()
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let local = 7;
                let end_avma = mapping_of(&local).end_avma;
                assert!(ends_as_stack(&memory, end_avma) && !ends_as_stack(&memory, end_avma - 8192));
            });
        });
    }

    #[test]
    fn a_module_ends_with_its_last_segment() {
        let memory = StoppedProcess::of(std::process::id());
        let mappings = heapr_proc::mappings::read(std::process::id()).unwrap();
        let is_library = |mapping: &&Mapping| mapping.name.contains("libc.so") && mapping.file_off == 0;
        let library: Vec<&Mapping> = mappings.iter().filter(is_library).collect();
        let end = loaded_end(&memory, library[0].start_avma).unwrap();
        // The end lies behind all mappings of the file.
        let last = mappings.iter().rfind(|mapping| mapping.name == library[0].name).unwrap();
        assert!(end >= last.end_avma && end < last.end_avma + (1 << 20), "{end:x} {last:?}");
        assert_eq!(loaded_end(&memory, last.start_avma), None);
    }

    #[test]
    fn each_mapping_is_one_thing() {
        let text = "\
            400000-401000 rw-p 00000000 08:01 7   /usr/bin/it\nAnonymous: 4 kB\n\
            401000-402000 rw-p 00000000 00:00 0\nAnonymous: 8 kB\n\
            500000-600000 rw-p 00000000 00:00 0   [heap]\nAnonymous: 16 kB\n\
            c000000000-c004000000 rw-p 00000000 00:00 0\nAnonymous: 32 kB\n\
            700000000000-700000100000 rw-p 00000000 00:00 0\nAnonymous: 64 kB\nSwap: 64 kB\n\
            700001000000-700001100000 rw-p 00000000 00:00 0\nAnonymous: 256 kB\n\
            700002000000-700002001000 ---p 00000000 00:00 0\n\
            700002001000-700002800000 rw-p 00000000 00:00 0\nAnonymous: 512 kB\n\
            700002900000-700002901000 ---p 00000000 00:00 0\n\
            700002901000-700002a00000 rw-p 00000000 00:00 0\nAnonymous: 64 kB\n\
            700002a00000-700002a01000 ---p 00000000 00:00 0\n\
            700002a01000-700002c00000 rw-p 00000000 00:00 0\nAnonymous: 32 kB\n\
            700003000000-700003100000 rw-p 00000000 00:00 0\nAnonymous: 1024 kB\n\
            700004000000-700004100000 rw-p 00000000 00:00 0\nAnonymous: 2048 kB\n\
            700005000000-700005100000 rw-s 00000000 00:01 9   /memfd:x\nAnonymous: 4096 kB\n\
            700006000000-700006100000 r-xp 00000000 08:01 9   /usr/lib/libjemalloc.so.2\n";
        let own = [(0x7000_0100_0000, 0x7000_0110_0000)];
        let found = look(text, &own, &[0x7000_0300_1000]);
        assert_eq!(found.data_bytes, 12 << 10);
        assert_eq!(found.heap_bytes, (16 + 2048) << 10);
        assert_eq!(found.go_bytes, 32 << 10);
        assert_eq!(found.agent_bytes, 256 << 10);
        assert_eq!(found.stack_bytes, (512 + 32 + 1024) << 10);
        // One of them follows an inaccessible page, as a stack does.
        let mapped =
            [(0x7000_0000_0000, 0x7000_0010_0000, 128 << 10), (0x7000_0290_1000, 0x7000_02a0_0000, 64 << 10)];
        assert_eq!(found.mapped, mapped);
        assert_eq!(found.total_bytes, (12 + 16 + 2048 + 32 + 256 + 1568 + 64 + 128) << 10);
        assert_eq!(found.malloc_libraries, ["libjemalloc.so.2"]);
    }
}
