//! A file of format version 1, written once and never again: a change of the reader that breaks it
//! fails here.

use heapr_trace::{
    Action, Amounts, Block, Course, Error, Event, HeapId, Loss, Mapping, Marker, Module, ModuleIndex,
    Process, ProcessIndex, ProcessOrigin, ResidentSample, RssSample, Session, StackIndex, StackNode,
    StackTotals, Summary, SymbolEmbedder, System, Thread, ThreadIndex, Totals, Trace, TraceWriter,
};

const STORED: &[u8] = include_bytes!("data/version-1.heapr");

fn processes() -> [Process; 2] {
    let parent = Process {
        pid: 100,
        parent_pid: 1,
        origin: ProcessOrigin::Exec,
        start_ns: 5,
        end_ns: Some(2_000_000),
        executable: "/usr/bin/prog ä".into(),
        command_line: vec!["prog".into(), String::new(), "a b".into()],
        exit_status: Some(0x100),
    };
    let child = Process {
        pid: 101,
        parent_pid: 100,
        origin: ProcessOrigin::Fork { parent: ProcessIndex(0) },
        end_ns: None,
        exit_status: None,
        ..parent.clone()
    };
    [parent, child]
}

fn thread(process: u32, tid: u32) -> Thread {
    Thread {
        process: ProcessIndex(process),
        tid,
        name: format!("t{tid}"),
        start_ns: 6,
        end_ns: Some(1 << 40),
    }
}

fn mapping() -> Mapping {
    Mapping {
        process: ProcessIndex(0),
        module: ModuleIndex(0),
        start_avma: 0x7f00_0000_0000,
        end_avma: 0x7f00_0010_0000,
        bias_avma: 0x7eff_ffc0_0000,
        loaded_ns: 7,
        unloaded_ns: 1_500_000,
    }
}

fn nodes() -> Vec<StackNode> {
    (0..100_u64)
        .map(|number| StackNode {
            parent: StackIndex(number as u32 / 2),
            process: ProcessIndex((number / 60) as u32),
            return_address_avma: 0x7f00_0000_1000 + number * number * 7,
            first_seen_ns: 10 + number,
        })
        .collect()
}

/// Events of every action, predicted addresses and others, three threads, two heaps.
fn events() -> Vec<Event> {
    let mut events = Vec::new();
    let mut push = |heap: u8, thread: u32, action| {
        let time_ns = 20 + events.len() as u64 * 333;
        events.push(Event { time_ns, thread: ThreadIndex(thread), heap: HeapId(heap), action });
    };
    for number in 0..500_u64 {
        let address_avma = 0x5555_0000_0000 + number % 7 * 4096 + number * 32;
        let (size_bytes, stack) = (number % 5 * 24 + 1, StackIndex((number % 101) as u32));
        let thread = (number % 3) as u32;
        push(
            0,
            thread,
            Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: number % 50 == 49 },
        );
        match number % 6 {
            0 => push(
                0,
                thread,
                Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: number % 60 == 0 },
            ),
            1 => {
                push(0, thread, Action::Free { address_avma, stack, is_moved_realloc: false });
                push(0, thread, Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false });
            }
            2 => {
                let (old_address_avma, size_bytes) = (address_avma, u64::MAX >> number.min(60));
                push(0, thread, Action::Realloc { old_address_avma, address_avma, size_bytes, stack });
            }
            3 => {
                let old_address_avma = address_avma;
                let address_avma = address_avma + (1 << 44);
                push(0, thread, Action::Realloc { old_address_avma, address_avma, size_bytes, stack });
            }
            4 => push(0, thread, Action::Failed { size_bytes: u64::MAX, stack }),
            _ => push(
                1,
                thread,
                Action::Alloc {
                    address_avma: number << 12,
                    size_bytes: 1 << 20,
                    stack,
                    is_moved_realloc: false,
                },
            ),
        }
    }
    events
}

