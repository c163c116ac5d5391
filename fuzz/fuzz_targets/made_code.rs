//! Fuzzes descriptions of JIT code: a `perf-PID.map`, a `jit-PID.dump`, or an object registered for
//! debuggers. The first byte is the amount read before.

#![no_main]

use heapr_symbols::{MadeCode, read_jitdump, read_made_object, read_perf_map};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&before, bytes)) = bytes.split_first() else { return };
    let of_maps = [read_perf_map(bytes, before.into()), read_jitdump(bytes, before.into())];
    for (functions, old) in of_maps.into_iter().chain([(read_made_object(bytes), 0)]) {
        assert!(old <= functions.len());
        let starts: Vec<u64> = functions.iter().map(|function| function.start_avma).collect();
        let made = MadeCode::new(functions, old);
        for avma in starts.into_iter().take(64) {
            let _ = (made.find(avma), made.find(avma.wrapping_add(1)));
        }
    }
});
