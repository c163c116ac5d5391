//! Reads a process's own memory: `resident`'s account of its mappings, summed by kind.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use heapr_glibc_heap::HeapMemory;
use heapr_inject::StoppedProcess;
use heapr_known::allocator_libraries;
use heapr_proc::{PageMap, PageState, smaps, stack_pointers};
use heapr_resident::{Account, Class, PageStates, Piece, Subject, data_files};
use heapr_trace::{MemoryReading, ProcessIndex, ResidentFile};

use crate::recorder::facts::own_ranges;

/// Largest number of threads whose stack pointers are read one by one.
const THREADS_MAX: usize = 2048;
/// Number of readings of which one must be whole.
const TRIES: usize = 3;
/// Largest number of files that a reading names, and smallest resident part of such a file.
const FILES_MAX: usize = 16;
const FILE_BYTES_MIN: u64 = 1 << 20;

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
    /// Number of pieces of `heap_bytes`.
    pub(crate) heap_pieces: u64,
    /// Resident files that are no programs or libraries, largest first.
    pub(crate) files: Vec<ResidentFile>,
}

impl MemoryLook {
    /// Reads a process. `own_mappings_avma`: address at which the agent lists its mappings.
    /// `has_go`: the process is known to contain Go's runtime. `None`: it ends, or its threads end
    /// faster than they can be looked at.
    pub(crate) fn of(pid: u32, own_mappings_avma: u64, has_go: bool) -> Option<Self> {
        (0..TRIES).find_map(|_| Self::of_once(pid, own_mappings_avma, has_go))
    }

    fn of_once(pid: u32, own_mappings_avma: u64, has_go: bool) -> Option<Self> {
        let memory = StoppedProcess::of(pid);
        let mappings = smaps::read(pid).ok()?;
        let own = own_ranges::listed(&memory, own_mappings_avma);
        let own = if own_ranges::has_agent_file(&mappings) { own } else { own_ranges::of_attached(pid, own) };
        let own = own_ranges::of_whole_mappings(&own, &mappings);
        let is_told_by_pointers = heapr_proc::threads(pid).map_or(0, Iterator::count) <= THREADS_MAX;
        let subject = Subject {
            mappings,
            stack_pointers: if is_told_by_pointers { stack_pointers(pid) } else { Vec::new() },
            has_go,
            recorder_avma: own.into_iter().collect(),
            ..Subject::default()
        };
        let account = Account::of_mappings(&subject, &memory, &LazyPages::of(pid));
        let look = Self::of_account(&account, &subject);
        (!look.has_lost_a_stack(&subject, &memory)).then_some(look)
    }

    /// Whether a mapping behind an inaccessible one, as a thread's stack is, has gone since the
    /// mappings were listed. Then it is no longer known what it was.
    fn has_lost_a_stack(&self, subject: &Subject, memory: &impl HeapMemory) -> bool {
        let is_mapped = |start_avma| self.mapped.iter().any(|&(start, ..)| start == start_avma);
        subject.mappings.windows(2).any(|pair| {
            let [below, own] = pair else { return false };
            below.mapping.end_avma == own.mapping.start_avma
                && !below.mapping.is_readable
                && is_mapped(own.mapping.start_avma)
                && memory.read(own.mapping.end_avma.saturating_sub(8), &mut [0; 8]) == 0
        })
    }