fn blocks() -> Vec<Block> {
    (0..50_u64)
        .map(|number| Block {
            process: ProcessIndex(0),
            heap: HeapId((number / 40) as u8),
            address_avma: 0x5555_0000_0000 + number * 48,
            size_bytes: number * number,
            stack: StackIndex((number * 2) as u32),
            thread: ThreadIndex((number % 3) as u32),
            alloc_ns: 20 + number,
            is_realloc: number % 9 == 0,
        })
        .collect()
}

fn summary() -> Summary {
    let totals = Totals {
        alloc_count: 1,
        alloc_bytes: 2,
        free_count: 3,
        realloc_count: 4,
        failed_count: 5,
        temporary_count: 6,
        outstanding_count: 7,
        outstanding_bytes: 8,
        peak_bytes: 1 << 63,
        peak_count: 10,
        peak_time_ns: 11,
        unmatched_frees: 12,
        inherited_frees: 13,
        implied_frees: 14,
        ..Totals::default()
    };
    let by_stack = (0..100)
        .map(|number| StackTotals {
            stack: StackIndex(number),
            process: ProcessIndex(number / 60),
            heap: HeapId((number % 2) as u8),
            amounts: Amounts {
                total_count: 1000,
                total_bytes: 1 << (number % 60),
                realloc_count: 3,
                temporary_count: 4,
                outstanding_count: u64::from(number),
                outstanding_bytes: 6,
                peak_count: 7,
                peak_bytes: 8,
                ..Amounts::default()
            },
        })
        .collect();
    Summary {
        totals,
        by_heap: vec![(ProcessIndex(0), HeapId::MALLOC, totals), (ProcessIndex(1), HeapId::MMAP, totals)],
        by_stack,
        event_count: events().len() as u64,
        duration_ns: 3_000_000,
        // Fields that are later than the rest of this version.
        course: Course::default(),
        counts_living: false,
    }
}

fn system() -> System {
    let text = |text: &str| text.to_owned();
    System {
        kernel: text("6.1"),
        machine: text("x86_64"),
        distribution: text("Debian"),
        cpu_count: 2,
        memory_bytes: 1 << 33,
        page_bytes: 4096,
    }
}

fn session() -> Session {
    let text = |text: &str| text.to_owned();
    Session {
        name: text("run"),
        heapr_version: text("0.1.0"),
        command_line: vec![text("prog"), text("x")],
        start_unix_ns: 1_790_000_000_000_000_000,
        clock: text("tsc"),
        buffer_bytes: 65_536,
        min_buffers: 4,
        max_buffers: 1024,
        flush_timer_ms: 1000,
        on_full: text("block"),
        stacks: text("alloc,realloc"),
        max_frames: 0,
    }
}

fn loss() -> Loss {
    Loss { events_lost: 1, stacks_lost: 2, events_late: 3, records_invalid: 4, processes_refused: 5 }
}

/// The file as the present heapr writes it.
fn write() -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = TraceWriter::new(&mut file).unwrap();
    writer.set_system(&system()).unwrap();
    writer.set_session(&session()).unwrap();
    for process in processes() {
        writer.add_process(process).unwrap();
    }
    for (process, tid) in [(0, 100), (0, 102), (1, 101)] {
        writer.add_thread(thread(process, tid)).unwrap();
    }
    writer.add_module(Module { path: "/usr/lib/libx.so.1".into(), build_id: vec![0xab; 20] }).unwrap();
    let number = writer.add_mapping(Mapping { unloaded_ns: u64::MAX, ..mapping() }).unwrap();
    writer.unload_mapping(number, mapping().unloaded_ns).unwrap();
    for node in nodes() {
        writer.add_stack(node).unwrap();
    }
    let events = events();
    let (before, after) = events.split_at(600);
    before.iter().for_each(|event| writer.event(event).unwrap());
    writer.checkpoint(before[599].time_ns, blocks()).unwrap();
    after.iter().for_each(|event| writer.event(event).unwrap());
    writer.marker(&Marker { time_ns: 9, text: "here".into() }).unwrap();
    writer.rss_sample(RssSample { time_ns: 8, process: ProcessIndex(1), rss_bytes: 1 << 30 }).unwrap();
    writer.resident_sample(resident_sample()).unwrap();
    writer.loss(Some(ProcessIndex(0)), Some(ThreadIndex(1)), loss()).unwrap();
    writer.statistic("buffers_written_count", 77).unwrap();
    writer.finish(&summary()).unwrap();
    file
}

