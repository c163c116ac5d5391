//! Dumps that are made here, whole, cut and bent.

use std::io::Read;

use heapr_v8::{EdgeKind, NodeKind, Snapshot};
use proptest::prelude::*;

use super::{is_ruby_dump, read_ruby_dump};
use crate::dump_error::DumpError;
use crate::dumped_heap::DumpedHeap;
use crate::request::Contents;

/// A class with a Hash of two instances, one of which a singleton class belongs to; garbage.
const DUMP: &str = r#"{"type":"ROOT", "root":"vm", "references":["0x7f0000001000", "0x7f0000001028"]}
{"type":"ROOT", "root":"machine_context", "references":["0x7f00000010a0", "0x10"]}
{"address":"0x7f0000001000", "type":"CLASS", "name":"Object", "references":["0x7f0000001050"], "memsize":400, "flags":{"old":true}}
{"address":"0x7f0000001028", "type":"CLASS", "class":"0x7f0000001050", "superclass":"0x7f0000001000", "name":"Event", "references":["0x7f0000001000", "0x7f0000001078"], "memsize":500}
{"address":"0x7f0000001050", "type":"CLASS", "superclass":"0x7f0000001000", "real_class_name":"Class", "singleton":true, "memsize":480}
{"address":"0x7f0000001078", "type":"HASH", "class":"0x0", "size":2, "references":["0x7f00000010a0", "0x7f00000010c8"], "memsize":192}
{"address":"0x7f00000010a0", "type":"STRING", "class":"0x0", "bytesize":8, "value":"a secret", "memsize":40}
{"address":"0x7f00000010c8", "type":"OBJECT", "class":"0x7f0000001028", "ivars":1, "references":["0x7f00000010a0"], "memsize":40}
{"address":"0x7f00000010f0", "type":"OBJECT", "class":"0x7f0000001118", "references":["0x7f00000010a0", "0x7f00000010f0"], "memsize":40}
{"address":"0x7f0000001118", "type":"CLASS", "superclass":"0x7f0000001028", "real_class_name":"Event", "singleton":true, "references":["0x7f0000001028"], "memsize":480}
{"address":"0x7f0000001140", "type":"IMEMO", "imemo_type":"iseq", "memsize":80}
{"address":"0x7f0000001168", "type":"FLOAT", "value":NOTHING, "memsize":40}
{"address":"0x7f0000001190", "type":"FLOAT", "value":1.5, "memsize":40}
{"id":3, "type":"SHAPE", "parent_id":1, "edge_name":"@name", "memsize":160}
"#;

fn read(bytes: &[u8], contents: Contents) -> Result<DumpedHeap, DumpError> {
    let bytes = bytes.to_vec();
    read_ruby_dump(&|| Ok(Box::new(std::io::Cursor::new(bytes.clone())) as Box<dyn Read + Send>), contents)
}

fn nodes(heap: &Snapshot, name: &str) -> Vec<u32> {
    (0..heap.node_count()).filter(|&node| heap.name_text(node) == name).collect()
}

fn has(heap: &Snapshot, from: &str, kind: EdgeKind, name: &str, to: &str) -> bool {
    let edges = nodes(heap, from).into_iter().flat_map(|node| heap.graph().edges(node));
    let mut named =
        edges.filter(|&edge| heap.edge_kind(edge) == kind && heap.name_text(heap.graph().target(edge)) == to);
    named.any(|edge| heap.edge_name(edge) == name)
}

