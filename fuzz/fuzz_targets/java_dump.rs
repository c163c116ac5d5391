//! Fuzzes heap dumps of Java: read with their texts, classified, written again.
#![no_main]

use std::io::Read;

use heapr_managed::{Contents, read_hprof};
use heapr_v8::devtools::Heap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let open = |offset: u64| {
        let mut bytes = std::io::Cursor::new(bytes.to_vec());
        bytes.set_position(offset);
        Ok(Some(Box::new(bytes) as Box<dyn Read + Send>))
    };
    let Ok(heap) = read_hprof(&open, Contents::Strings) else { return };
    let mut written = Vec::new();
    let _ = heap.snapshot.write(&mut written);
    let Ok(heap) = Heap::with_summary(heap.snapshot) else { return };
    heap.aggregates(None);
    heap.statistics();
});