fn resident_sample() -> ResidentSample {
    ResidentSample {
        time_ns: 8,
        process: ProcessIndex(1),
        anonymous_bytes: 3 << 20,
        file_bytes: 2 << 20,
        shared_memory_bytes: 1 << 20,
        swapped_bytes: 4096,
        page_table_bytes: 8192,
        most_rss_bytes: 7 << 20,
    }
}

fn check(file: Vec<u8>, resident_samples: &[ResidentSample]) {
    let trace = Trace::from_source(Box::new(file)).unwrap();
    assert!(trace.is_complete());
    assert_eq!(trace.damage(), []);
    assert_eq!(*trace.system(), system());
    assert_eq!(*trace.session(), session());
    assert_eq!(trace.processes(), processes());
    assert_eq!(trace.threads(), [thread(0, 100), thread(0, 102), thread(1, 101)]);
    assert_eq!(trace.modules(), [Module { path: "/usr/lib/libx.so.1".into(), build_id: vec![0xab; 20] }]);
    assert_eq!(trace.mappings(), [mapping()]);
    assert_eq!(trace.locate(ProcessIndex(0), 0x7f00_0000_1234, 8), Some((ModuleIndex(0), 0x40_1234)));
    assert_eq!(trace.markers(), [Marker { time_ns: 9, text: "here".into() }]);
    assert_eq!(trace.rss_samples(), [RssSample { time_ns: 8, process: ProcessIndex(1), rss_bytes: 1 << 30 }]);
    assert_eq!(trace.resident_samples(), resident_samples);
    assert_eq!(trace.losses().len(), 1);
    assert_eq!((trace.losses()[0].thread, trace.losses()[0].loss), (Some(ThreadIndex(1)), loss()));
    assert_eq!(
        (trace.statistics()[0].name.as_str(), trace.statistics()[0].value),
        ("buffers_written_count", 77)
    );
    let stacks = trace.stacks();
    let found: Vec<StackNode> =
        (1..stacks.len() as u32).filter_map(|number| stacks.node(StackIndex(number))).collect();
    assert_eq!(found, nodes());
    let mut found = Vec::new();
    let mut reader = trace.events(0, u64::MAX);
    while let Some(batch) = reader.next_batch().unwrap() {
        found.extend_from_slice(batch);
    }
    assert_eq!(found, events());
    let checkpoint = trace.checkpoint_before(u64::MAX).unwrap().unwrap();
    assert_eq!((checkpoint.event_index, checkpoint.time_ns), (600, events()[599].time_ns));
    assert_eq!(checkpoint.blocks, blocks());
    assert_eq!(trace.summary().unwrap().unwrap(), summary());
}

#[test]
fn the_stored_file_is_read_as_it_was_written() {
    check(STORED.to_vec(), &[]);
}

#[test]
fn what_is_written_today_reads_the_same() {
    check(write(), &[resident_sample()]);
}

#[test]
fn any_byte_changed_is_damage_and_no_panic() {
    for place in 0..STORED.len() {
        let mut file = STORED.to_vec();
        file[place] ^= 1 << (place % 8);
        let Ok(trace) = Trace::from_source(Box::new(file)) else { continue };
        let _ =
            (trace.damage(), trace.summary(), trace.checkpoint_before(u64::MAX), trace.embedded_symbols());
        let mut reader = trace.events(0, u64::MAX);
        let mut found = Vec::new();
        while let Some(batch) = reader.next_batch().unwrap() {
            found.extend_from_slice(batch);
        }
        let is_lossless = trace.damage().is_empty() && reader.damage().is_empty();
        assert!(!is_lossless || found == events(), "events changed in silence at {place}");
    }
}