#[test]
fn references_are_named_by_the_class_that_they_lead_to() {
    let found = read(DUMP.as_bytes(), Contents::Names).unwrap();
    let heap = &found.snapshot;
    // The line with the offset is the one whose value is no JSON.
    let offset = DUMP.find(r#"{"address":"0x7f0000001168"#).unwrap();
    assert_eq!(
        found.notes,
        [format!("the dump has 1 unreadable line, the first at offset {offset}: what they say is left out")]
    );
    assert!(has(heap, "class Event", EdgeKind::PROPERTY, "(internal collection)", "internal collection"));
    assert!(has(heap, "class Event", EdgeKind::INTERNAL, "(superclass)", "class Object"));
    assert!(has(heap, "internal collection", EdgeKind::ELEMENT, "1", "Event"));
    assert!(has(heap, "Event", EdgeKind::PROPERTY, "(String)", "String"));
    assert!(has(heap, "Event", EdgeKind::INTERNAL, "(class)", "singleton class"));
    assert!(has(heap, "(virtual machine)", EdgeKind::ELEMENT, "0", "class Object"));
    assert!(has(heap, "(stack)", EdgeKind::ELEMENT, "0", "String"));
    // An object that refers to itself, and those that nothing refers to.
    assert!(has(heap, "(garbage, not yet collected)", EdgeKind::ELEMENT, "0", "Event"));
    assert!(has(heap, "Event", EdgeKind::WEAK, "(String)", "String"));
    assert_eq!(heap.kind(nodes(heap, "internal iseq")[0]), NodeKind::CODE);
    assert_eq!(heap.self_bytes(nodes(heap, "class Event")[0]), 500);
    let ids: Vec<u64> = ["class Event", "class Object"].map(|name| heap.id(nodes(heap, name)[0])).to_vec();
    assert_eq!(ids[0] - ids[1], 0x28 / 8);
    assert_eq!(heap.meta().dialect.as_ref().unwrap().runtime, "Ruby, ObjectSpace.dump_all");
}

#[test]
fn texts_are_read_only_on_demand() {
    let shown = |contents| {
        let heap = read(DUMP.as_bytes(), contents).unwrap().snapshot;
        nodes(&heap, "a secret").first().map(|&node| heap.kind(node))
    };
    assert_eq!(shown(Contents::Names), None);
    assert_eq!(shown(Contents::Strings), Some(NodeKind::STRING));
}

#[test]
fn a_dump_that_is_cut_shows_what_it_has() {
    let mut shown = 0;
    for length in 0..DUMP.len() {
        match read(&DUMP.as_bytes()[..length], Contents::Strings) {
            Ok(_) => shown += 1,
            Err(DumpError::NotRuby | DumpError::NoObjects) => {}
            Err(error) => panic!("{length}: {error}"),
        }
    }
    assert!(shown > DUMP.len() / 2, "{shown} of {}", DUMP.len());
    let end = DUMP.len() - 20;
    assert_eq!(read(&DUMP.as_bytes()[..end], Contents::Names).unwrap().cut_at, Some(end as u64));
}

#[test]
fn a_packed_dump_that_is_cut_ends_there() {
    /// Reader that fails at its end, each time anew.
    struct Cut(std::io::Cursor<Vec<u8>>);

    impl Read for Cut {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(to)? {
                0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
                count => Ok(count),
            }
        }
    }

    let cut = || Cut(std::io::Cursor::new(DUMP.as_bytes().to_vec()));
    let found = read_ruby_dump(&|| Ok(Box::new(cut()) as Box<dyn Read + Send>), Contents::Names).unwrap();
    assert_eq!(found.cut_at, Some(DUMP.len() as u64));
}

#[test]
fn a_class_without_its_constant_is_held_by_its_instances() {
    let dump = r#"{"type":"ROOT", "root":"vm", "references":["0x1000"]}
{"address":"0x1000", "type":"ARRAY", "class":"0x1028", "references":["0x1050"], "memsize":40}
{"address":"0x1028", "type":"CLASS", "name":"Array", "memsize":400}
{"address":"0x1050", "type":"OBJECT", "class":"0x1078", "memsize":40}
{"address":"0x1078", "type":"CLASS", "name":"Gone", "memsize":400}
"#;
    let heap = read(dump.as_bytes(), Contents::Names).unwrap().snapshot;
    assert!(has(&heap, "Gone", EdgeKind::INTERNAL, "(class)", "class Gone"));
    assert!(nodes(&heap, "(garbage, not yet collected)").is_empty());
}

#[test]
fn an_object_has_the_same_id_in_all_dumps() {
    let line = |address: &str| {
        format!(r#"{{"address":"{address}", "type":"CLASS", "name":"C{address}", "memsize":40}}"#) + "\n"
    };
    let of = |lines: &[&String]| {
        let dump: String = lines.iter().map(|line| line.as_str()).collect();
        read(dump.as_bytes(), Contents::Names).unwrap().snapshot
    };
    let (lower, upper) = (line("0x7efc00001000"), line("0x7f0000001000"));
    let id = |heap: &Snapshot| heap.id(nodes(heap, "class C0x7f0000001000")[0]);
    assert_eq!(id(&of(&[&upper])), id(&of(&[&lower, &upper])));
    // Both would have the same number.
    let far = of(&[&line("0x7ef800001000"), &upper]);
    assert!(!far.meta().dialect.as_ref().unwrap().ids_are_addresses);
}

#[test]
fn other_files_are_refused_and_dumps_without_roots_told() {
    assert!(is_ruby_dump(DUMP.as_bytes()) && !is_ruby_dump(b"{\"snapshot\":{"));
    assert!(matches!(read(b"{\"snapshot\":{}}\n", Contents::Names), Err(DumpError::NotRuby)));
    assert!(matches!(read(b"no JSON\n", Contents::Names), Err(DumpError::NotRuby)));
    let rootless: String =
        DUMP.lines().filter(|line| !line.contains("ROOT")).map(|it| format!("{it}\n")).collect();
    let found = read(rootless.as_bytes(), Contents::Names).unwrap();
    assert!(found.notes.iter().any(|note| note.contains("no roots")), "{:?}", found.notes);
}

proptest! {
    #[test]
    fn no_bent_dump_stops_the_reader(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let mut bytes = DUMP.as_bytes().to_vec();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(heap) = read(&bytes, Contents::Strings) {
            let nodes = heap.snapshot.node_count();
            for edge in 0..heap.snapshot.edge_count() {
                prop_assert!(heap.snapshot.graph().target(edge) < nodes);
            }
        }
    }
}
