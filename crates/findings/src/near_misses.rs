//! Sentences on small made recordings, each beside a near miss in which it must not be told.

use heapr_query::{Confidence, FrameSink, OwnCode, PackageSource, SourceFrame, Suppressions, SymbolSource};
use heapr_trace::{
    Action, Event, HeapId, HeapName, Loss, Mapping, MemoryAccount, MemoryPart, Module, ModuleIndex, PartKind,
    Process, ProcessIndex, ProcessOrigin, ResidentSample, Session, StackIndex, StackNode, Thread,
    ThreadIndex, Trace, TraceWriter,
};

use crate::{Found, Judged, Kind, of_recording};

const FIRST: ProcessIndex = ProcessIndex(0);
const PROGRAM: &str = "/opt/shop";
/// Start of the program's code; a function has 16 bytes.
const CODE_AVMA: u64 = 0x40_0000;
/// Time between two events.
const STEP_NS: u64 = 1_000_000;
const FUNCTIONS: [&str; 3] = ["main", "load", "serve"];

/// Facts of a made recording, beside its events.
struct Made {
    origin: ProcessOrigin,
    command_line: Vec<String>,
    loss: Loss,
    heap_name: Option<HeapName>,
    resident_bytes: u64,
    /// Memory in the heap of a Java virtual machine.
    jvm_bytes: u64,
    is_cut: bool,
}

impl Default for Made {
    fn default() -> Self {
        Self {
            origin: ProcessOrigin::Exec,
            command_line: vec!["shop".to_owned()],
            loss: Loss::default(),
            heap_name: None,
            resident_bytes: 0,
            jvm_bytes: 0,
            is_cut: false,
        }
    }
}

/// Call of a function: allocation of a block by its number, or free of it.
#[derive(Clone, Copy)]
enum Call {
    Make { block: u64, size_bytes: u64, function: u32 },
    Free { block: u64 },
}

#[derive(Debug)]
struct Nothing;

impl PackageSource for Nothing {
    fn package_of(&self, _file: &str) -> Option<String> {
        None
    }
}

struct Names;

impl SymbolSource for Names {
    fn resolve(&mut self, _module: ModuleIndex, svmas: &[u64], sink: &mut FrameSink<'_>) {
        for (number, svma) in svmas.iter().enumerate() {
            let symbol = FUNCTIONS.get((svma / 16) as usize).copied();
            sink(number, &[SourceFrame { symbol, file: Some("shop.cc"), line: Some(7), is_inlined: false }]);
        }
    }
}

/// Account of a process with the heap of a Java virtual machine.
fn account(made: &Made, process: ProcessIndex, time_ns: u64) -> MemoryAccount {
    let kind = PartKind::Likely { owners: vec!["JVM heap".to_owned()] };
    let (bytes, stack) = (made.jvm_bytes, StackIndex::EMPTY);
    MemoryAccount {
        time_ns,
        process,
        anonymous_bytes: made.resident_bytes,
        agent_bytes: 0,
        parts: vec![MemoryPart { kind, bytes, stack, is_unseen: true }],
    }
}

fn written(made: &Made, calls: &[Call], bytes: &mut Vec<u8>) -> heapr_trace::Result<()> {
    let mut writer = TraceWriter::new(bytes)?;
    writer.set_session(&Session {
        command_line: made.command_line.clone(),
        buffer_bytes: 4096,
        ..Session::default()
    })?;
    let end_ns = calls.len() as u64 * STEP_NS;
    let process = writer.add_process(Process {
        pid: 100,
        parent_pid: 1,
        origin: made.origin,
        start_ns: 0,
        end_ns: Some(end_ns),
        executable: PROGRAM.to_owned(),
        command_line: made.command_line.clone(),
        exit_status: None,
    })?;
    writer.add_thread(Thread { process, tid: 100, name: "main".to_owned(), start_ns: 0, end_ns: None })?;
    let module = writer.add_module(Module { path: PROGRAM.to_owned(), build_id: Vec::new() })?;
    writer.add_mapping(Mapping {
        process,
        module,
        start_avma: CODE_AVMA,
        end_avma: CODE_AVMA + 4096,
        bias_avma: CODE_AVMA,
        loaded_ns: 0,
        unloaded_ns: u64::MAX,
    })?;
    let mut stacks = Vec::new();
    for function in 0..FUNCTIONS.len() as u64 {
        let parent = stacks.first().copied().unwrap_or(StackIndex::EMPTY);
        let return_address_avma = CODE_AVMA + function * 16 + 5;
        stacks.push(writer.add_stack(StackNode {
            parent,
            process,
            return_address_avma,
            first_seen_ns: 0,
        })?);
    }
    if made.loss != Loss::default() {
        writer.loss(None, None, made.loss)?;
    }
    if let Some(name) = &made.heap_name {
        writer.heap_name(name)?;
    }
    write_events(&mut writer, made, calls, (process, &stacks))?;
    if made.jvm_bytes > 0 {
        writer.memory_account(&account(made, process, end_ns))?;
    }
    writer.flush()
}

