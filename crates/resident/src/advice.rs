//! Advice rules: each states a finding, its evidence, its certainty and the effect of a change.
//!
//! A rule speaks only if its change is worth the trouble.

use std::collections::BTreeMap;

use heapr_known::allocator_libraries::LIBRARIES;
use heapr_table::quantity::{bytes, percent, plural};

use crate::account::Account;
use crate::beside::Beside;
use crate::class::Class;

/// Certainty of an advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Another cause is possible.
    Low,
    /// Probable.
    Medium,
    /// Counted.
    High,
}

/// Result of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// Name of the rule.
    pub rule: &'static str,
    /// Finding and remedy, with figures.
    pub sentence: String,
    /// Evidence.
    pub evidence: Vec<String>,
    /// Certainty of the finding.
    pub certainty: Certainty,
    /// Largest number of bytes that the remedy frees.
    pub bytes: u64,
}

/// Least bytes worth an advice; a tenth of the resident set is required, too.
const LEAST_BYTES: u64 = 8 << 20;

/// Runs all rules; the advice that frees most comes first.
pub fn advice(account: &Account, beside: &Beside) -> Vec<Advice> {
    const RULES: &[fn(&Account, &Beside) -> Option<Advice>] = &[
        trim,
        arenas,
        arenas_from_outside,
        pinned,
        huge_pages,
        lazily_freed,
        python_pools,
        allocator_pages,
        allocator_fragments,
        mapped_files,
        page_tables,
        swapped,
    ];
    let mut found: Vec<Advice> = RULES.iter().filter_map(|rule| rule(account, beside)).collect();
    found.sort_by_key(|advice| std::cmp::Reverse(advice.bytes));
    found
}

fn is_worth_it(bytes: u64, account: &Account) -> bool {
    bytes >= LEAST_BYTES && bytes >= account.pages.rss_bytes / 10
}

fn of_all(bytes_of: u64, account: &Account) -> String {
    format!("{} ({} of what is resident)", bytes(bytes_of), percent(bytes_of, account.pages.rss_bytes))
}

/// Advises `malloc_trim` for whole free pages.
fn trim(account: &Account, _: &Beside) -> Option<Advice> {
    let heap = account.heap.as_ref()?;
    let whole_bytes = heap.all.whole_bytes;
    if !is_worth_it(whole_bytes, account) {
        return None;
    }
    Some(Advice {
        rule: "trim",
        sentence: format!(
            "malloc keeps {} in whole free pages: malloc_trim(0), called when a peak is over, gives them back at once",
            of_all(whole_bytes, account)
        ),
        evidence: vec![
            format!(
                "{} of blocks are live in the arenas, and {} of pages lie wholly in free chunks",
                bytes(heap.all.live_bytes),
                bytes(whole_bytes)
            ),
            "malloc gives back the end of its heap by itself, and pages between live blocks never".to_owned(),
        ],
        certainty: Certainty::High,
        bytes: whole_bytes,
    })
}

