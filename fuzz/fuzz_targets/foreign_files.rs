//! Fuzzes files of other tools, which are recognised by their first bytes. The first byte of the
//! input chooses such a beginning, so that each reader is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;

const STARTS: [&[u8]; 6] = [
    b"",
    b"v 10400 3\n",
    b"desc: x\ncmd: y\ntime_unit: ms\nsnapshot=0\n",
    b"{\"dhatFileVersion\":2,\"mode\":\"heap\",",
    b"heap_v2/524288\n",
    b"\x0a\x04\x08\x01\x10\x02",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let whole = [STARTS[usize::from(choice) % STARTS.len()], rest].concat();
    if let Ok(trace) = heapr_import::from_bytes(&whole) {
        assert!(trace.check().is_empty());
    }
});
