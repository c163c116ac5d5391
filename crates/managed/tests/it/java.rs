//! Programs of `victims/java/heaps` that leak by one step for each line on their input, or do not.
//! The owner of each leak is named first, and nothing is said of the healthy ones.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use heapr_managed::{AttachError, Attached, Contents, HeapDump, check_hotspot, read_hprof};
use heapr_testkit::{JavaProgram, java_kits};
use heapr_v8::analysis::{Confidence, Suspects, suspects};
use heapr_v8::devtools::Heap;

/// Number of snapshots of each program.
const SNAPSHOTS: usize = 3;

/// Longest pause that the programs' heaps could need, on any machine.
const MAX_PAUSE: Duration = Duration::from_secs(60);

struct Program(JavaProgram);

impl Program {
    fn start(kit: &Path, name: &str, main: &str, options: &[&str]) -> Self {
        Self(JavaProgram::start(kit, name, main, options))
    }

    fn step(&mut self) {
        self.0.step();
    }

    fn attached(&self) -> Attached {
        Attached::to(self.0.pid()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn snapshot(&self, contents: Contents) -> Heap {
        let attached = self.attached();
        let dump = HeapDump::of(&attached, attached.used_bytes(), MAX_PAUSE)
            .unwrap_or_else(|error| panic!("{error}"));
        let heap =
            read_hprof(&|offset| dump.open(offset), contents).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((heap.notes, heap.cut_at), (Vec::<String>::new(), None));
        Heap::with_summary(heap.snapshot).unwrap()
    }
}

/// Suspects of a program over three snapshots.
fn suspects_of(kit: &Path, name: &str, main: &str) -> Suspects {
    let mut program = Program::start(kit, name, main, &[]);
    let mut heaps = Vec::new();
    for number in 0..SNAPSHOTS {
        if number > 0 {
            program.step();
        }
        heaps.push(program.snapshot(Contents::Names));
    }
    let found = suspects(&heaps.iter().collect::<Vec<_>>(), 10);
    assert!(found.doubts.is_empty(), "{:?}", found.doubts);
    for suspect in &found.suspects {
        let collects: Vec<String> =
            suspect.collects.iter().map(|it| format!("{} {}", it.count, it.class)).collect();
        println!(
            "{} {name}: {:?} {} x{} {:?} {}; {}",
            kit.display(),
            suspect.confidence,
            suspect.name,
            suspect.owner_count,
            suspect.growth_bytes_at,
            collects.join(", "),
            suspect.reasons.join("; "),
        );
    }
    found
}

/// Checks that the first suspect is this one, and that it collects so many of a class.
fn leaks(name: &str, main: &str, owner: &str, class: &str, count: i64) {
    for kit in java_kits() {
        let label = format!("{} {name}", kit.display());
        let found = suspects_of(&kit, name, main);
        let first = found.suspects.first().unwrap_or_else(|| panic!("{label}: no suspects"));
        assert_eq!(first.name, owner, "{label}");
        assert_eq!(first.confidence, Confidence::High, "{label}: {:?}", first.reasons);
        let collected = first.collects.iter().find(|it| it.class == class);
        let collected = collected.unwrap_or_else(|| panic!("{label}: {:?}", first.collects));
        assert!((collected.count - count).abs() * 50 <= count, "{label}: {collected:?}");
    }
}

fn is_healthy(name: &str, main: &str) {
    for kit in java_kits() {
        let found = suspects_of(&kit, name, main);
        let sure = found.suspects.iter().find(|suspect| suspect.confidence > Confidence::Low);
        assert!(sure.is_none(), "{} {name}: {sure:?}", kit.display());
    }
}

#[test]
fn a_map_of_a_static_is_named_by_its_field() {
    leaks("static-map", "StaticMap", "class StaticMap: REGISTRY.byId (HashMap)", "StaticMap$Session", 20_000);
}

#[test]
fn thread_local_lists_are_named_once_by_their_key() {
    let owner = "thread-local PoolLocal.AUDIT: lines (ArrayList)";
    leaks("thread-local", "PoolLocal", owner, "java.lang.String", 16_000);
    for kit in java_kits() {
        let found = suspects_of(&kit, "thread-local", "PoolLocal");
        // Which threads of the pool get work is the scheduler's choice.
        let reasons = &found.suspects[0].reasons;
        let is_told = |reason: &String| reason.starts_with("is of the thread") && reason.contains(" pool-");
        assert!(reasons.iter().any(is_told), "{reasons:?}");
    }
}

#[test]
fn a_queue_of_direct_buffers_is_named() {
    leaks("direct-buffers", "Direct", "class Direct: CLOSED (ArrayDeque)", "Direct$Channel", 200);
}

#[test]
fn class_loaders_that_a_thread_local_keeps_are_named_as_such() {
    for kit in java_kits() {
        let found = suspects_of(&kit, "class-loader", "Redeploy");
        let first = &found.suspects[0];
        assert_eq!(first.name, "class loader app (java.net.URLClassLoader)", "{}", kit.display());
        assert_eq!(first.confidence, Confidence::High, "{:?}", first.reasons);
        // One class object for each of the 40 loaders that cannot go. Loaders are paired by place:
        // which of those with one name are new is not certain.
        let handlers = first.collects.iter().find(|it| it.class == "class Redeploy$Handler");
        assert!(handlers.is_some_and(|it| (38..=42).contains(&it.count)), "{:?}", first.collects);
        let path: Vec<&str> = first.path.iter().map(|step| step.name.as_str()).collect();
        assert!(path.contains(&"thread main"), "{path:?}");
    }
}

#[test]
fn nothing_is_said_of_a_map_that_turns_over() {
    is_healthy("healthy-lru", "Lru");
}

#[test]
fn garbage_of_java_is_no_leak() {
    is_healthy("healthy-garbage", "Garbage");
}

/// Class of arrays and names of hidden classes as the virtual machine's histogram writes them.
fn as_in_dumps(class: &str) -> String {
    let dimensions = class.len() - class.trim_start_matches('[').len();
    let element = class.trim_start_matches('[');
    let base = match (dimensions, element) {
        (0, name) => name.to_owned(),
        (_, "Z") => "boolean".to_owned(),
        (_, "B") => "byte".to_owned(),
        (_, "C") => "char".to_owned(),
        (_, "S") => "short".to_owned(),
        (_, "I") => "int".to_owned(),
        (_, "J") => "long".to_owned(),
        (_, "F") => "float".to_owned(),
        (_, "D") => "double".to_owned(),
        (_, name) => name.trim_start_matches('L').trim_end_matches(';').to_owned(),
    };
    base.split(['+', '/']).next().unwrap().to_owned() + &"[]".repeat(dimensions)
}

/// Count and bytes of each class of a histogram.
fn histogram(text: &str) -> BTreeMap<String, (u64, u64)> {
    let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [number, count, bytes, class, ..] = words[..] else { continue };
        if !number.ends_with(':') {
            continue;
        }
        let sum = found.entry(as_in_dumps(class)).or_default();
        sum.0 += count.parse::<u64>().unwrap();
        sum.1 += bytes.parse::<u64>().unwrap();
    }
    found
}

#[test]
fn counts_and_sizes_are_those_of_the_virtual_machine() {
    for kit in java_kits() {
        let mut program = Program::start(&kit, "static-map", "StaticMap", &[]);
        // What the first commands and the first line make is there before the comparison.
        program.step();
        program.snapshot(Contents::Names);
        program.attached().command(&["inspectheap", "-live"]).unwrap();
        let heap = program.snapshot(Contents::Names);
        let said = histogram(&program.attached().command(&["inspectheap", "-live"]).unwrap());
        let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for node in 0..heap.snapshot().node_count() {
            let name = heap.snapshot().name_text(node);
            let name = if name.starts_with("class ") { "java.lang.Class" } else { &name };
            let sum = found.entry(name.split(['+', '/']).next().unwrap().to_owned()).or_default();
            sum.0 += 1;
            sum.1 += heap.snapshot().self_bytes(node);
        }
        let (mut same_bytes, mut differ, mut own_count) = (0, Vec::new(), 0);
        // Arrays that the collector fills gaps with are in the histogram alone.
        // Class objects of types without a class record (int) and of archived classes, too.
        let told = said.iter().filter(|(class, _)| !class.contains("Filler") && *class != "java.lang.Class");
        for (class, &of_machine) in told {
            let &in_dump = found.get(class).unwrap_or(&(0, 0));
            // Nothing but the program itself makes these, and it waits.
            if class.starts_with("StaticMap$") {
                assert_eq!(in_dump.0, of_machine.0, "{class}");
                own_count += 1;
            }
            if in_dump.0 != of_machine.0 {
                differ.push(format!("{class}: {} instead of {}", in_dump.0, of_machine.0));
            }
            same_bytes += usize::from(in_dump.1 == of_machine.1);
        }
        println!("{}: {} classes, {same_bytes} of the same bytes, {differ:?}", kit.display(), said.len());
        assert!(own_count > 0, "{said:?}");
        // A dump and a histogram are not of one moment, and the commands themselves make objects.
        assert!(differ.len() * 5 <= said.len(), "{differ:?}");
        assert!(same_bytes * 10 >= said.len() * 7, "{same_bytes} of {}", said.len());
    }
}

#[test]
fn texts_are_read_only_on_demand() {
    let Some(kit) = java_kits().pop() else { return };
    let program = Program::start(&kit, "static-map", "StaticMap", &[]);
    let has_text = |heap: &Heap| heap.snapshot().strings().find(b"user-77").is_some();
    assert!(!has_text(&program.snapshot(Contents::Names)));
    assert!(has_text(&program.snapshot(Contents::Strings)));
}

#[test]
fn a_virtual_machine_that_cannot_be_asked_is_left_alone() {
    let Some(kit) = java_kits().pop() else { return };
    let deaf = Program::start(&kit, "static-map", "StaticMap", &["-XX:+DisableAttachMechanism"]);
    assert!(matches!(check_hotspot(deaf.0.pid()), Err(AttachError::Disabled { .. })));
    // It listens from its start, or is refused: a signal would end it.
    let mut mortal = Program::start(&kit, "static-map", "StaticMap", &["-Xrs"]);
    let attached = Attached::to(mortal.0.pid());
    assert!(matches!(attached, Ok(_) | Err(AttachError::SignalWouldKill)), "{attached:?}");
    mortal.step();
}

#[test]
fn a_dump_leaves_nothing_behind() {
    let Some(kit) = java_kits().pop() else { return };
    let program = Program::start(&kit, "static-map", "StaticMap", &[]);
    let pid = program.0.pid();
    program.snapshot(Contents::Names);
    let own = format!(".heapr-{}-{pid}-", std::process::id());
    let left: Vec<_> = std::fs::read_dir("/tmp")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(&own) || *name == format!(".attach_pid{pid}"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    assert!(!Path::new(&format!("/proc/{pid}/cwd/.attach_pid{pid}")).exists());
}