/// Writes the calls, and the resident memory at each.
fn write_events<W: std::io::Write>(
    writer: &mut TraceWriter<W>,
    made: &Made,
    calls: &[Call],
    (process, stacks): (ProcessIndex, &[StackIndex]),
) -> heapr_trace::Result<()> {
    for (number, call) in calls.iter().enumerate() {
        let time_ns = number as u64 * STEP_NS;
        let address_avma = |block: u64| 0x1000_0000 + block * 0x10_0000;
        let action = match *call {
            Call::Make { block, size_bytes, function } => Action::Alloc {
                address_avma: address_avma(block),
                size_bytes,
                stack: stacks[function as usize],
                is_moved_realloc: false,
            },
            Call::Free { block } => Action::Free {
                address_avma: address_avma(block),
                stack: StackIndex::EMPTY,
                is_moved_realloc: false,
            },
        };
        writer.event(&Event { time_ns, thread: ThreadIndex(0), heap: HeapId::MALLOC, action })?;
        if made.resident_bytes > 0 {
            writer.resident_sample(ResidentSample {
                time_ns,
                process,
                anonymous_bytes: made.resident_bytes,
                file_bytes: 0,
                shared_memory_bytes: 0,
                swapped_bytes: 0,
                page_table_bytes: 0,
                most_rss_bytes: made.resident_bytes,
            })?;
        }
    }
    Ok(())
}

/// Findings of a made recording. The file has no summary, so that all is replayed.
fn found(made: &Made, calls: &[Call]) -> Found {
    let mut bytes = Vec::new();
    written(made, calls, &mut bytes).unwrap();
    if made.is_cut {
        bytes.truncate(bytes.len() - 7);
    }
    let trace = Trace::from_source(Box::new(bytes)).unwrap();
    let (own, left_out) = (OwnCode::of_trace(&trace), Suppressions::default());
    let judged = Judged { own: &own, packages: &Nothing, left_out: &left_out, file: "shop.heapr" };
    of_recording(&trace, judged, &mut Names).unwrap()
}

fn tells(found: &Found, words: &str) -> bool {
    found.findings.iter().any(|finding| finding.sentence.contains(words))
}

/// Blocks of a mebibyte, made one after the other by `load`.
fn loaded(count: u64) -> Vec<Call> {
    (0..count).map(|block| Call::Make { block, size_bytes: 1 << 20, function: 1 }).collect()
}

#[test]
fn frees_of_what_is_not_allocated_are_told_of_whole_recordings_alone() {
    let calls: Vec<Call> =
        [loaded(4), vec![Call::Free { block: 3 }, Call::Free { block: 3 }, Call::Free { block: 9 }]].concat();
    let words = "2 calls free what is not allocated";
    assert!(tells(&found(&Made::default(), &calls), words));
    assert!(!tells(&found(&Made::default(), &calls[..5]), "free what is not allocated"));
    let lost = Loss { events_lost: 1, ..Loss::default() };
    let pool = HeapName { process: FIRST, heap: HeapId(240), name: "pool".to_owned(), first_ns: 0 };
    for made in [
        Made { loss: lost, ..Made::default() },
        Made { origin: ProcessOrigin::Fork { parent: FIRST }, ..Made::default() },
        // A session that began by attaching has no command line.
        Made { command_line: Vec::new(), ..Made::default() },
        Made { heap_name: Some(pool), ..Made::default() },
    ] {
        assert!(!tells(&found(&made, &calls), "free what is not allocated"));
    }
}

