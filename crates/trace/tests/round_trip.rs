//! Written traces are read unchanged; damage is skipped and reported; nothing panics.

use heapr_trace::{
    Action, Amounts, Block, ChunkKind, Course, CourseMoment, CourseRest, CourseRow, Event, HeapId, Mapping,
    Module, ModuleIndex, Process, ProcessIndex, ProcessOrigin, StackIndex, StackNode, StackTotals, Summary,
    Thread, ThreadIndex, Totals, Trace, TraceWriter,
};
use proptest::prelude::*;

fn process(pid: u32) -> Process {
    Process {
        pid,
        parent_pid: 1,
        origin: ProcessOrigin::Exec,
        start_ns: 5,
        end_ns: Some(u64::MAX),
        executable: "/bin/true".into(),
        command_line: vec!["true".into(), "a b".into()],
        exit_status: Some(-1),
    }
}

fn thread(tid: u32) -> Thread {
    Thread { process: ProcessIndex(0), tid, name: "main".into(), start_ns: 1, end_ns: None }
}

fn write(events: &[Event], blocks: &[Block], is_finished: bool) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = TraceWriter::new(&mut file).unwrap();
    writer.add_process(process(7)).unwrap();
    for tid in 0..4 {
        writer.add_thread(thread(tid)).unwrap();
    }
    let module = writer.add_module(Module { path: "/lib/a.so".into(), build_id: vec![1, 2, 3] }).unwrap();
    let mapping = Mapping {
        process: ProcessIndex(0),
        module,
        start_avma: 0x1000,
        end_avma: 0x9000,
        bias_avma: 0x800,
        loaded_ns: 2,
        unloaded_ns: u64::MAX,
    };
    writer.add_mapping(mapping).unwrap();
    let mut parent = StackIndex::EMPTY;
    for number in 0..50 {
        let node = StackNode {
            parent,
            process: ProcessIndex(0),
            return_address_avma: 0x1000 + number * 16,
            first_seen_ns: 3,
        };
        parent = writer.add_stack(node).unwrap();
    }
    for event in events {
        writer.event(event).unwrap();
    }
    let last_ns = events.last().map_or(0, |event| event.time_ns);
    writer.checkpoint(last_ns, blocks.iter().copied()).unwrap();
    writer.flush().unwrap();
    if is_finished {
        let totals = Totals { alloc_count: 3, peak_bytes: u64::MAX, ..Totals::default() };
        let by_stack = vec![StackTotals {
            stack: StackIndex(9),
            amounts: Amounts { total_bytes: 77, peak_count: 1, ..Amounts::default() },
            ..StackTotals::default()
        }];
        let summary = Summary {
            totals,
            by_heap: vec![(ProcessIndex(0), HeapId::MMAP, totals)],
            by_stack,
            event_count: events.len() as u64,
            duration_ns: last_ns + 1,
            course: course(),
            counts_living: true,
        };
        writer.finish(&summary).unwrap();
    }
    drop(writer);
    file
}

fn course() -> Course {
    let row = CourseRow {
        stack: StackIndex(9),
        live_bytes: 7,
        live_count: 1,
        total_count: u64::MAX,
        ..CourseRow::default()
    };
    let moment = |time_ns, rows| CourseMoment {
        time_ns,
        live_bytes: 7,
        live_count: 1,
        total_count: 2,
        rows,
        ..CourseMoment::default()
    };
    let mut last = moment(20, Vec::new());
    last.rests.push(CourseRest { process: ProcessIndex(0), row: CourseRow { stack: StackIndex(4), ..row } });
    Course { moments: vec![moment(10, vec![row]), last] }
}

fn read_all(file: Vec<u8>) -> Option<Vec<Event>> {
    let trace = Trace::from_source(Box::new(file)).ok()?;
    let _ = trace.summary();
    let _ = trace.checkpoint_before(u64::MAX);
    let _ = trace.embedded_symbols();
    if let Ok(Some(read)) = trace.course() {
        let mut expected = course();
        if read.moments.iter().all(|moment| moment.rests.is_empty()) {
            // The chunk beside that of the course is damaged, or cut off.
            expected.moments.iter_mut().for_each(|moment| moment.rests.clear());
        }
        assert_eq!(read, expected);
    }
    let _ = trace.stacks().len();
    let mut events = trace.events(0, u64::MAX);
    let mut all = Vec::new();
    while let Ok(Some(batch)) = events.next_batch() {
        all.extend_from_slice(batch);
    }
    Some(all)
}