/// Advises fewer arenas: each exists against contention, and retains the memory that its threads
/// have freed.
///
/// Two arenas shared by all threads become as large as the most that all threads hold at once. That
/// is at least the live memory of this moment, and at least the largest arena. An upper bound is
/// known only from a recording: each of the two is at most as large as the peak of all threads.
fn arenas(account: &Account, _: &Beside) -> Option<Advice> {
    const FEW: usize = 3;
    let heap = account.heap.as_ref()?;
    let free = |division: &crate::HeapDivision| {
        division.whole_bytes + division.pinned_bytes + division.top_bytes + division.thread_cache_bytes
    };
    let used = |division: &crate::HeapDivision| division.live_bytes + division.header_bytes;
    let others = heap.arenas.iter().filter(|(number, _)| **number != 0);
    let mut free_of_others: Vec<u64> = others.map(|(_, division)| free(division)).collect();
    let free_bytes: u64 = free_of_others.iter().sum();
    let divisions = || heap.arenas.values();
    let used_bytes: u64 = divisions().map(used).sum();
    let all_bytes: u64 = used_bytes + divisions().map(free).sum::<u64>();
    let largest_bytes = divisions().map(|one| used(one) + free(one)).max().unwrap_or(0);
    let most_bytes = all_bytes - largest_bytes.max(used_bytes);
    if free_of_others.len() < FEW || !is_worth_it(free_bytes, account) || !is_worth_it(most_bytes, account) {
        return None;
    }
    // Blocks are assumed to have been as large at the peak as they are in the account; each has a
    // header.
    const HEADER_BYTES: u64 = 24;
    let live_bytes: u64 = divisions().map(|one| one.live_bytes).sum();
    let block_bytes = live_bytes / heap.live_blocks.saturating_sub(heap.mapped_blocks).max(1);
    let least_bytes = heap.peak_live_bytes.map_or(0, |peak_bytes| {
        let headers =
            u128::from(peak_bytes) * u128::from(HEADER_BYTES) / u128::from(block_bytes.max(HEADER_BYTES));
        let peak_bytes = peak_bytes.saturating_add(u64::try_from(headers).unwrap_or(u64::MAX));
        all_bytes.saturating_sub(peak_bytes.saturating_mul(2)).min(most_bytes)
    });
    free_of_others.sort_unstable_by_key(|bytes| std::cmp::Reverse(*bytes));
    let saved = if least_bytes > 0 {
        format!("between {} and {}", bytes(least_bytes), bytes(most_bytes))
    } else {
        format!("up to {}, and nothing if they all hold their most at once", bytes(most_bytes))
    };
    Some(Advice {
        rule: "arenas",
        sentence: format!(
            "{} keep {} free, each for its own threads: MALLOC_ARENA_MAX=2 in the environment lets threads share, and saves {saved}",
            plural(free_of_others.len() as u64 + 1, "arena"),
            of_all(free_bytes, account),
        ),
        evidence: vec![
            format!("free in arenas besides the main one: {}", list(&free_of_others)),
            match heap.peak_live_bytes {
                Some(peak_bytes) => {
                    format!("all threads together never held more than {}", bytes(peak_bytes))
                }
                None => "what all threads hold at once tells only a recording: heapr explain NAME".to_owned(),
            },
            "threads wait for each other in malloc more often then: measure the program's speed, too"
                .to_owned(),
        ],
        certainty: if least_bytes > 0 { Certainty::Medium } else { Certainty::Low },
        bytes: most_bytes,
    })
}

fn list(amounts: &[u64]) -> String {
    const MOST: usize = 6;
    let mut words: Vec<String> = amounts.iter().take(MOST).map(|amount| bytes(*amount)).collect();
    if amounts.len() > MOST {
        words.push(format!("{} more", amounts.len() - MOST));
    }
    words.join(", ")
}

/// Advises fewer arenas if the heap was not read.
fn arenas_from_outside(account: &Account, beside: &Beside) -> Option<Advice> {
    const MANY: u32 = 8;
    if account.heap.is_some() || account.arena_count < MANY {
        return None;
    }
    let others = account.pieces.iter().filter(|piece| piece.class == Class::GlibcHeap);
    let others = others.filter(|piece| piece.part == crate::arenas::OTHER_ARENAS);
    let other_bytes: u64 = others.map(|piece| piece.pages.rss_bytes).sum();
    let is_large = other_bytes >= 4 * LEAST_BYTES && other_bytes >= account.pages.rss_bytes / 3;
    is_large.then(|| Advice {
        rule: "arenas",
        sentence: format!(
            "malloc has {} with {}: --deep tells how much of that is free; if it is much, MALLOC_ARENA_MAX=2 lets threads share",
            plural(account.arena_count.into(), "arena"),
            of_all(other_bytes, account)
        ),
        evidence: vec![format!("{} in the process", plural(beside.threads, "thread"))],
        certainty: Certainty::Low,
        bytes: other_bytes,
    })
}