#[test]
fn losses_are_told_where_events_are_missing_and_damage_where_bytes_are() {
    let calls = loaded(20);
    let lost = Made { loss: Loss { events_lost: 20, ..Loss::default() }, ..Made::default() };
    assert!(tells(&found(&lost, &calls), "20 events were lost, 50.0 % of all"));
    // Events that came late are there.
    let late = Made { loss: Loss { events_late: 20, ..Loss::default() }, ..Made::default() };
    assert!(!tells(&found(&late, &calls), "were lost"));
    let cut = found(&Made { is_cut: true, ..Made::default() }, &calls);
    assert!(tells(&cut, "be read"), "{:?}", cut.findings);
    assert!(!tells(&found(&Made::default(), &calls), "be read"));
}

#[test]
fn memory_in_no_block_is_told_only_if_it_is_much_and_was_never_in_blocks() {
    let words = "are resident without a file, and at most";
    let resident = |mib: u64| Made { resident_bytes: mib << 20, ..Made::default() };
    assert!(tells(&found(&resident(200), &loaded(20)), words));
    assert!(!tells(&found(&resident(60), &loaded(20)), words), "40 MiB are too little");
    let java = |jvm_mib: u64| Made { jvm_bytes: jvm_mib << 20, ..resident(200) };
    assert!(!tells(&found(&java(160), &loaded(20)), words), "a heap that has a name");
    assert!(tells(&found(&java(60), &loaded(20)), words), "most of it has none");
    let in_blocks = found(&resident(200), &loaded(190));
    assert!(!tells(&in_blocks, words), "{:?}", in_blocks.findings);
}

#[test]
fn a_peak_is_told_if_it_passes_and_not_if_memory_stays() {
    // Ten blocks are usual; fifty come at once in the middle, and go again.
    let work = |from: u64, count: u64| {
        (0..count).flat_map(move |number| {
            let block = from + number;
            [Call::Make { block, size_bytes: 1 << 10, function: 2 }, Call::Free { block }]
        })
    };
    let rise = (100..150).map(|block| Call::Make { block, size_bytes: 1 << 20, function: 1 });
    let fall = (100..150).map(|block| Call::Free { block });
    let passes: Vec<Call> = loaded(10)
        .into_iter()
        .chain(work(1000, 200))
        .chain(rise.clone())
        .chain(fall)
        .chain(work(2000, 200))
        .collect();
    let told = found(&Made::default(), &passes);
    assert!(told.findings.iter().any(|finding| finding.kind == Kind::Peak), "{:?}", told.findings);
    assert!(tells(&told, "The peak is 60.0 MiB"), "{:?}", told.findings);
    let stays: Vec<Call> =
        loaded(10).into_iter().chain(work(1000, 200)).chain(rise).chain(work(2000, 200)).collect();
    assert!(!tells(&found(&Made::default(), &stays), "The peak is"));
}

/// Blocks that are made and freed at once by `serve`, from a number on.
fn passing(from: u64, count: u64) -> Vec<Call> {
    let blocks = from..from + count;
    let pair = |block| [Call::Make { block, size_bytes: 1 << 10, function: 2 }, Call::Free { block }];
    blocks.flat_map(pair).collect()
}

/// Work that holds a mebibyte more after each part of it, until all is freed at the end.
fn filled(parts: u64) -> Vec<Call> {
    let part = |block| {
        [vec![Call::Make { block, size_bytes: 1 << 20, function: 1 }], passing(1000 + block * 10, 10)]
            .concat()
    };
    (0..parts).flat_map(part).chain((0..parts).map(|block| Call::Free { block })).collect()
}