    /// Bytes of the process without those of its agent.
    pub(crate) fn own_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.agent_bytes)
    }

    /// Entry of the reading in the file.
    pub(crate) fn reading(&self, process: ProcessIndex, time_ns: u64) -> MemoryReading {
        MemoryReading {
            time_ns,
            process,
            anonymous_bytes: self.own_bytes(),
            heap_bytes: self.heap_bytes,
            heap_pieces: self.heap_pieces,
            stack_bytes: self.stack_bytes,
            data_bytes: self.data_bytes,
            files: self.files.clone(),
        }
    }

    /// Sums an account of a process's own memory by kind.
    fn of_account(account: &Account, subject: &Subject) -> Self {
        let mut look = Self::default();
        for piece in account.pieces.iter().filter(|piece| piece.pages.own_bytes() > 0) {
            look.add(piece);
            look.heap_pieces += u64::from(piece.class == Class::GlibcHeap);
        }
        look.files = large_files(subject);
        for found in &subject.mappings {
            let bytes = found.pages.own_bytes();
            if found.mapping.name == "[heap]" && bytes > 0 {
                look.by_brk.push((found.mapping.start_avma, found.mapping.end_avma, bytes));
            }
            if found.mapping.inode != 0 && found.mapping.is_executable {
                look.note_library(found.mapping.name.rsplit('/').next().unwrap_or_default());
            }
        }
        look
    }

    fn add(&mut self, piece: &Piece) {
        let bytes = piece.pages.own_bytes();
        self.total_bytes = self.total_bytes.saturating_add(bytes);
        let sum = match piece.class {
            Class::Recorder => &mut self.agent_bytes,
            // Written pages of a file that is no program's are data, too.
            Class::WrittenData | Class::Files | Class::Code | Class::ReadOnlyData | Class::SharedMemory => {
                &mut self.data_bytes
            }
            Class::ThreadStacks => &mut self.stack_bytes,
            Class::GlibcHeap => &mut self.heap_bytes,
            // Most of the stacks of Go's threads are in its heap, too.
            Class::GoHeap => &mut self.go_bytes,
            _ => {
                let Range { start, end } = piece.range_avma;
                self.mapped.push((start, end, bytes));
                return;
            }
        };
        *sum = sum.saturating_add(bytes);
    }

    fn note_library(&mut self, file: &str) {
        if allocator_libraries::is_library(file) && !self.malloc_libraries.iter().any(|known| known == file) {
            self.malloc_libraries.push(file.to_owned());
        }
    }
}

/// Files with most resident bytes.
fn large_files(subject: &Subject) -> Vec<ResidentFile> {
    let mut sums: HashMap<&str, ResidentFile> = HashMap::new();
    for (mapping, bytes) in data_files(&subject.mappings) {
        let sum = sums.entry(mapping.name.as_str()).or_default();
        sum.bytes = sum.bytes.saturating_add(bytes);
        sum.mapped_bytes = sum.mapped_bytes.saturating_add(mapping.bytes());
    }
    let named = |(path, file): (&str, ResidentFile)| ResidentFile { path: path.to_owned(), ..file };
    let mut files: Vec<ResidentFile> =
        sums.into_iter().filter(|(_, file)| file.bytes >= FILE_BYTES_MIN).map(named).collect();
    files.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
    files.truncate(FILES_MAX);
    files
}

/// Page states of a process, which are seldom needed: only where a mapping has several owners.
struct LazyPages {
    pid: u32,
    pages: OnceCell<Option<PageMap>>,
}

impl LazyPages {
    /// Largest number of pages whose states are read at once. A mapping with more is divided by
    /// its addresses.
    const PAGES_MAX: usize = 1 << 15;

    fn of(pid: u32) -> Self {
        Self { pid, pages: OnceCell::new() }
    }
}

impl PageStates for LazyPages {
    fn pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<PageState>> {
        if page_count > Self::PAGES_MAX {
            return None;
        }
        let pages = self.pages.get_or_init(|| PageMap::of_process(self.pid).ok());
        pages.as_ref()?.pages(start_avma, page_count)
    }
}

#[cfg(test)]
mod tests {
    use heapr_proc::Mapping;

    use super::*;

    /// Memory with single words; other words are 0, and none lies from 0x7000_0500_0000 on.
    struct Words(Vec<(u64, u64)>);

    impl HeapMemory for Words {
        fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
            if address_avma >= 0x7000_0500_0000 {
                return 0;
            }
            for (at, byte) in into.iter_mut().enumerate() {
                let place_avma = address_avma + at as u64;
                let word = self.0.iter().find(|(start, _)| (*start..*start + 8).contains(&place_avma));
                *byte = word.map_or(0, |(start, word)| word.to_le_bytes()[(place_avma - start) as usize]);
            }
            into.len()
        }

        fn mappings(&self) -> Result<Vec<Mapping>, heapr_glibc_heap::Error> {
            Ok(Vec::new())
        }

