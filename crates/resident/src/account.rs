//! The account of a resident set: pieces by address, and lines that add up to it.

use std::collections::BTreeMap;
use std::ops::Range;

use heapr_glibc_heap::{HeapMemory, RegionKind};
use heapr_known::runtimes::Runtime;
use heapr_proc::ResidentCounters;
use heapr_proc::smaps::{MappingPages, PageAmounts};

use crate::arenas::{self, OTHER_ARENAS};
use crate::claims::{Claim, Claims, range_of};
use crate::class::{Class, ToldBy};
use crate::code_files::{CodeFiles, claim_zeroed_data, is_shared_memory};
use crate::foreign::{self, ForeignHeap};
use crate::heap_detail::HeapDetail;
use crate::owners;
use crate::python_pools::{self, PythonPools};
use crate::residency::split;
use crate::subject::{PageStates, Subject, file_name, is_recorders};
use crate::thread_stacks;

/// Neighbouring addresses of one owner, with their resident pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Address range.
    pub range_avma: Range<u64>,
    /// Class of the memory.
    pub class: Class,
    /// Part within the class: an arena, an allocator, a module.
    pub part: String,
    /// Evidence of the class.
    pub told_by: ToldBy,
    /// Amounts of the pages.
    pub pages: PageAmounts,
}

/// The resident set of a process, divided among owners.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// Sum of the mappings.
    pub pages: PageAmounts,
    /// Pieces, by address.
    pub pieces: Vec<Piece>,
    /// Runtimes in the process.
    pub runtimes: Vec<Runtime>,
    /// Contents of CPython's pools.
    pub python: PythonPools,
    /// Number of glibc's arenas.
    pub arena_count: u32,
    /// Number of mappings whose pages were shared among owners in proportion to addresses.
    pub estimated_mappings: u64,
    /// Contents of glibc's heap, if the heap was read.
    pub heap: Option<HeapDetail>,
    /// Heaps of other allocators with a known layout.
    pub foreign: Vec<ForeignHeap>,
    /// Whether only the kernel's counters could be read: owners and sharing are unknown.
    pub is_of_counters: bool,
}

/// A class and the sums over its pieces.
#[derive(Debug, Clone)]
pub struct Line {
    /// The class.
    pub class: Class,
    /// Sums of page amounts.
    pub pages: PageAmounts,
    /// Number of pieces.
    pub piece_count: u64,
    /// Evidence for the largest number of bytes.
    pub told_by: ToldBy,
    /// Parts with their resident bytes, largest first.
    pub parts: Vec<(String, u64)>,
}

/// Sums for a [`Line`].
#[derive(Default)]
struct Gathered<'a> {
    pages: PageAmounts,
    piece_count: u64,
    told_by: BTreeMap<ToldBy, u64>,
    parts: BTreeMap<&'a str, u64>,
}

impl Account {
    /// Accounts for every page. The process may run.
    pub fn of(subject: &Subject, memory: &impl HeapMemory, states: &impl PageStates) -> Self {
        let code = CodeFiles::of(&subject.mappings);
        let runtimes = owners::runtimes(subject);
        let mut claims = recorders(subject);
        claims.add_many(subject.malloc.regions.iter().map(|region| Claim {
            range_avma: region.start_avma..region.end_avma,
            class: Class::GlibcHeap,
            part: match region.kind {
                RegionKind::Brk | RegionKind::MainPiece => "main arena".to_owned(),
                RegionKind::ArenaHeap => OTHER_ARENAS.to_owned(),
                RegionKind::MappedBlock => "blocks with mappings of their own".to_owned(),
            },
            told_by: ToldBy::Contents,
        }));
        claim_zeroed_data(&subject.mappings, &code, memory, &mut claims);
        let foreign = foreign::heaps(subject, memory);
        claims.add_many(foreign.iter().flat_map(foreign::claimed));
        // Claimed before stacks and memory known by address: goroutines' stacks lie in Go's heap,
        // and V8's pages lie where a stack might.
        owners::claim_go(subject, &runtimes, &mut claims);
        thread_stacks::claim(subject, memory, &mut claims);
        owners::claim_by_place(subject, &runtimes, &mut claims);
        let python = if runtimes.contains(&Runtime::Python) {
            python_pools::claim(&subject.mappings, memory, &mut claims)
        } else {
            PythonPools::default()
        };
        let rest = owners::owner_of_rest(subject, &runtimes, &foreign);
        let arena_count = subject.malloc.arena_count;
        let mut account = Self { runtimes, python, arena_count, foreign, ..Self::default() };
        for mapping in &subject.mappings {
            account.pages.add(&mapping.pages);
            match mapping.mapping.inode {
                0 => account.anonymous(mapping, &claims, rest.as_ref(), states),
                _ => account.file(mapping, &code),
            }
        }
        account.divide_foreign();
        account
    }

