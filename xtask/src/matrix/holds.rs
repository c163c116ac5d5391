// Allocates and frees blocks, and prints the totals at its end; with the word `serve` it runs for
// ever.
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg(feature = "jem")]
static INNER: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
#[cfg(feature = "mi")]
static INNER: mimalloc::MiMalloc = mimalloc::MiMalloc;
#[cfg(feature = "sn")]
static INNER: snmalloc_rs::SnMalloc = snmalloc_rs::SnMalloc;
#[cfg(feature = "sys")]
static INNER: std::alloc::System = std::alloc::System;

static COUNTS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

struct Counted;

// SAFETY: forwards each call to an allocator that satisfies the contract.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNTS[0].fetch_add(1, Relaxed);
        COUNTS[2].fetch_add(layout.size() as u64, Relaxed);
        unsafe { INNER.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        COUNTS[1].fetch_add(1, Relaxed);
        COUNTS[3].fetch_add(layout.size() as u64, Relaxed);
        unsafe { INNER.dealloc(block, layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNTS[0].fetch_add(1, Relaxed);
        COUNTS[1].fetch_add(1, Relaxed);
        COUNTS[2].fetch_add(size as u64, Relaxed);
        COUNTS[3].fetch_add(layout.size() as u64, Relaxed);
        unsafe { INNER.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALL: Counted = Counted;

fn round(count: usize) -> Vec<Vec<u8>> {
    let mut blocks: Vec<Vec<u8>> = (0..count).map(|number| vec![number as u8 | 1; 1000]).collect();
    for number in (0..count).step_by(2) {
        blocks[number] = Vec::new();
    }
    blocks
}

fn main() {
    if std::env::args().nth(1).is_some() {
        let mut kept = Vec::new();
        loop {
            kept = [kept, round(2000)].concat();
            if kept.len() > 20_000 {
                kept.clear();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    let blocks = round(20_000);
    let [made, freed, made_bytes, freed_bytes] = COUNTS.each_ref().map(|count| count.load(Relaxed));
    println!("allocs {made} frees {freed} bytes {made_bytes} live {} blocks {}", made_bytes - freed_bytes, blocks.len());
}