/// Reports free memory in pages that a few live blocks retain.
fn pinned(account: &Account, _: &Beside) -> Option<Advice> {
    let all = &account.heap.as_ref()?.all;
    let is_mostly_free = all.pinned_bytes > all.live_bytes / 2;
    (is_mostly_free && is_worth_it(all.pinned_bytes, account)).then(|| Advice {
        rule: "pinned",
        sentence: format!(
            "{} are free and cannot be given back: {} of {} keep their pages; who allocates what lives long apart from what passes \
             (a pool, an arena of its own, another order) gets them back",
            of_all(all.pinned_bytes, account),
            plural(all.pinning_blocks, "live block"),
            bytes(all.pinning_bytes)
        ),
        evidence: vec![
            format!(
                "pages at least half free have {} of live blocks in them",
                bytes(all.pinning_bytes)
            ),
            "malloc_trim does not help here; heapr explain NAME, of a session that records the process, names the stacks".to_owned(),
        ],
        certainty: Certainty::High,
        bytes: all.pinned_bytes,
    })
}

/// Advises against huge pages for a heap that is mostly free.
fn huge_pages(account: &Account, _: &Beside) -> Option<Advice> {
    let all = &account.heap.as_ref()?.all;
    let of_heap = |class: Class| {
        // (Where the lines are not divided, they are one.)
        matches!(
            class,
            Class::GlibcHeap
                | Class::LiveBlocks
                | Class::FreeWholePages
                | Class::FreePinned
                | Class::CachesTops
        )
    };
    let heap = account.pieces.iter().filter(|piece| of_heap(piece.class));
    let huge_bytes: u64 = heap.map(|piece| piece.pages.anonymous_huge_bytes).sum();
    let free_bytes = all.whole_bytes + all.pinned_bytes;
    let is_cause =
        huge_bytes > 0 && free_bytes > all.live_bytes && is_worth_it(free_bytes.min(huge_bytes), account);
    is_cause.then(|| Advice {
        rule: "huge_pages",
        sentence: format!(
            "{} of malloc's heap are in huge pages, and more of the heap is free than live: huge pages keep 2 MiB for what needs a few KiB; \
             GLIBC_TUNABLES=glibc.malloc.hugetlb=0 or prctl(PR_SET_THP_DISABLE) turns them off",
            of_all(huge_bytes, account)
        ),
        evidence: vec![format!("live {}, free {}", bytes(all.live_bytes), bytes(free_bytes))],
        certainty: Certainty::Medium,
        bytes: free_bytes.min(huge_bytes),
    })
}

/// Reports pages that the kernel reclaims under pressure.
fn lazily_freed(account: &Account, _: &Beside) -> Option<Advice> {
    let lazy_bytes = account.pages.lazily_freed_bytes;
    is_worth_it(lazy_bytes, account).then(|| Advice {
        rule: "lazily_freed",
        sentence: format!(
            "{} are given back already (MADV_FREE): the kernel takes them when it needs them; nothing is to be done",
            of_all(lazy_bytes, account)
        ),
        evidence: vec!["the kernel counts them as LazyFree; the resident set falls only under pressure".to_owned()],
        certainty: Certainty::High,
        bytes: lazy_bytes,
    })
}

/// Reports free memory in CPython's pools that single objects retain.
fn python_pools(account: &Account, _: &Beside) -> Option<Advice> {
    let pools = &account.python;
    let free_bytes = pools.pool_bytes.saturating_sub(pools.used_bytes);
    let is_much = free_bytes > pools.used_bytes / 2 && is_worth_it(free_bytes, account);
    is_much.then(|| Advice {
        rule: "python_pools",
        sentence: format!(
            "{} are free in CPython's pools, which single live objects keep: work that makes many objects for a short time is best done \
             in a process of its own",
            of_all(free_bytes, account)
        ),
        evidence: vec![format!("blocks in use: {} of {}", bytes(pools.used_bytes), bytes(pools.pool_bytes))],
        certainty: Certainty::Medium,
        bytes: free_bytes,
    })
}

