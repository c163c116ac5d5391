// A Rust program with an allocator of its own on mmap: only Rust's allocation functions are
// visible.
// needs: rustc
// build: -C opt-level=0
// expect: frame=rust_own_allocator::victim_boxes allocs=100 alloc_bytes=26300 outstanding=0
// expect: frame=rust_own_allocator::victim_zeroed allocs=10 alloc_bytes=26900 outstanding=10
// expect: frame=rust_own_allocator::victim_growth allocs=11 reallocs=10 alloc_bytes=8186 outstanding=0
use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Bump;
static POOL: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    fn mmap(address: usize, bytes: usize, protection: i32, flags: i32, descriptor: i32, offset: i64) -> usize;
}

unsafe impl GlobalAlloc for Bump {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if POOL.load(Relaxed) == 0 {
            POOL.store(unsafe { mmap(0, 64 << 20, 3, 0x22, -1, 0) }, Relaxed);
        }
        let bytes = (layout.size() + 63) & !63;
        (POOL.load(Relaxed) + USED.fetch_add(bytes, Relaxed)) as *mut u8
    }
    #[inline(never)]
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Bump = Bump;

#[inline(never)]
fn victim_boxes() {
    for _ in 0..100 {
        drop(black_box(Box::new([1_u8; 263])));
    }
}

#[inline(never)]
fn victim_zeroed() {
    for _ in 0..10 {
        std::mem::forget(black_box(vec![0_u8; 2690]));
    }
}

#[inline(never)]
fn victim_growth() {
    let mut bytes: Vec<u16> = Vec::with_capacity(1);
    for _ in 0..2048 {
        bytes.push(black_box(7));
    }
    black_box(bytes);
}

fn main() {
    victim_boxes();
    victim_zeroed();
    victim_growth();
}
