//! Fuzzes core files: each is read or refused, and memory is bounded by what is requested.
//!
//! `cargo +nightly fuzz run core_file`: the bytes of the file.
#![no_main]

use heapr_proc::CoreFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut core) = CoreFile::of_bytes(bytes.to_vec()) else { return };
    core.use_files(|_| "/nonexistent".into());
    let mut into = [0; 256];
    for mapping in core.mappings() {
        assert!(mapping.start_avma < mapping.end_avma);
        assert!(core.read_memory(mapping.end_avma - 1, &mut into) <= into.len());
        assert!(core.read_memory(mapping.start_avma, &mut into) <= into.len());
    }
    assert!(core.mappings().windows(2).all(|pair| pair[0].end_avma <= pair[1].start_avma));
    // Includes the search for the heap.
    let _ = heapr_glibc_heap::Plan::make(&core);
});