/// Advises how another allocator releases its cached free pages.
fn allocator_pages(account: &Account, _: &Beside) -> Option<Advice> {
    let free_pages = |allocator: &str| {
        let name = format!("{allocator}: free pages");
        let pieces = account.pieces.iter().filter(|piece| piece.part == name);
        pieces
            .map(|piece| piece.pages.rss_bytes - piece.pages.lazily_freed_bytes.min(piece.pages.rss_bytes))
            .sum()
    };
    let known = LIBRARIES.iter().filter(|library| !library.release.is_empty());
    let found = known.map(|library| (library.name, library.release, free_pages(library.name)));
    let (allocator, remedy, free_bytes) = found.max_by_key(|(_, _, free_bytes): &(_, _, u64)| *free_bytes)?;
    let heap = account.foreign.iter().find(|heap| heap.allocator == allocator)?;
    is_worth_it(free_bytes, account).then(|| Advice {
        rule: "allocator_pages",
        sentence: format!(
            "{allocator} keeps {} in free pages: {remedy} gives them back",
            of_all(free_bytes, account)
        ),
        evidence: vec![format!(
            "{} are allocated, as {allocator} counts; no live block is in these pages",
            bytes(heap.figure("allocated_bytes").unwrap_or(0))
        )],
        certainty: Certainty::Medium,
        bytes: free_bytes,
    })
}

/// Reports free memory of another allocator beside live blocks, which no call releases.
fn allocator_fragments(account: &Account, _: &Beside) -> Option<Advice> {
    let beside = |heap: &crate::ForeignHeap| {
        let name = format!("{}: beside live blocks", heap.allocator);
        let pieces = account.pieces.iter().filter(|piece| piece.part == name);
        pieces.map(|piece| piece.pages.rss_bytes).sum::<u64>()
    };
    let (heap, beside_bytes) =
        account.foreign.iter().map(|heap| (heap, beside(heap))).max_by_key(|(_, bytes)| *bytes)?;
    let live_bytes = account.bytes(Class::AllocatorLive);
    let is_much = beside_bytes > live_bytes / 2 && is_worth_it(beside_bytes, account);
    let remedy = match heap.allocator {
        "jemalloc" => "; redis moves its blocks together with activedefrag yes",
        _ => "",
    };
    is_much.then(|| Advice {
        rule: "allocator_fragments",
        sentence: format!(
            "{} are free beside live blocks in pages of {}, and no call gives them back: what lives long apart from what \
             passes, or fewer sizes, gets them back{remedy}",
            of_all(beside_bytes, account),
            heap.allocator
        ),
        evidence: vec![format!(
            "{} of live blocks are resident, and {} lie free in their pages",
            bytes(live_bytes),
            bytes(beside_bytes)
        )],
        certainty: Certainty::High,
        bytes: beside_bytes,
    })
}

/// Smallest share of the files' pages that the kernel must count as files', and not as shared
/// memory, which it cannot take back.
const ON_DISK_SHARE: f64 = 0.75;

/// Reports pages of mapped files, which no allocation has.
fn mapped_files(account: &Account, beside: &Beside) -> Option<Advice> {
    let mut files: BTreeMap<&str, u64> = BTreeMap::new();
    // Written pages of a private mapping are no file's any more.
    let pieces = account.pieces.iter().filter(|piece| piece.class == Class::Files);
    for piece in pieces.filter(|piece| !account.is_of_counters && piece.pages.own_bytes() == 0) {
        *files.entry(&piece.part).or_default() += piece.pages.rss_bytes;
    }
    let all: u64 = files.values().sum();
    let (name, most) = files.iter().max_by_key(|&(name, bytes)| (*bytes, std::cmp::Reverse(*name)))?;
    let is_much = all >= 4 * LEAST_BYTES && all >= account.pages.rss_bytes / 2;
    let is_on_disk = beside.file_bytes as f64 >= all as f64 * ON_DISK_SHARE;
    (is_much && is_on_disk).then(|| Advice {
        rule: "mapped_files",
        sentence: format!(
            "{} are pages of mapped files, {} of them of {name}: the kernel takes them back when memory is short; \
             madvise(MADV_DONTNEED) or munmap gives them back at once",
            of_all(all, account),
            bytes(*most)
        ),
        evidence: vec![format!("{} and no allocation has them", plural(files.len() as u64, "file"))],
        certainty: Certainty::High,
        bytes: all,
    })
}

