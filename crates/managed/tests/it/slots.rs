//! Slots of a running program's collections, compared with what `sys.getsizeof` and `len` say.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Cursor};
use std::path::Path;
use std::process::{Command, Stdio};

use heapr_managed::write_snapshot;
use heapr_testkit::not_run;
use heapr_v8::analysis::{Collection, CollectionOrder, Naming, collection_owners, collections};
use heapr_v8::devtools::Heap;
use heapr_v8::view::Objects as _;
use heapr_v8::{ReadOptions, Snapshot};

use crate::memory::{heap_of, interpreters};

#[test]
fn collections_have_the_slots_that_the_program_says() {
    let all = interpreters();
    if all.is_empty() {
        not_run("no python3 is installed");
    }
    for python in all {
        let folder = tempfile::tempdir().unwrap();
        let (told, heap) = told_and_read(&python, &folder.path().join("told"));
        compare(&python.display().to_string(), &told, &heap);
    }
}

/// Text that the program told of its collections, and its heap.
fn told_and_read(python: &Path, told: &Path) -> (String, Heap) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/slots.py");
    let mut command = Command::new(python);
    command.arg("-I").args([&program, told]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "READY\n");
    let heap = heap_of(child.id());
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let mut file = Vec::new();
    write_snapshot(&mut heap.unwrap(), &mut file).unwrap();
    let snapshot = Snapshot::read(Cursor::new(file), &ReadOptions::default()).unwrap();
    (std::fs::read_to_string(told).unwrap(), Heap::with_summary(snapshot).unwrap())
}

fn compare(label: &str, told: &str, heap: &Heap) {
    let found = collections(heap, CollectionOrder::Largest, usize::MAX);
    let by_address: HashMap<u64, &Collection> =
        found.iter().map(|collection| (heap.id(collection.node) - 1, collection)).collect();
    let (mut counted, mut unknown) = (0, 0);
    for line in told.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<i64>().unwrap();
        let of = by_address.get(&(number(0) as u64)).unwrap_or_else(|| panic!("{label}: no {line}"));
        if words[1] == "attributes" {
            assert_eq!(of.slots, None, "{label}: {line}");
            unknown += 1;
            continue;
        }
        let slots = of.slots.unwrap_or_else(|| panic!("{label}: no slots of {line}"));
        assert_eq!(slots.used as i64, number(2), "{label}: {line}: {slots:?}");
        if number(3) >= 0 {
            assert_eq!(slots.count as i64, number(3), "{label}: {line}: {slots:?}");
            counted += 1;
        }
    }
    assert!(counted > 100 && unknown == 5, "{label}: {counted}, {unknown}");
    let owners = collection_owners(heap, &Naming::of(heap), &found, 10);
    let names: Vec<&str> = owners.iter().map(|owner| owner.name.as_str()).collect();
    println!("{label}: slots of {counted} collections; most unused ones: {names:?}");
    assert!(names.contains(&"module __main__: FROZEN[…] (frozenset)"), "{names:?}");
    // The two sets of most slots have nine in ten unused.
    let sets = owners.iter().find(|owner| owner.name.contains(": SETS[…]")).unwrap();
    assert_eq!((sets.collection_count, sets.empty_count), (16, 1), "{sets:?}");
    assert!(sets.wasted_bytes > 16 * (262_144 - 90_000), "{sets:?}");
}
