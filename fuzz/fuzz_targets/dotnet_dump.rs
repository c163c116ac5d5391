//! Fuzzes `.gcdump` files of .NET: read, classified, written again.
#![no_main]

use heapr_managed::read_gcdump;
use heapr_v8::devtools::Heap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(heap) = read_gcdump(bytes) else { return };
    let mut written = Vec::new();
    let _ = heap.snapshot.write(&mut written);
    let Ok(heap) = Heap::with_summary(heap.snapshot) else { return };
    heap.aggregates(None);
    heap.statistics();
});