    /// Accounts at little cost for memory without a file and for written pages of files. Owners are
    /// recognised by their mappings and a few words in each. Tables of allocators and runtimes are
    /// not read, and shared mappings are left out.
    pub fn of_mappings(subject: &Subject, memory: &impl HeapMemory, states: &impl PageStates) -> Self {
        let code = CodeFiles::of(&subject.mappings);
        let runtimes = owners::runtimes(subject);
        let mut claims = recorders(subject);
        arenas::claim(&subject.mappings, memory, &mut claims);
        claim_zeroed_data(&subject.mappings, &code, memory, &mut claims);
        owners::claim_go(subject, &runtimes, &mut claims);
        thread_stacks::claim(subject, memory, &mut claims);
        owners::claim_by_place(subject, &runtimes, &mut claims);
        let rest = owners::owner_of_rest(subject, &runtimes, &[]);
        let mut account = Self { runtimes, ..Self::default() };
        let is_own = |found: &&MappingPages| !found.mapping.is_shared && found.pages.own_bytes() > 0;
        for mapping in subject.mappings.iter().filter(is_own) {
            account.pages.add(&mapping.pages);
            match mapping.mapping.inode {
                0 => account.anonymous(mapping, &claims, rest.as_ref(), states),
                _ => account.file(mapping, &code),
            }
        }
        account
    }

    /// Creates an account from the kernel's counters alone.
    pub fn of_counters(counters: &ResidentCounters) -> Self {
        let parts = [
            (Class::Unknown, "without a file", counters.anonymous_bytes),
            (Class::Files, "code and other files", counters.file_bytes),
            (Class::SharedMemory, "shared memory", counters.shared_memory_bytes),
        ];
        let mut account = Self { is_of_counters: true, ..Self::default() };
        for (class, part, rss_bytes) in parts {
            let pages = PageAmounts { rss_bytes, ..PageAmounts::default() };
            account.pages.add(&pages);
            account.pieces.push(Piece {
                range_avma: 0..0,
                class,
                part: part.to_owned(),
                told_by: ToldBy::Name,
                pages,
            });
        }
        account
    }

