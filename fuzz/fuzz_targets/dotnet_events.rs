//! Fuzzes streams of .NET's events: read, classified, written again.
#![no_main]

use heapr_managed::read_nettrace;
use heapr_v8::devtools::Heap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(heap) = read_nettrace(bytes) else { return };
    let mut written = Vec::new();
    let _ = heap.snapshot.write(&mut written);
    let Ok(heap) = Heap::with_summary(heap.snapshot) else { return };
    heap.aggregates(None);
    heap.statistics();
});
