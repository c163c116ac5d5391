//! The rundown against the account that a program writes of its own heap: every live block, and no
//! free one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heapr_glibc_heap::{BlockKind, Error, HeapMemory, Plan, Rundown, walk};
use heapr_inject::StoppedProcess;
use heapr_proc::Mapping;

use crate::account::{Holder, Shape};

fn rundown(holder: &Holder) -> Rundown {
    let memory = StoppedProcess::of(holder.pid());
    let plan = Plan::make(&memory).unwrap();
    walk(&plan, &memory, &holder.account.thread_pointers, &mut plan.room(&memory)).unwrap()
}

/// Compares block by block. Returns the number of blocks that the account does not name: the C
/// library's own.
fn compare(holder: &Holder, rundown: &Rundown, label: &str) -> usize {
    let account = &holder.account;
    let mut unaccounted = 0;
    let mut seen = std::collections::HashSet::new();
    for block in rundown.blocks() {
        assert!(seen.insert(block.address_avma), "{label}: {block:x?} is listed twice");
        match account.live.get(&block.address_avma) {
            Some(usable_bytes) => assert_eq!(block.usable_bytes, *usable_bytes, "{label}: {block:x?}"),
            None => {
                assert!(
                    !account.freed.contains(&block.address_avma),
                    "{label}: {block:x?} is free; {:?}",
                    rundown.findings()
                );
                unaccounted += 1;
            }
        }
    }
    let missing = account.live.iter().filter(|(address, _)| !seen.contains(*address));
    let missing: Vec<_> = missing.map(|(address, usable)| format!("{address:#x} ({usable})")).collect();
    assert!(
        missing.is_empty(),
        "{label}: {} of {} missing: {:?}",
        missing.len(),
        account.live.len(),
        &missing[..missing.len().min(8)]
    );
    unaccounted
}

fn check(shape: Shape<'_>) -> (Holder, Rundown) {
    let label = format!("{} seed {} threads {} {}", shape.name, shape.seed, shape.threads, shape.tunables);
    let holder = Holder::start(shape);
    assert!(holder.account.live.len() > 20, "{label}: the program holds next to nothing");
    let rundown = rundown(&holder);
    let unaccounted = compare(&holder, &rundown, &label);
    // stdio is not used; each thread has its vector of thread-local storage.
    assert!(unaccounted <= 2 * shape.threads + 4, "{label}: {unaccounted} blocks that nobody holds");
    (holder, rundown)
}

#[test]
fn a_heap_of_one_thread_is_listed_block_by_block() {
    for seed in 1..=6 {
        for name in ["mixed", "small", "large", "trimmed", "aligned"] {
            let (holder, rundown) = check(Shape { name, seed, ..Shape::default() });
            assert_eq!(rundown.findings(), &[], "{name} seed {seed}");
            // mallinfo2 agrees, and counts cached chunks as used.
            let totals = rundown.totals();
            assert_eq!(totals.mapped_blocks, holder.account.info[1], "{name} seed {seed}");
        }
    }
}

#[test]
fn many_threads_with_arenas_and_caches_are_listed() {
    for (name, threads) in [("mixed", 8), ("small", 40), ("ended", 12), ("large", 5), ("aligned", 3)] {
        let (_holder, rundown) = check(Shape { name, threads, blocks: 1500, ..Shape::default() });
        assert_eq!(rundown.findings(), &[], "{name} with {threads} threads");
        assert!(rundown.arena_count() > 1, "{name}: only one arena");
    }
}

#[test]
fn threads_that_share_arenas_are_listed() {
    let tunables = "glibc.malloc.arena_max=2";
    let (_holder, rundown) = check(Shape { threads: 20, tunables, ..Shape::default() });
    assert_eq!(rundown.findings(), &[]);
    assert!(rundown.arena_count() <= 2);
}

#[test]
fn without_caches_and_with_long_ones_the_lists_are_followed() {
    for tunables in [
        "glibc.malloc.tcache_count=0",
        "glibc.malloc.tcache_count=2000",
        "glibc.malloc.mxfast=160:glibc.malloc.tcache_count=1",
        "glibc.malloc.tcache_max=200",
    ] {
        let (_holder, rundown) = check(Shape { name: "small", threads: 3, tunables, ..Shape::default() });
        assert_eq!(rundown.findings(), &[], "{tunables}");
        assert!(rundown.totals().cached_chunks > 0, "{tunables}: no list was followed");
    }
}