        fn open(&self, _path: &str) -> std::io::Result<std::fs::File> {
            Err(std::io::ErrorKind::NotFound.into())
        }
    }

    fn look(text: &str, subject: Subject, memory: &Words) -> MemoryLook {
        let subject = Subject { mappings: smaps::parse(text.as_bytes()).unwrap(), ..subject };
        let account = Account::of_mappings(&subject, memory, &None::<PageMap>);
        MemoryLook::of_account(&account, &subject)
    }

    #[test]
    fn each_mapping_is_one_thing() {
        let text = "\
            400000-401000 r-xp 00000000 08:01 7   /usr/bin/it\nRss: 4 kB\n\
            401000-402000 rw-p 00000000 08:01 7   /usr/bin/it\nRss: 4 kB\nAnonymous: 4 kB\n\
            402000-404000 rw-p 00000000 00:00 0\nRss: 8 kB\nAnonymous: 8 kB\n\
            500000-600000 rw-p 00000000 00:00 0   [heap]\nRss: 16 kB\nAnonymous: 16 kB\n\
            c000000000-c004000000 rw-p 00000000 00:00 0\nRss: 32 kB\nAnonymous: 32 kB\n\
            700000000000-700000100000 rw-p 00000000 00:00 0\nRss: 64 kB\nAnonymous: 64 kB\nSwap: 64 kB\n\
            700001000000-700001100000 rw-p 00000000 00:00 0\nRss: 256 kB\nAnonymous: 256 kB\n\
            700002000000-700002001000 ---p 00000000 00:00 0\n\
            700002001000-700002800000 rw-p 00000000 00:00 0\nRss: 512 kB\nAnonymous: 512 kB\n\
            700002900000-700002901000 ---p 00000000 00:00 0\n\
            700002901000-700002a00000 rw-p 00000000 00:00 0\nRss: 64 kB\nAnonymous: 64 kB\n\
            700003000000-700003100000 rw-p 00000000 00:00 0\nRss: 1024 kB\nAnonymous: 1024 kB\n\
            700004000000-700004100000 rw-p 00000000 00:00 0\nRss: 2048 kB\nAnonymous: 2048 kB\n\
            700005000000-700005100000 rw-s 00000000 00:01 9   /memfd:x\nRss: 4 kB\nAnonymous: 4096 kB\n\
            700006000000-700006100000 r-xp 00000000 08:01 9   /usr/lib/libjemalloc.so.2\n";
        let descriptor_avma = 0x7000_0280_0000 - 0x900;
        let memory = Words(vec![
            (descriptor_avma, descriptor_avma),
            (descriptor_avma + 16, descriptor_avma),
            (0x7000_0400_0000, 0x7000_0400_0020),
            (0x7000_0400_0010, 0x2000),
            (0x7000_0400_0018, 0x3000),
        ]);
        let subject = Subject {
            stack_pointers: vec![0x7000_0300_1000],
            recorder_avma: vec![(0x7000_0100_0000, 0x7000_0110_0000)],
            ..Subject::default()
        };
        let found = look(text, subject, &memory);
        assert_eq!(found.data_bytes, 12 << 10);
        assert_eq!(found.heap_bytes, (16 + 2048) << 10);
        assert_eq!(found.by_brk, [(0x50_0000, 0x60_0000, 16 << 10)]);
        assert_eq!(found.go_bytes, 32 << 10);
        assert_eq!(found.agent_bytes, 256 << 10);
        assert_eq!(found.stack_bytes, (512 + 1024) << 10);
        // One of them follows an inaccessible page, as a stack does.
        let mapped =
            [(0x7000_0000_0000, 0x7000_0010_0000, 128 << 10), (0x7000_0290_1000, 0x7000_02a0_0000, 64 << 10)];
        assert_eq!(found.mapped, mapped);
        assert_eq!(found.total_bytes, (12 + 16 + 2048 + 32 + 256 + 1536 + 64 + 128) << 10);
        assert_eq!(found.malloc_libraries, ["libjemalloc.so.2"]);
    }

    #[test]
    fn a_stack_that_has_gone_meanwhile_is_not_told_as_the_programs_own_mapping() {
        let mapped = |start: &str, end: &str| {
            format!(
                "700000000000-{start} ---p 00000000 00:00 0\n{start}-{end} rw-p 00000000 00:00 0\n\
                 Rss: 64 kB\nAnonymous: 64 kB\n"
            )
        };
        let memory = Words(Vec::new());
        for (start, end, is_lost) in
            [("700001001000", "700002000000", false), ("700005001000", "700006000000", true)]
        {
            let mappings = smaps::parse(mapped(start, end).as_bytes()).unwrap();
            let subject = Subject { mappings, ..Subject::default() };
            let found = look(&mapped(start, end), Subject::default(), &memory);
            assert_eq!(found.mapped.len(), 1);
            assert_eq!(found.has_lost_a_stack(&subject, &memory), is_lost);
        }
    }

    #[test]
    fn resident_files_are_told_without_programs_and_shared_memory() {
        let text = "\
            400000-401000 r-xp 00000000 08:01 7   /usr/bin/it\nRss: 4 kB\n\
            500000-40500000 r--s 00000000 08:01 9   /srv/data.mdb\nRss: 240000 kB\n\
            50500000-60500000 r--p 00000000 08:01 9   /srv/data.mdb\nRss: 1024 kB\nAnonymous: 24 kB\n\
            700000-800000 r--p 00000000 08:01 7   /usr/bin/it\nRss: 9000 kB\n\
            80000000-90000000 rw-s 00000000 00:01 8   /dev/shm/all\nRss: 9000 kB\n\
            a0000000-a0001000 r--p 00000000 08:01 5   /usr/lib/locale/C.utf8/LC_CTYPE\nRss: 4 kB\n";
        let found = look(text, Subject::default(), &Words(Vec::new()));
        let told: Vec<(&str, u64, u64)> = found
            .files
            .iter()
            .map(|file| (file.path.as_str(), file.bytes >> 10, file.mapped_bytes))
            .collect();
        assert_eq!(told, [("/srv/data.mdb", 241_000, 0x5000_0000)]);
    }

    #[test]
    fn what_is_mapped_next_to_a_modules_zeroed_data_is_none_of_it() {
        let text = "\
            400000-401000 r-xp 00000000 08:01 7   /usr/bin/it\n\
            401000-402000 rw-p 00001000 08:01 7   /usr/bin/it\nRss: 4 kB\nAnonymous: 4 kB\n\
            402000-409000 rw-p 00000000 00:00 0\nRss: 28 kB\nAnonymous: 28 kB\n";
        // The header of a program with one segment to load, which ends at 0x404000.
        let memory = Words(vec![
            (0x40_0000, 0x02_464c_457f),
            (0x40_0010, 2),
            (0x40_0020, 64),
            (0x40_0030, 56 << 48),
            (0x40_0038, 1),
            (0x40_0040, 1),
            (0x40_0050, 0x40_0000),
            (0x40_0068, 0x4000),
        ]);
        let found = look(text, Subject::default(), &memory);
        assert_eq!((found.data_bytes, found.total_bytes), (12 << 10, 32 << 10));
        assert_eq!(found.mapped, [(0x40_4000, 0x40_9000, 20 << 10)]);
    }

    #[test]
    fn gos_arenas_lie_anywhere_in_a_program_that_is_known_to_be_gos() {
        let text = "\
            2b4000000000-2b4000400000 rw-p 00000000 00:00 0\nRss: 64 kB\nAnonymous: 64 kB\n\
            2b4000400000-2b4004000000 ---p 00000000 00:00 0\n\
            2b4004000000-2b4004123000 rw-p 00000000 00:00 0\nRss: 8 kB\nAnonymous: 8 kB\n\
            2b4004123000-2b4008000000 rw-p 00000000 00:00 0\nRss: 4 kB\nAnonymous: 4 kB\n\
            700000200000-700000300000 rw-p 00000000 00:00 0\nRss: 16 kB\nAnonymous: 16 kB\n";
        let memory = Words(Vec::new());
        let of_go = look(text, Subject { has_go: true, ..Subject::default() }, &memory);
        assert_eq!((of_go.go_bytes, of_go.mapped.len()), (76 << 10, 1));
        let of_another = look(text, Subject::default(), &memory);
        assert_eq!((of_another.go_bytes, of_another.mapped.len()), (0, 4));
    }
}
