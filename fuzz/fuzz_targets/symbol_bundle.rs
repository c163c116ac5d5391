//! Any bytes as a bundle of symbols and as a perf map.
#![no_main]

use heapr_symbols::{PerfMap, decode_bundle};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(tables) = decode_bundle(bytes) {
        for (_, table) in &tables {
            let _ = table.frames(0);
        }
    }
    let _ = PerfMap::parse(bytes).find(0x1000);
});
