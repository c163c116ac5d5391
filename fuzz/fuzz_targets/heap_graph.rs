//! Fuzzes a trace with a graph, some of whose bytes are changed. It is read or refused, and no
//! index leads out of the graph.
//!
//! `cargo +nightly fuzz run heap_graph`: pairs of offset (two bytes) and byte.
#![no_main]

use std::sync::OnceLock;

use heapr_trace::{
    EdgeGrade, HeapGraph, ProcessIndex, RootArea, RootClass, RootEdge, SlicedBlock, Snapshot,
    SnapshotTrigger, Summary, Trace, TraceWriter,
};
use libfuzzer_sys::fuzz_target;

fn made() -> &'static Vec<u8> {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut graph = HeapGraph { first_edge: vec![0], ..HeapGraph::default() };
        for node in 0..40_u32 {
            for number in 0..node % 4 {
                graph.targets.push((node * 3 + number) % 40);
                graph.slots.push(number);
                graph.grades.push(EdgeGrade::Start);
            }
            graph.first_edge.push(graph.targets.len() as u32);
            graph.types.push(node % 2);
        }
        graph.type_names.push("3Foo".to_owned());
        graph.areas.push(RootArea {
            class: RootClass::Stack,
            start_avma: 4096,
            end_avma: 8192,
            tid: 7,
            name: "worker".to_owned(),
        });
        for target in 0..10 {
            graph.roots.push(RootEdge { area: 0, offset_bytes: 8, target, grade: EdgeGrade::Interior });
        }
        for node in [3, 9, 30] {
            graph.sliced.push(SlicedBlock { node, view_count: 2, covered_bytes: 16 });
        }
        let snapshot = Snapshot {
            number: 1,
            time_ns: 5,
            event_index: 0,
            name: String::new(),
            trigger: SnapshotTrigger::Request,
            block_count: 0,
            block_bytes: 0,
            part_count: 0,
            export_ns: 0,
            processes: Vec::new(),
            notes: Vec::new(),
        };
        let mut bytes = Vec::new();
        let mut writer = TraceWriter::new(&mut bytes).unwrap();
        writer.heap_graph(&snapshot, &graph).unwrap();
        writer.snapshot(&snapshot).unwrap();
        writer.finish(&Summary::default()).unwrap();
        drop(writer);
        bytes
    })
}

fuzz_target!(|changes: &[u8]| {
    let mut bytes = made().clone();
    for change in changes.chunks_exact(3) {
        let offset = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
        bytes[offset] = change[2];
    }
    let Ok(trace) = Trace::from_source(Box::new(bytes)) else { return };
    for snapshot in trace.snapshots() {
        for process in [ProcessIndex(0)].into_iter().chain(trace.graph_processes(snapshot)) {
            let Ok(Some(graph)) = trace.heap_graph(snapshot, process) else { continue };
            let node_count = graph.node_count();
            assert!(graph.first_edge.windows(2).all(|pair| pair[0] <= pair[1]));
            assert!(graph.targets.iter().all(|&target| target < node_count));
            assert!(graph.sliced.iter().all(|sliced| sliced.node < node_count));
            assert!(graph.roots.iter().all(|root| root.target < node_count));
            assert!(graph.roots.iter().all(|root| (root.area as usize) < graph.areas.len()));
            assert!((0..node_count).all(|node| graph.edges(node).end <= graph.targets.len()));
        }
    }
});