/// Reports page tables of a thinly used address space.
fn page_tables(account: &Account, beside: &Beside) -> Option<Advice> {
    let table_bytes = beside.page_table_bytes;
    (table_bytes >= 2 * LEAST_BYTES && table_bytes >= account.pages.rss_bytes / 20).then(|| Advice {
        rule: "page_tables",
        sentence: format!(
            "page tables take {} that the resident set does not count: memory is used thinly over a large address space",
            bytes(table_bytes)
        ),
        evidence: vec![format!(
            "a table of 4 KiB serves 2 MiB; {} are resident",
            bytes(account.pages.rss_bytes)
        )],
        certainty: Certainty::High,
        bytes: table_bytes,
    })
}

/// Reports swapped memory: it was resident, and will be again.
fn swapped(account: &Account, beside: &Beside) -> Option<Advice> {
    is_worth_it(beside.swapped_bytes, account).then(|| Advice {
        rule: "swapped",
        sentence: format!(
            "{} more are swapped out: the resident set alone understates what the process takes",
            bytes(beside.swapped_bytes)
        ),
        evidence: Vec::new(),
        certainty: Certainty::High,
        bytes: beside.swapped_bytes,
    })
}

#[cfg(test)]
mod tests {
    use heapr_proc::smaps::PageAmounts;

    use super::*;
    use crate::{HeapDetail, HeapDivision};

    fn account(all: HeapDivision, rss_bytes: u64) -> Account {
        let heap = HeapDetail { all, ..HeapDetail::default() };
        Account {
            pages: PageAmounts { rss_bytes, ..PageAmounts::default() },
            heap: Some(heap),
            ..Account::default()
        }
    }