/// Memory that a program takes with sbrk for itself has no marks. Pointers into it decide where
/// chunks begin again. `HEAPR_SBRK_ROUNDS` raises the number of seeds.
#[test]
fn memory_that_the_program_took_with_sbrk_is_stepped_over() {
    let rounds = std::env::var("HEAPR_SBRK_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    for seed in 1..=rounds.unwrap_or(6) {
        for name in ["sbrk", "sbrk-mean"] {
            let (_holder, rundown) = check(Shape { name, seed, ..Shape::default() });
            assert!(!rundown.findings().is_empty(), "{name} seed {seed}: no foreign memory was seen");
        }
    }
}

#[test]
fn a_main_heap_that_cannot_grow_by_brk_is_found_in_its_mappings() {
    for seed in 1..=4 {
        let (_holder, rundown) = check(Shape { name: "no-brk", seed, blocks: 4000, ..Shape::default() });
        assert!(rundown.blocks().any(|block| block.kind == BlockKind::Heap));
    }
}

#[test]
fn of_a_heap_of_a_million_blocks_each_byte_is_read_about_once() {
    let holder = Holder::start(Shape { name: "small", blocks: 1_000_000, ..Shape::default() });
    let memory = CountedMemory {
        memory: StoppedProcess::of(holder.pid()),
        read_bytes: AtomicU64::new(0),
        reads: AtomicU64::new(0),
    };
    let plan = Plan::make(&memory).unwrap();
    let mut room = plan.room(&memory);
    memory.read_bytes.store(0, Relaxed);
    memory.reads.store(0, Relaxed);
    let rundown = walk(&plan, &memory, &holder.account.thread_pointers, &mut room).unwrap();
    let totals = rundown.totals();
    assert!(totals.live_blocks > 500_000, "{totals:?}");
    // Some of the memory that was freed last is read again.
    let (read_bytes, reads) = (memory.read_bytes.into_inner(), memory.reads.into_inner());
    assert!(read_bytes < (totals.live_bytes + totals.free_bytes) * 3 / 2, "{read_bytes} bytes: {totals:?}");
    assert!(reads < 5000, "{reads} reads");
}

/// A process whose reads are counted.
struct CountedMemory {
    memory: StoppedProcess,
    read_bytes: AtomicU64,
    reads: AtomicU64,
}

impl HeapMemory for CountedMemory {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        let count = self.memory.read(address_avma, into);
        self.read_bytes.fetch_add(count as u64, Relaxed);
        self.reads.fetch_add(1, Relaxed);
        count
    }

    fn read_words(&self, places: &[u64], words: &mut [Option<u64>]) {
        self.memory.read_words(places, words);
        self.read_bytes.fetch_add(8 * places.len() as u64, Relaxed);
        self.reads.fetch_add(1, Relaxed);
    }

    fn mappings(&self) -> Result<Vec<Mapping>, Error> {
        self.memory.mappings()
    }

    fn touched_pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<bool>> {
        self.memory.touched_pages(start_avma, page_count)
    }

    fn open(&self, path: &str) -> std::io::Result<std::fs::File> {
        self.memory.open(path)
    }
}

/// `HEAPR_GLIBCS` names folders that each hold a glibc: its loader and `libc.so.6`. If the
/// machine's glibc is newer, a `heap_account` linked with the old one lies there, too. The
/// machine's own glibc is always tested.
#[test]
fn the_heaps_of_each_glibc_at_hand_are_listed() {
    let folders = std::env::var_os("HEAPR_GLIBCS").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&folders).filter(|folder| folder.is_dir()).collect();
    let loaders: Vec<_> = folders.iter().map(|folder| folder.join("ld-linux-x86-64.so.2")).collect();
    let others = loaders.iter().zip(&folders).map(|(loader, folder)| Some((&**loader, &**folder)));
    for loader in std::iter::once(None).chain(others) {
        for (name, threads) in
            [("mixed", 6), ("small", 3), ("aligned", 0), ("trimmed", 2), ("ended", 3), ("no-brk", 0)]
        {
            let tunables = ["", "glibc.malloc.tcache_count=0", "glibc.malloc.tcache_max=1000000"];
            for tunables in tunables {
                let shape = Shape { name, threads, loader, tunables, seed: 5, ..Shape::default() };
                let (_holder, rundown) = check(shape);
                println!("glibc {} {name} {tunables}: {:?}", rundown.version(), rundown.findings());
            }
        }
    }
}
