//! Streams of events that a runtime wrote, whole, cut and bent.

use heapr_v8::Snapshot;
use proptest::prelude::*;

use super::assembly;
use super::gcdump::{GCDUMP_BEGINNING_BYTES, is_gcdump, read_gcdump};
use super::recorded::read_nettrace;
use crate::dump_error::{DumpError, Result};

/// Events of .NET 8.0.4: the program of `victims/dotnet/heaps/static-map` with 20 sessions.
const EVENTS: &[u8] = include_bytes!("../../tests/data/static-map.nettrace");

/// The program itself, by Mono's compiler.
const PROGRAM: &[u8] = include_bytes!("../../tests/data/StaticMap.exe");

fn read(bytes: &[u8]) -> Result<Snapshot> {
    read_nettrace(bytes).map(|heap| heap.snapshot)
}

fn count(heap: &Snapshot, name: &str) -> usize {
    (0..heap.node_count()).filter(|&node| heap.name_text(node) == name).count()
}

#[test]
fn objects_of_a_recorded_stream_have_their_types_and_references() {
    let heap = read(EVENTS).unwrap();
    assert_eq!(count(&heap, "Shop.Session"), 20);
    assert_eq!(count(&heap, "Shop.Line"), 60);
    assert_eq!(count(&heap, "System.Collections.Generic.List<Shop.Line>"), 20);
    assert_eq!(count(&heap, "System.Collections.Generic.Dictionary<System.Int32, Shop.Session>"), 1);
    assert_eq!(count(&heap, "(unknown type)"), 0);
    // Without the files of the assemblies no class is known.
    assert_eq!(count(&heap, "class (unknown)"), 1);
}

#[test]
fn a_cut_stream_is_no_heap() {
    for end in [0, 7, 8, 40, 200, EVENTS.len() / 2] {
        let found = read(&EVENTS[..end]);
        assert!(matches!(found, Err(DumpError::Ends { offset }) if offset <= end as u64), "{end}: {found:?}");
    }
    assert!(matches!(read(b"Nettrace and no serialisation...."), Err(DumpError::NotNettrace)));
}

#[test]
fn addresses_of_another_size_are_refused() {
    let mut events = EVENTS.to_vec();
    let begin = events.windows(5).position(|bytes| bytes == b"Trace").unwrap();
    // Behind the name: a tag, a date, a time of the clock, and its rate.
    events[begin + 5 + 1 + 16 + 8 + 8] = 4;
    let found = read(&events);
    assert!(matches!(found, Err(DumpError::AddressBytes { address_bytes: 4 })), "{found:?}");
}

#[test]
fn classes_have_their_static_variables() {
    let assembly = assembly::read(PROGRAM).unwrap();
    assert!(assembly.classes.iter().any(|class| class == "Shop.Session"), "{:?}", assembly.classes);
    let of = |name: &str| {
        let found = assembly.variables.iter().filter(|variable| variable.name == name);
        found.map(|variable| &*assembly.classes[variable.class as usize]).collect::<Vec<_>>()
    };
    assert_eq!(of("ById"), ["Shop.Registry"]);
    // A number refers to no object.
    assert_eq!(of("next"), Vec::<&str>::new());
    assert!(assembly::read(EVENTS).is_none());
}

/// A file with two types, and a root that refers to a store of two lines.
fn made_gcdump() -> Vec<u8> {
    fn text(file: &mut Vec<u8>, text: &str) {
        file.extend((text.len() as u32).to_le_bytes());
        file.extend(text.as_bytes());
    }
    let object = |file: &mut Vec<u8>, name: &str, oldest: u32| {
        file.extend([4, 4, 1]);
        file.extend(10_u32.to_le_bytes());
        file.extend(oldest.to_le_bytes());
        text(file, name);
        file.push(6);
    };
    let mut file = b"\x14\0\0\0!FastSerialization.1".to_vec();
    object(&mut file, "GCHeapDump", 8);
    object(&mut file, "Graphs.MemoryGraph", 0);
    file.extend(100_u64.to_le_bytes());
    file.extend(0_u32.to_le_bytes());
    let types = [("[.NET Roots]", 0_u32), ("Shop.Line[]", 40), ("Shop.Line", 24)];
    file.extend((types.len() as u32).to_le_bytes());
    for (name, bytes) in types {
        text(&mut file, name);
        file.extend(bytes.to_le_bytes());
        text(&mut file, "/app/Shop.dll");
    }
    // Type, own size if the lowest bit is set, references as distances.
    let nodes: [&[u8]; 4] = [&[0, 1, 1], &[2, 2, 1, 2], &[4, 0], &[5, 0x80, 0x30, 1, 0x7e]];
    file.extend((nodes.len() as u32).to_le_bytes());
    let mut place = 0_u32;
    for node in nodes {
        file.extend(place.to_le_bytes());
        place += node.len() as u32;
    }
    file.extend(place.to_le_bytes());
    file.extend(nodes.concat());
    file
}

#[test]
fn a_made_gcdump_has_its_objects() {
    let file = made_gcdump();
    assert!(is_gcdump(&file[..GCDUMP_BEGINNING_BYTES]) && !is_gcdump(EVENTS));
    let heap = read_gcdump(&file[..]).unwrap().snapshot;
    assert_eq!(count(&heap, "Shop.Line"), 2);
    let sizes: Vec<u64> = (0..heap.node_count()).map(|node| heap.self_bytes(node)).collect();
    assert_eq!(sizes, [0, 0, 0, 40, 24, 48]);
    for end in 0..file.len() {
        assert!(read_gcdump(&file[..end]).is_err(), "{end}");
    }
}

proptest! {
    #[test]
    fn bent_files_are_read_or_refused(at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut file = made_gcdump();
        let place = at.index(file.len());
        file[place] = value;
        let _ = read_gcdump(&file[..]);
        let mut program = PROGRAM.to_vec();
        let place = at.index(program.len());
        program[place] = value;
        let _ = assembly::read(&program);
    }

    #[test]
    fn bent_streams_are_read_or_refused(at in 0..EVENTS.len(), value in any::<u8>(), end in any::<usize>()) {
        let mut bytes = EVENTS.to_vec();
        bytes[at] = value;
        let _ = read(&bytes);
        bytes.truncate(end % (bytes.len() + 1));
        let _ = read(&bytes);
    }
}
