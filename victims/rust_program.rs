// Rust on the system allocator: boxes, vectors that grow by realloc, strings, threads, a panic that unwinds.
// needs: rustc
// expect: frame=rust_program::victim_boxes allocs=100 alloc_bytes=26300 outstanding=0
// expect: frame=rust_program::victim_zeroed allocs=10 alloc_bytes=26900 outstanding=10
// expect: frame=rust_program::victim_growth allocs=11 reallocs=10 alloc_bytes=8186 outstanding=0
// expect: frame=rust_program::victim_unwound allocs>=20 outstanding=0
// expect: frame=rust_program::victim_thread allocs=80 alloc_bytes=21680 outstanding=0
use std::hint::black_box;

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

// 2, 8, 16, … 4096 bytes: one allocation and ten reallocs.
#[inline(never)]
fn victim_growth() {
    let mut bytes: Vec<u16> = Vec::with_capacity(1);
    for _ in 0..2048 {
        bytes.push(black_box(7));
    }
    black_box(bytes);
}

#[inline(never)]
fn victim_unwound(depth: u32) {
    let _guard = black_box(Box::new(depth));
    if depth == 0 {
        std::panic::resume_unwind(Box::new(1_u8));
    }
    victim_unwound(depth - 1);
    black_box(depth);
}

#[inline(never)]
fn victim_thread() {
    for _ in 0..10 {
        drop(black_box(Box::new([1_u8; 271])));
    }
}

fn main() {
    victim_boxes();
    victim_zeroed();
    victim_growth();
    assert!(std::panic::catch_unwind(|| victim_unwound(19)).is_err());
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(victim_thread)).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    println!("done");
}
