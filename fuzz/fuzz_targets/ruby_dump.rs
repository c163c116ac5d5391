//! Fuzzes dumps of Ruby: read with their texts, classified, written again.
#![no_main]

use std::io::Read;

use heapr_managed::{Contents, read_ruby_dump};
use heapr_v8::devtools::Heap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let open = || Ok(Box::new(std::io::Cursor::new(bytes.to_vec())) as Box<dyn Read + Send>);
    let Ok(heap) = read_ruby_dump(&open, Contents::Strings) else { return };
    let mut written = Vec::new();
    let _ = heap.snapshot.write(&mut written);
    let Ok(heap) = Heap::with_summary(heap.snapshot) else { return };
    heap.aggregates(None);
    heap.statistics();
});