    fn rules(account: &Account) -> Vec<&'static str> {
        advice(account, &on_disk()).iter().map(|advice| advice.rule).collect()
    }

    /// All files are on a disk.
    fn on_disk() -> Beside {
        Beside { file_bytes: u64::MAX, ..Beside::default() }
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn nothing_is_advised_where_nothing_is_wrong() {
        let healthy = HeapDivision {
            live_bytes: 90 * MIB,
            whole_bytes: 3 * MIB,
            pinned_bytes: 6 * MIB,
            ..HeapDivision::default()
        };
        assert_eq!(rules(&account(healthy, 110 * MIB)), [""; 0]);
        assert_eq!(rules(&Account::default()), [""; 0]);
    }

    #[test]
    fn whole_and_pinned_pages_have_each_their_own_remedy() {
        let whole = HeapDivision { live_bytes: 10 * MIB, whole_bytes: 60 * MIB, ..HeapDivision::default() };
        assert_eq!(rules(&account(whole, 80 * MIB)), ["trim"]);
        let pinned = HeapDivision { live_bytes: 10 * MIB, pinned_bytes: 60 * MIB, ..HeapDivision::default() };
        assert_eq!(rules(&account(pinned, 80 * MIB)), ["pinned"]);
    }

    #[test]
    fn huge_pages_are_told_of_an_undivided_heap_too() {
        let free = HeapDivision { live_bytes: 10 * MIB, pinned_bytes: 60 * MIB, ..HeapDivision::default() };
        let mut huge = account(free, 80 * MIB);
        assert!(!rules(&huge).contains(&"huge_pages"));
        let mut heap = piece(Class::GlibcHeap, "main arena", 70, 70);
        heap.pages.anonymous_huge_bytes = 60 * MIB;
        huge.pieces = vec![heap];
        assert!(rules(&huge).contains(&"huge_pages"));
    }

    fn piece(class: Class, part: &str, mib: u64, written_mib: u64) -> crate::Piece {
        let pages = PageAmounts {
            rss_bytes: mib * MIB,
            anonymous_bytes: written_mib * MIB,
            ..PageAmounts::default()
        };
        let told_by = crate::ToldBy::Name;
        crate::Piece { range_avma: 0..1, class, part: part.to_owned(), told_by, pages }
    }

    #[test]
    fn mapped_files_are_told_where_they_are_most_and_not_written() {
        let of = |pieces: Vec<crate::Piece>, rss_mib: u64| Account {
            pages: PageAmounts { rss_bytes: rss_mib * MIB, ..PageAmounts::default() },
            pieces,
            ..Account::default()
        };
        let database = || piece(Class::Files, "data.mdb", 236, 0);
        let told = of(vec![database(), piece(Class::Code, "libc.so.6", 2, 0)], 247);
        assert_eq!(rules(&told), ["mapped_files"]);
        let said = &advice(&told, &on_disk())[0].sentence;
        assert!(said.contains("236.0 MiB of them of data.mdb"), "{said}");
        let in_memory = Beside { file_bytes: 9 * MIB, ..Beside::default() };
        assert!(advice(&told, &in_memory).is_empty(), "files in memory");
        assert_eq!(rules(&of(vec![database()], 900)), [""; 0], "most memory is elsewhere");
        assert_eq!(rules(&of(vec![piece(Class::Files, "data.mdb", 236, 236)], 247)), [""; 0], "written");
        assert_eq!(rules(&of(vec![piece(Class::Code, "libLLVM.so", 236, 0)], 247)), [""; 0], "code");
        assert_eq!(rules(&of(vec![piece(Class::Files, "small", 20, 0)], 24)), [""; 0], "little");
    }

    #[test]
    fn fragments_are_told_where_they_are_as_much_as_half_of_what_lives() {
        let of = |live_mib: u64, beside_mib: u64| Account {
            pages: PageAmounts { rss_bytes: (live_mib + beside_mib + 10) * MIB, ..PageAmounts::default() },
            pieces: vec![
                piece(Class::AllocatorLive, "jemalloc", live_mib, live_mib),
                piece(Class::AllocatorSlack, "jemalloc: beside live blocks", beside_mib, beside_mib),
            ],
            foreign: vec![crate::ForeignHeap { allocator: "jemalloc", ..crate::ForeignHeap::default() }],
            ..Account::default()
        };
        assert_eq!(rules(&of(40, 55)), ["allocator_fragments"]);
        let said = &advice(&of(40, 55), &Beside::default())[0].sentence;
        assert!(said.contains("activedefrag") && said.contains("55.0 MiB"), "{said}");
        assert_eq!(rules(&of(200, 55)), [""; 0], "usual beside that much");
        assert_eq!(rules(&of(5, 6)), [""; 0], "little");
    }

    #[test]
    fn arenas_are_named_only_if_sharing_them_saves_something() {
        let one = HeapDivision { live_bytes: MIB, whole_bytes: 20 * MIB, ..HeapDivision::default() };
        let mut many = account(one, 200 * MIB);
        many.heap.as_mut().unwrap().all.whole_bytes = 0;
        many.heap.as_mut().unwrap().arenas = (0..8).map(|number| (number, one)).collect();
        assert_eq!(rules(&many), ["arenas"]);
        // Peaks of all threads: one thread after the other, and all of them at once.
        for (peak_bytes, expected) in
            [(21 * MIB, "between 126.0 MiB and 147.0 MiB"), (168 * MIB, "up to 147.0 MiB, and")]
        {
            many.heap.as_mut().unwrap().peak_live_bytes = Some(peak_bytes);
            many.heap.as_mut().unwrap().live_blocks = 8;
            let said = advice(&many, &Beside::default())[0].sentence.clone();
            assert!(said.contains(expected), "{said}");
        }
        many.heap.as_mut().unwrap().arenas = (0..3).map(|number| (number, one)).collect();
        assert_eq!(rules(&many), [""; 0]);
    }
}
