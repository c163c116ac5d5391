//! Snapshots in a file are read whole or not at all, however many there are and wherever the file
//! ends.

use heapr_trace::{
    Block, ChunkKind, HeapId, ProcessIndex, Snapshot, SnapshotColumns, SnapshotProcess, SnapshotTrigger,
    StackIndex, StackNode, Summary, ThreadIndex, Trace, TraceWriter,
};
use proptest::prelude::*;

const STACK_COUNT: u32 = 9;

fn block() -> impl Strategy<Value = Block> {
    let owner = (0..3_u32, prop_oneof![4 => Just(0_u8), 1 => any::<u8>()], any::<bool>());
    let place = (
        prop_oneof![9 => 0x1000_u64..0x9000, 1 => any::<u64>()],
        prop_oneof![9 => 0..300_u64, 1 => any::<u64>()],
    );
    (owner, place, 0..=STACK_COUNT, 0..1_u32 << 24, any::<u64>()).prop_map(
        |((process, heap, is_realloc), (address_avma, size_bytes), stack, thread, alloc_ns)| Block {
            process: ProcessIndex(process),
            heap: HeapId(heap),
            address_avma,
            size_bytes,
            stack: StackIndex(stack),
            thread: ThreadIndex(thread),
            alloc_ns,
            is_realloc,
        },
    )
}

fn trigger() -> impl Strategy<Value = SnapshotTrigger> {
    prop_oneof![
        Just(SnapshotTrigger::Request),
        any::<u64>().prop_map(|interval_ms| SnapshotTrigger::Interval { interval_ms }),
        any::<u64>().prop_map(|threshold_bytes| SnapshotTrigger::Rss { threshold_bytes }),
        any::<u64>().prop_map(|percent| SnapshotTrigger::Growth { percent }),
        any::<u64>().prop_map(|signal| SnapshotTrigger::Signal { signal }),
        Just(SnapshotTrigger::Exit),
        any::<u64>().prop_map(|signal| SnapshotTrigger::Killed { signal }),
        Just(SnapshotTrigger::OutOfMemory),
        Just(SnapshotTrigger::Other { number: 99 }),
    ]
}

fn head() -> impl Strategy<Value = Snapshot> {
    let process = (0..65_536_u32, proptest::option::of(0..u64::MAX - 1), any::<u64>(), any::<u64>())
        .prop_map(|(process, rss_bytes, block_count, block_bytes)| SnapshotProcess {
            process: ProcessIndex(process),
            rss_bytes,
            block_count,
            block_bytes,
        });
    let texts = proptest::collection::vec("[a-zä \n]{0,9}", 0..3);
    (0..3_u64, any::<u64>(), "\\PC{0,12}", trigger(), proptest::collection::vec(process, 0..3), texts)
        .prop_map(|(time_ns, event_index, name, trigger, processes, notes)| Snapshot {
            number: 0,
            // Few different times: some snapshots have the same nanosecond.
            time_ns,
            event_index,
            name,
            trigger,
            block_count: 0,
            block_bytes: 7,
            part_count: 0,
            export_ns: 5,
            processes,
            notes,
        })
}

/// Writes the snapshots with their parts in turn, as if all were taken at once.
fn write(snapshots: &mut [(Snapshot, Vec<Vec<Block>>)], is_finished: bool) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = TraceWriter::new(&mut file).unwrap();
    for pid in 0..3 {
        let (executable, command_line) = (String::new(), Vec::new());
        let process = heapr_trace::Process {
            pid,
            parent_pid: 0,
            origin: heapr_trace::ProcessOrigin::Exec,
            start_ns: 0,
            end_ns: None,
            executable,
            command_line,
            exit_status: None,
        };
        writer.add_process(process).unwrap();
    }
    for number in 0..STACK_COUNT {
        let node = StackNode {
            parent: StackIndex(number),
            process: ProcessIndex(0),
            return_address_avma: 0x40_0000 + u64::from(number),
            first_seen_ns: 0,
        };
        writer.add_stack(node).unwrap();
    }
    let mut columns = SnapshotColumns::new();
    for (place, (head, parts)) in snapshots.iter_mut().enumerate() {
        head.number = place as u32 + 1;
        head.part_count = parts.len() as u32;
    }
    let most = snapshots.iter().map(|(_, parts)| parts.len()).max().unwrap_or(0);
    for part in 0..most {
        for (head, parts) in snapshots.iter() {
            let Some(blocks) = parts.get(part) else { continue };
            blocks.iter().for_each(|block| columns.push(block));
            writer.snapshot_part(head.number, part as u32, head.time_ns, &mut columns).unwrap();
            assert_eq!(columns.count(), 0);
        }
    }
    for (head, _) in snapshots.iter() {
        writer.snapshot(head).unwrap();
    }
    if is_finished {
        writer.finish(&Summary::default()).unwrap()
    } else {
        writer.flush().unwrap()
    }
    drop(writer);
    file
}

