//! Fuzzes the memory of a CPython: its heap is read or refused, and is bounded by the memory.
//!
//! `cargo +nightly fuzz run python_heap`: which words of a made process are other ones.
#![no_main]

use heapr_managed::{Contents, write_snapshot};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/managed/tests/it/made_memory.rs"]
mod made_memory;

use made_memory::MadeMemory;

thread_local! {
    static MADE: MadeMemory = MadeMemory::new();
}

fuzz_target!(|bytes: &[u8]| {
    let mut bent = MADE.with(Clone::clone);
    bent.bend(bytes);
    let Ok(mut heap) = bent.read(Contents::Strings) else { return };
    let word_count = bent.word_count();
    assert!(heap.edges.len() <= 4 * word_count && heap.nodes.len() <= word_count);
    let _ = write_snapshot(&mut heap, &mut std::io::sink());
});