fn stored_in(directory: &tempfile::TempDir, bytes: &[u8]) -> std::path::PathBuf {
    let path = directory.path().join("trace");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn embed(path: &std::path::Path, bundle: &[u8]) -> heapr_trace::Result<bool> {
    SymbolEmbedder::open(path)?.embed(bundle)
}

#[test]
fn embedding_symbols_that_is_cut_short_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = stored_in(&directory, STORED);
    for bundle in [b"first".as_slice(), b"second"] {
        assert!(embed(&path, bundle).unwrap());
        let trace = Trace::open(&path).unwrap();
        assert_eq!(trace.embedded_symbols().unwrap().as_deref(), Some(bundle));
        assert!(trace.is_complete() && trace.check().is_empty());
    }
    let whole = std::fs::read(&path).unwrap();
    check(whole.clone(), &[]);
    for length in STORED.len()..whole.len() {
        let trace = Trace::from_source(Box::new(whole[..length].to_vec())).unwrap();
        assert_eq!(trace.event_count(), events().len() as u64, "cut at {length}");
        assert_eq!(trace.summary().unwrap().unwrap(), summary(), "cut at {length}");
    }
}

#[test]
fn symbols_that_are_there_are_not_embedded_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = stored_in(&directory, STORED);
    assert!(embed(&path, b"names").unwrap());
    let once = std::fs::read(&path).unwrap();
    assert!(!embed(&path, b"names").unwrap());
    assert!(std::fs::read(&path).unwrap() == once, "the file was changed");
}

#[test]
fn a_file_without_its_end_is_not_written_to() {
    let directory = tempfile::tempdir().unwrap();
    for length in [STORED.len() - 1, STORED.len() - 24, STORED.len() - 100, 16] {
        let path = stored_in(&directory, &STORED[..length]);
        assert!(matches!(embed(&path, b"names"), Err(Error::Unfinished)), "cut at {length}");
        assert!(std::fs::read(&path).unwrap() == STORED[..length], "cut at {length}");
    }
}

#[test]
fn a_damaged_file_is_not_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let trace = Trace::from_source(Box::new(STORED.to_vec())).unwrap();
    for chunk in trace.chunks() {
        for place in [chunk.offset + 5, chunk.offset + 48 + u64::from(chunk.stored_bytes) / 2] {
            let mut file = STORED.to_vec();
            file[place as usize] ^= 8;
            let path = stored_in(&directory, &file);
            let refusal = embed(&path, b"names").unwrap_err();
            assert!(matches!(refusal, Error::Damaged { offset, .. } if offset == chunk.offset), "{refusal}");
            assert!(std::fs::read(&path).unwrap() == file, "{chunk:?}");
        }
    }
}

#[test]
fn a_file_that_changed_meanwhile_is_not_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = stored_in(&directory, STORED);
    let embedder = SymbolEmbedder::open(&path).unwrap();
    assert!(matches!(SymbolEmbedder::open(&path), Err(Error::InUse)), "two at a time");
    // Like a recorder that overwrites the file.
    let begun = [&STORED[..16], &vec![0; STORED.len()]].concat();
    std::fs::write(&path, &begun).unwrap();
    assert!(matches!(embedder.embed(b"names"), Err(Error::InUse)));
    assert!(std::fs::read(&path).unwrap() == begun);
}

#[test]
fn a_check_finds_damage_in_chunks_of_every_kind() {
    let check = |place: u64| {
        let mut file = STORED.to_vec();
        file[place as usize] ^= 8;
        Trace::from_source(Box::new(file)).unwrap().check()
    };
    let trace = Trace::from_source(Box::new(STORED.to_vec())).unwrap();
    assert_eq!(trace.check(), []);
    let mut end = 0;
    for chunk in trace.chunks() {
        let bytes = 48 + u64::from(chunk.stored_bytes);
        end = chunk.offset + bytes;
        let found = check(end - 1);
        assert_eq!((found.len(), found[0].offset, found[0].bytes), (1, chunk.offset, bytes), "{chunk:?}");
    }
    // The index and the trailer.
    for place in [end + 1, end + 50, STORED.len() as u64 - 22, STORED.len() as u64 - 12] {
        assert!(check(place).iter().any(|damage| damage.offset <= place), "{place}");
    }
}