fn open(file: Vec<u8>) -> Trace {
    Trace::from_source(Box::new(file)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn all_snapshots_of_a_file_come_back(
        mut snapshots in proptest::collection::vec(
            (head(), proptest::collection::vec(proptest::collection::vec(block(), 0..40), 0..4)), 0..4),
        is_finished: bool,
    ) {
        let trace = open(write(&mut snapshots, is_finished));
        prop_assert_eq!(trace.snapshots().len(), snapshots.len());
        for (head, parts) in &snapshots {
            let found = trace.snapshot(head.number).unwrap();
            prop_assert_eq!(found, head);
            let mut blocks = Vec::new();
            let damage = trace.for_each_snapshot_block(found, |block| blocks.push(*block)).unwrap();
            prop_assert!(damage.is_empty());
            prop_assert_eq!(blocks, parts.concat());
        }
    }

    #[test]
    fn a_damaged_snapshot_never_panics(
        mut snapshots in proptest::collection::vec(
            (head(), proptest::collection::vec(proptest::collection::vec(block(), 0..40), 0..4)), 1..3),
        damage in proptest::collection::vec((any::<u32>(), any::<u8>()), 1..20),
    ) {
        let mut file = write(&mut snapshots, true);
        for (place, byte) in damage {
            let place = place as usize % file.len();
            file[place] ^= byte;
        }
        let Ok(trace) = Trace::from_source(Box::new(file)) else { return Ok(()) };
        for snapshot in trace.snapshots() {
            let mut count = 0;
            trace.for_each_snapshot_block(snapshot, |_| count += 1).unwrap();
            prop_assert!(count <= 480);
        }
    }
}

fn one_snapshot(block_count: u64) -> (Snapshot, Vec<Vec<Block>>) {
    let block = |number: u64| Block {
        process: ProcessIndex(0),
        heap: HeapId::MALLOC,
        address_avma: 0x5000 + number * 32,
        size_bytes: 24,
        stack: StackIndex(3),
        thread: ThreadIndex(0),
        alloc_ns: number * 100,
        is_realloc: false,
    };
    let head = Snapshot {
        number: 1,
        time_ns: 1_000_000,
        event_index: block_count,
        name: "full".to_owned(),
        trigger: SnapshotTrigger::Request,
        block_count,
        block_bytes: 24 * block_count,
        part_count: 2,
        export_ns: 1,
        processes: Vec::new(),
        notes: Vec::new(),
    };
    let half = block_count / 2;
    (head, vec![(0..half).map(block).collect(), (half..block_count).map(block).collect()])
}

#[test]
fn a_snapshot_that_the_file_ends_within_is_not_there() {
    let mut snapshots = [one_snapshot(100)];
    let file = write(&mut snapshots, false);
    let trace = open(file.clone());
    let table = trace.chunks().iter().find(|chunk| chunk.kind == Some(ChunkKind::Snapshots)).unwrap();
    let whole = table.offset as usize + 48 + table.stored_bytes as usize;
    for length in 16..file.len() {
        let trace = open(file[..length].to_vec());
        assert_eq!(trace.snapshots().len(), usize::from(length >= whole), "cut at {length}");
    }
}

#[test]
fn a_damaged_part_costs_its_own_blocks_and_is_told() {
    let mut snapshots = [one_snapshot(100)];
    let mut file = write(&mut snapshots, true);
    let parts: Vec<u64> = open(file.clone())
        .chunks()
        .iter()
        .filter(|chunk| chunk.kind == Some(ChunkKind::SnapshotBlocks))
        .map(|chunk| chunk.offset)
        .collect();
    assert_eq!(parts.len(), 2);
    file[parts[0] as usize + 60] ^= 1;
    let trace = open(file);
    let mut count = 0;
    let damage = trace.for_each_snapshot_block(&trace.snapshots()[0], |_| count += 1).unwrap();
    assert_eq!((count, damage.len(), damage[0].offset), (50, 1, parts[0]));
}

#[test]
fn a_missing_part_is_told() {
    let mut snapshots = [one_snapshot(100)];
    snapshots[0].1.pop();
    let file = write(&mut snapshots, true);
    let trace = open(file);
    let mut claimed = trace.snapshots()[0].clone();
    claimed.part_count = 2;
    let damage = trace.for_each_snapshot_block(&claimed, |_| {}).unwrap();
    assert_eq!(damage[0].what, "parts of the snapshot are missing");
}

#[test]
fn neighbours_take_few_bytes_a_block() {
    let mut snapshots = [one_snapshot(100_000)];
    let file = write(&mut snapshots, true);
    assert!(file.len() < 100_000, "{} bytes for 100,000 blocks", file.len());
}

/// A graph with a node whose references fill more than a chunk, and roots of all kinds.
fn large_graph() -> heapr_trace::HeapGraph {
    use heapr_trace::{EdgeGrade, HeapGraph, RootArea, RootClass, RootEdge};
    let node_count = 1000_u32;
    let mut graph = HeapGraph { first_edge: vec![0], pause_ns: 77, ..HeapGraph::default() };
    for node in 0..node_count {
        let degree = if node == 500 { 600_000 } else { node % 5 };
        for number in 0..degree {
            graph.targets.push((node * 7 + number) % node_count);
            graph.slots.push(number * 2);
            graph.grades.push(if number % 2 == 0 { EdgeGrade::Start } else { EdgeGrade::Interior });
        }
        graph.first_edge.push(graph.targets.len() as u32);
    }
    let area = |class, start_avma, tid, name: &str| RootArea {
        class,
        start_avma,
        end_avma: start_avma + 4096,
        tid,
        name: name.to_owned(),
    };
    graph.areas = vec![
        area(RootClass::Stack, 0x7fff_0000_0000, 12, "worker"),
        area(RootClass::Global, 0x5555_0000_0000, 0, "/lib/libfoo.so"),
        area(RootClass::Other(200), 8, 0, ""),
    ];
    for number in 0..5000_u32 {
        graph.roots.push(RootEdge {
            area: number % 3,
            offset_bytes: u64::from(number) * 8,
            target: number % node_count,
            grade: EdgeGrade::Tagged,
        });
    }
    graph.types = (0..node_count).map(|node| node % 3).collect();
    graph.type_names = vec!["3Foo".to_owned(), "N1a1bE".to_owned()];
    for node in (3..node_count).step_by(7) {
        graph.texts.push(node, &format!("text of {node} …"));
    }
    for node in (2..node_count).step_by(100) {
        let sliced = heapr_trace::SlicedBlock { node, view_count: 2, covered_bytes: u64::from(node) };
        graph.sliced.push(sliced);
    }
    graph.notes = vec!["something was not seen".to_owned()];
    graph
}

#[test]
fn a_graph_comes_back_and_one_with_a_part_missing_does_not() {
    let graph = large_graph();
    let snapshot = heapr_trace::Snapshot {
        number: 1,
        time_ns: 1000,
        event_index: 0,
        name: String::new(),
        trigger: heapr_trace::SnapshotTrigger::Request,
        block_count: 0,
        block_bytes: 0,
        part_count: 0,
        export_ns: 0,
        processes: Vec::new(),
        notes: Vec::new(),
    };
    let mut bytes = Vec::new();
    let mut writer = heapr_trace::TraceWriter::new(&mut bytes).unwrap();
    writer.heap_graph(&snapshot, &graph).unwrap();
    writer.snapshot(&snapshot).unwrap();
    writer.finish(&heapr_trace::Summary::default()).unwrap();
    drop(writer);
    let trace = heapr_trace::Trace::from_source(Box::new(bytes.clone())).unwrap();
    let process = heapr_trace::ProcessIndex(0);
    assert_eq!(trace.graph_processes(&snapshot), [process]);
    assert_eq!(trace.heap_graph(&snapshot, process).unwrap().as_ref(), Some(&graph));
    assert_eq!(trace.heap_graph(&snapshot, heapr_trace::ProcessIndex(1)).unwrap(), None);
    // A byte in the middle of the references.
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    let damaged = heapr_trace::Trace::from_source(Box::new(bytes)).unwrap();
    assert!(damaged.heap_graph(&snapshot, process).is_err());
}