#[test]
fn a_rate_of_growth_is_told_of_programs_that_do_not_end_soon() {
    let soon = "at its peak, until the program ends after 1.320 s, and frees it then";
    let told = found(&Made::default(), &filled(60));
    assert!(tells(&told, soon) && !tells(&told, "a second more"), "{:?}", told.findings);
    assert!(told.findings[0].evidence.iter().any(|text| text.contains("a longer run tells")));
    let long = found(&Made::default(), &filled(120));
    assert!(
        tells(&long, "a second more; none of it is freed before the program ends"),
        "{:?}",
        long.findings
    );
    let left: Vec<Call> = filled(60)[..60 * 21].to_vec();
    let left = found(&Made::default(), &left);
    let soon =
        "at its peak, until the program ends after 1.260 s; none of it is freed in the part that was read";
    assert!(tells(&left, soon), "{:?}", left.findings);
    // The start of a program to which heapr attached is not known.
    let attached = found(&Made { command_line: Vec::new(), ..Made::default() }, &filled(60));
    assert!(tells(&attached, "a second more"), "{:?}", attached.findings);
}

#[test]
fn churn_is_told_of_many_blocks_that_are_a_large_part_of_all() {
    let churns = |passing_count: u64, other_count: u64| {
        let others = (0..other_count).map(|block| Call::Make { block, size_bytes: 8, function: 1 });
        let calls: Vec<Call> = others.chain(passing(1 << 20, passing_count)).collect();
        tells(&found(&Made::default(), &calls), "Churn: serve")
    };
    assert!(churns(60_000, 0));
    assert!(!churns(40_000, 0), "few");
    assert!(!churns(60_000, 200_000), "less than a quarter of all");
}

#[test]
fn freed_memory_is_told_to_stay_if_it_is_much_and_most_of_what_is_resident() {
    let words = "Freed memory stays resident";
    let freed = |count: u64| (0..count).map(|block| Call::Free { block });
    let calls = |made: u64, left: u64| -> Vec<Call> {
        loaded(made).into_iter().chain(freed(made - left)).chain(passing(1000, 200)).collect()
    };
    let resident = |mib: u64| Made { resident_bytes: mib << 20, ..Made::default() };
    assert!(tells(&found(&resident(50), &calls(50, 5)), words));
    assert!(!tells(&found(&resident(10), &calls(10, 3)), words), "5 MiB");
    assert!(!tells(&found(&resident(50), &calls(50, 30)), words), "most of it is live");
}

#[test]
fn idle_memory_and_small_blocks_are_told_only_of_a_good_part_of_what_is_live() {
    let held = |block_bytes: u64, count: u64, beside: u64| {
        let other = Call::Make { block: 1 << 19, size_bytes: beside, function: 2 };
        let blocks = (0..count).map(|block| Call::Make { block, size_bytes: block_bytes, function: 1 });
        let calls: Vec<Call> = [other].into_iter().chain(blocks).chain(passing(1 << 20, 2000)).collect();
        found(&Made::default(), &calls)
    };
    assert!(tells(&held(1 << 20, 4, 1 << 20), "Idle memory: load"));
    assert!(!tells(&held(1 << 18, 3, 1 << 20), "Idle memory: load"), "less than 1 MiB");
    assert!(!tells(&held(1 << 20, 4, 64 << 20), "Idle memory: load"), "a small part of it");
    assert!(tells(&held(8, 100_000, 1), "Many small blocks: load"));
    assert!(!tells(&held(8, 30_000, 1), "Many small blocks"), "less than 1 MiB is the allocator's");
    assert!(!tells(&held(200, 200_000, 1), "Many small blocks"), "a small part of it");
}

#[test]
fn the_little_that_a_short_program_frees_at_its_end_is_no_sure_growth() {
    // Each tenth block is large, and these alone are freed.
    let growth = |large_bytes: u64, frees: bool| {
        let size = |block: u64| if block.is_multiple_of(10) { large_bytes } else { 500 };
        let made = (0..400).map(|block| Call::Make { block, size_bytes: size(block), function: 1 });
        let freed = (0..400).step_by(10).filter(|_| frees).map(|block| Call::Free { block });
        let calls: Vec<Call> = made.chain(freed).collect();
        let found = found(&Made::default(), &calls);
        let growth = found.findings.iter().find(|finding| finding.sentence.starts_with("Memory grows"));
        growth.map(|finding| finding.confidence)
    };
    assert_eq!(growth(10_000, true), Some(Confidence::Low));
    assert!(growth(10_000, false) > Some(Confidence::Low), "nothing is freed");
    assert!(growth(100_000, true) > Some(Confidence::Low), "it is much");
}