    /// Lines, in the order of classes; classes without a resident page are left out.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines: BTreeMap<Class, Gathered<'_>> = BTreeMap::new();
        for piece in &self.pieces {
            let gathered = lines.entry(piece.class).or_default();
            gathered.pages.add(&piece.pages);
            gathered.piece_count += 1;
            *gathered.told_by.entry(piece.told_by).or_default() += piece.pages.rss_bytes;
            *gathered.parts.entry(&piece.part).or_default() += piece.pages.rss_bytes;
        }
        let lines = lines.into_iter().filter(|(_, gathered)| gathered.pages.rss_bytes > 0);
        let sorted = lines.map(|(class, Gathered { pages, piece_count, told_by, parts })| {
            let told_by = told_by.into_iter().max_by_key(|(_, bytes)| *bytes);
            let told_by = told_by.map_or(ToldBy::Elimination, |(told_by, _)| told_by);
            let mut line = Line { class, pages, piece_count, told_by, parts: Vec::new() };
            let parts = parts.into_iter().filter(|(name, bytes)| !name.is_empty() && *bytes > 0);
            line.parts = parts.map(|(name, bytes)| (name.to_owned(), bytes)).collect();
            line.parts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            line
        });
        sorted.collect()
    }

    /// Resident bytes of a class.
    pub fn bytes(&self, class: Class) -> u64 {
        self.pieces.iter().filter(|piece| piece.class == class).map(|piece| piece.pages.rss_bytes).sum()
    }

    /// Divides a mapping without an inode by claims, and the rest by name or by elimination.
    fn anonymous(
        &mut self,
        mapping: &MappingPages,
        claims: &Claims,
        rest: Option<&(Class, String)>,
        states: &impl PageStates,
    ) {
        let range = range_of(&mapping.mapping);
        let (class, part, told_by) = by_name(&mapping.mapping.name, rest);
        let mut owners: Vec<Claim> = claims.inside(range.clone()).cloned().collect();
        for claim in &mut owners {
            claim.range_avma = claim.range_avma.start.max(range.start)..claim.range_avma.end.min(range.end);
        }
        for range_avma in claims.free(range) {
            owners.push(Claim { range_avma, class, part: part.clone(), told_by });
        }
        if mapping.pages == PageAmounts::default() {
            return;
        }
        owners.sort_by_key(|claim| claim.range_avma.start);
        let ranges: Vec<Range<u64>> = owners.iter().map(|claim| claim.range_avma.clone()).collect();
        let (amounts, is_estimated) = split(mapping, &ranges, states);
        self.estimated_mappings += u64::from(is_estimated);
        self.pieces.extend(owners.into_iter().zip(amounts).map(|(claim, pages)| Piece {
            range_avma: claim.range_avma,
            class: claim.class,
            part: claim.part,
            told_by: claim.told_by,
            pages,
        }));
    }

    /// Divides a mapped file into its written pages and the rest.
    fn file(&mut self, found: &MappingPages, code: &CodeFiles<'_>) {
        let MappingPages { mapping, pages } = found;
        let part = file_name(&mapping.name).to_owned();
        let is_code = code.has(mapping);
        let is_memory = is_shared_memory(&mapping.name);
        let (written, rest) = pages.divided_by_writing();
        let is_recorders = is_recorders(&mapping.name);
        let class = match () {
            () if is_recorders => Class::Recorder,
            () if is_memory => Class::SharedMemory,
            () if mapping.is_executable => Class::Code,
            () if is_code => Class::ReadOnlyData,
            () => Class::Files,
        };
        // Written pages in a private mapping of a program or library are its data.
        let is_data = (is_code || mapping.is_executable) && !is_recorders;
        let written_class = if is_data { Class::WrittenData } else { class };
        for (class, pages) in [(class, rest), (written_class, written)] {
            if pages != PageAmounts::default() {
                let range_avma = range_of(mapping);
                self.pieces.push(Piece {
                    range_avma,
                    class,
                    part: part.clone(),
                    told_by: ToldBy::Name,
                    pages,
                });
            }
        }
    }
}

/// Claims of what heapr itself has mapped.
fn recorders(subject: &Subject) -> Claims {
    let mut claims = Claims::default();
    claims.add_many(subject.recorder_avma.iter().map(|&(start_avma, end_avma)| Claim {
        range_avma: start_avma..end_avma,
        class: Class::Recorder,
        part: "its agent".to_owned(),
        told_by: ToldBy::Place,
    }));
    claims
}

/// Class of memory without a file, by the kernel's name for it.
fn by_name(name: &str, rest: Option<&(Class, String)>) -> (Class, String, ToldBy) {
    let own = |class, part: &str| (class, part.to_owned(), ToldBy::Name);
    match name {
        "" => match rest {
            Some((class, part)) => (*class, part.clone(), ToldBy::Elimination),
            None => (Class::Unknown, String::new(), ToldBy::Elimination),
        },
        "[stack]" => own(Class::ThreadStacks, "first thread"),
        "[heap]" => match rest {
            // The heap by brk is another allocator's, if the program uses one.
            Some((class @ (Class::OtherAllocator | Class::AllocatorSlack), part)) => {
                (*class, part.clone(), ToldBy::Elimination)
            }
            _ => own(Class::GlibcHeap, "main arena"),
        },
        _ if name.starts_with("[stack:") => own(Class::ThreadStacks, "threads"),
        _ if name.starts_with("[anon: glibc: malloc") => own(Class::GlibcHeap, "named by glibc"),
        _ if name.starts_with("[anon: glibc: pthread stack") => own(Class::ThreadStacks, "threads"),
        _ if name.starts_with("[anon: Go: heap") => own(Class::GoHeap, name),
        _ if name.starts_with("[anon: Go:") => own(Class::GoRuntime, name),
        _ if name.starts_with("[anon:v8") || name.starts_with("[anon:V8") => own(Class::V8Heap, name),
        _ if name.starts_with("[anon:") => own(Class::NamedAnonymous, name),
        _ if name.starts_with("[anon_shmem:") => own(Class::SharedMemory, name),
        _ if name.starts_with('[') => own(Class::Kernel, name),
        _ => own(Class::SharedMemory, file_name(name)),
    }
}
