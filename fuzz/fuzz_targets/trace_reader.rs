//! Fuzzes traces: all of a trace is read, without a panic, a hang or unbounded memory.
//!
//! `cargo +nightly fuzz run trace_reader` (start from a real file in fuzz/corpus/trace_reader).
#![no_main]

use heapr_trace::Trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = Trace::from_source(Box::new(bytes.to_vec())) else { return };
    let _ = trace.summary();
    let _ = trace.course();
    let _ = trace.checkpoint_before(u64::MAX);
    let _ = trace.embedded_symbols();
    for number in 0..trace.stacks().len() as u32 {
        if let Some(node) = trace.stacks().node(heapr_trace::StackIndex(number)) {
            let _ = trace.locate(node.process, node.return_address_avma, node.first_seen_ns);
        }
    }
    for snapshot in trace.snapshots() {
        let _ = trace.for_each_snapshot_block(snapshot, |_| {});
        for process in trace.graph_processes(snapshot) {
            let _ = trace.heap_graph(snapshot, process);
        }
    }
    let mut events = trace.events(0, u64::MAX);
    while let Ok(Some(_)) = events.next_batch() {}
});
