//! Fuzzes V8 heap snapshots: read, checked, classified, written again.
//!
//! Run it with `-malloc_limit_mb=20000`: columns are allocated for as many rows as the header
//! promises, in memory that is not touched.
#![no_main]

use heapr_v8::devtools::Heap;
use heapr_v8::{ReadOptions, Secrecy, Snapshot};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let options = ReadOptions { thread_count: 1, ..ReadOptions::default() };
    let Ok(snapshot) = Snapshot::read(std::io::Cursor::new(bytes.to_vec()), &options) else { return };
    snapshot.check();
    let mut written = Vec::new();
    let _ = snapshot.write_anonymous(Secrecy::TextsAndNames, &mut written);
    let _ = snapshot.write_retained_by(snapshot.node_count() - 1, &mut written);
    let Ok(heap) = Heap::with_summary(snapshot) else { return };
    heap.aggregates(None);
    heap.statistics();
});
