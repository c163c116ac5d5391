//! Fuzzes bundles of symbols, and programs' descriptions of their JIT code.
#![no_main]

use heapr_symbols::{MadeCode, decode_bundle, read_jitdump, read_made_object, read_perf_map};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(tables) = decode_bundle(bytes) {
        for (_, table) in &tables {
            let _ = table.frames(0);
        }
    }
    for (functions, old) in
        [read_perf_map(bytes, 64), read_jitdump(bytes, 64), (read_made_object(bytes), 0)]
    {
        let _ = MadeCode::new(functions, old).find(0x1000);
    }
});