fn action() -> impl Strategy<Value = Action> {
    // Few addresses and sizes, so that the predictors of the format are hit as well as missed.
    let address = prop_oneof![8 => (0_u64..40).prop_map(|n| 0x5555_0000 + n * 16), 1 => any::<u64>().prop_map(|n| n >> 8)];
    let size = prop_oneof![8 => 0_u64..200, 1 => any::<u64>()];
    let stack = (0_u32..51).prop_map(StackIndex);
    (0..4_u8, address.clone(), address, size, stack, any::<bool>()).prop_map(
        |(kind, address_avma, old_address_avma, size_bytes, stack, is_moved_realloc)| match kind {
            0 => Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc },
            1 => Action::Free {
                address_avma,
                stack: if is_moved_realloc { StackIndex::EMPTY } else { stack },
                is_moved_realloc,
            },
            2 => Action::Realloc { old_address_avma, address_avma, size_bytes, stack },
            _ => Action::Failed { size_bytes, stack },
        },
    )
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (0_u64..1000, 0_u32..4, prop_oneof![9 => Just(0_u8), 1 => 0..3_u8], action());
    proptest::collection::vec(event, 0..400).prop_map(|parts| {
        let mut time_ns = 0;
        let event = |(step, thread, heap, action)| {
            time_ns += step;
            Event { time_ns, thread: ThreadIndex(thread), heap: HeapId(heap), action }
        };
        parts.into_iter().map(event).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn events_come_back_as_they_were_written(events in events(), is_finished: bool) {
        prop_assert_eq!(read_all(write(&events, &[], is_finished)).unwrap(), events);
    }

    #[test]
    fn a_damaged_file_never_panics(events in events(), damage in proptest::collection::vec((any::<u32>(), any::<u8>()), 1..20)) {
        let mut file = write(&events, &[], true);
        for (place, byte) in damage {
            let place = place as usize % file.len();
            file[place] ^= byte;
        }
        read_all(file);
    }

    #[test]
    fn a_range_holds_what_lies_in_it(events in events(), from in 0_u64..100_000, length in 0_u64..100_000) {
        let trace = Trace::from_source(Box::new(write(&events, &[], true))).unwrap();
        let mut reader = trace.events(from, from + length);
        let mut found = Vec::new();
        while let Some(batch) = reader.next_batch().unwrap() {
            found.extend_from_slice(batch);
        }
        let expected: Vec<Event> =
            events.into_iter().filter(|event| (from..from + length).contains(&event.time_ns)).collect();
        prop_assert_eq!(found, expected);
    }
}

fn some_events() -> Vec<Event> {
    (0..300)
        .map(|number| Event {
            time_ns: number * 10,
            thread: ThreadIndex((number % 3) as u32),
            heap: HeapId::MALLOC,
            action: Action::Alloc {
                address_avma: 0x1000 + number * 32,
                size_bytes: number,
                stack: StackIndex((number % 51) as u32),
                is_moved_realloc: false,
            },
        })
        .collect()
}

#[test]
fn a_file_cut_anywhere_is_read_up_to_there() {
    let events = some_events();
    let file = write(&events, &[], true);
    for length in 0..file.len() {
        let Some(found) = read_all(file[..length].to_vec()) else { continue };
        assert!(found.is_empty() || found == events, "cut at {length}");
    }
}

#[test]
fn tables_summary_and_checkpoint_come_back() {
    let block = |address_avma| Block {
        process: ProcessIndex(0),
        heap: HeapId::MALLOC,
        address_avma,
        size_bytes: 24,
        stack: StackIndex(3),
        thread: ThreadIndex(1),
        alloc_ns: 17,
        is_realloc: address_avma == 0x2000,
    };
    let blocks = [block(0x1000), block(0x2000)];
    let trace = Trace::from_source(Box::new(write(&some_events(), &blocks, true))).unwrap();
    assert!(trace.is_complete() && trace.damage().is_empty());
    assert_eq!(trace.processes(), [process(7)]);
    assert_eq!(trace.threads().len(), 4);
    assert_eq!(trace.stacks().len(), 51);
    assert_eq!(trace.locate(ProcessIndex(0), 0x1010, 3), Some((ModuleIndex(0), 0x810)));
    assert_eq!(trace.locate(ProcessIndex(0), 0x1010, 1), None, "before it was loaded");
    let checkpoint = trace.checkpoint_before(u64::MAX).unwrap().unwrap();
    assert_eq!((checkpoint.blocks.as_slice(), checkpoint.event_index), (blocks.as_slice(), 300));
    let summary = trace.summary().unwrap().unwrap();
    assert_eq!(summary.totals.peak_bytes, u64::MAX);
    assert_eq!(summary.by_stack[0].amounts.total_bytes, 77);
}

#[test]
fn what_is_no_trace_is_said_to_be_none() {
    let message = |file: Vec<u8>| Trace::from_source(Box::new(file)).unwrap_err().to_string();
    assert_eq!(message(Vec::new()), "the file is empty");
    assert!(message(b"\x7fELF".to_vec()).starts_with("not a heapr trace"));
    let mut newer = write(&[], &[], true);
    newer[8] = 9;
    assert!(message(newer).contains("format version 9"));
}

#[test]
fn a_damaged_chunk_is_skipped_and_the_rest_is_read() {
    let file = write(&some_events(), &[], true);
    let trace = Trace::from_source(Box::new(file.clone())).unwrap();
    let threads = trace.chunks().iter().find(|chunk| chunk.kind == Some(ChunkKind::Threads)).unwrap();
    let mut damaged = file;
    damaged[threads.offset as usize + 60] ^= 0xff;
    let trace = Trace::from_source(Box::new(damaged)).unwrap();
    assert_eq!(trace.damage().len(), 1);
    assert_eq!(trace.damage()[0].offset, threads.offset);
    assert_eq!(trace.event_count(), 300);
}
