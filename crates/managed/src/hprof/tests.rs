//! Dumps that are made here, whole, cut and bent.

mod retained;
mod threads;

use std::io::Read;

use heapr_v8::{EdgeKind, NodeKind, Snapshot};
use proptest::prelude::*;

use super::parts::Division;
use super::{DumpError, DumpedHeap, read_divided};
use crate::request::Contents;

const OBJECT: u8 = 2;
const INT: u8 = 10;
const BYTE: u8 = 8;

/// Ids of names and objects.
const NAMES: [(u64, &str); 16] = [
    (1, "java/lang/Object"),
    (2, "app/Main"),
    (3, "STORE"),
    (4, "java/util/HashMap"),
    (5, "table"),
    (6, "size"),
    (7, "[Ljava/util/HashMap$Node;"),
    (8, "java/util/HashMap$Node"),
    (9, "value"),
    (10, "app/Session"),
    (11, "body"),
    (12, "java/lang/ref/Reference"),
    (13, "java/lang/ref/SoftReference"),
    (14, "referent"),
    (15, "java/lang/String"),
    (16, "name"),
];
const CLASS_BASE: u64 = 0x1000;
const LOADER: u64 = 0x5000;
const MAP: u64 = 0x6000;
const TABLE: u64 = 0x6030;
const ENTRY: u64 = 0x6060;
const SESSION: u64 = 0x6080;
const BODY: u64 = 0x60a0;
const SOFT: u64 = 0x60c0;
const SOFTLY_HELD: u64 = 0x60e0;
const LOST: u64 = 0x6100;
const TEXT: u64 = 0x6120;
const CHARACTERS: u64 = 0x6140;

/// Writer of dumps.
struct Made {
    bytes: Vec<u8>,
    id_bytes: usize,
}

impl Made {
    fn new(version: &str, id_bytes: usize) -> Self {
        let mut made = Self { bytes: Vec::new(), id_bytes };
        made.bytes.extend(format!("JAVA PROFILE {version}\0").as_bytes());
        made.bytes.extend((id_bytes as u32).to_be_bytes());
        made.bytes.extend([0; 8]);
        made
    }

    fn id(&self, id: u64) -> Vec<u8> {
        id.to_be_bytes()[8 - self.id_bytes..].to_vec()
    }

    fn record(&mut self, tag: u8, length: Option<u32>, contents: &[u8]) {
        self.bytes.extend([tag, 0, 0, 0, 0]);
        self.bytes.extend(length.unwrap_or(contents.len() as u32).to_be_bytes());
        self.bytes.extend(contents);
    }

    fn names(&mut self) {
        for (id, text) in NAMES {
            let contents = [self.id(id), text.as_bytes().to_vec()].concat();
            self.record(1, None, &contents);
        }
        for name in [1, 2, 4, 7, 8, 10, 12, 13, 15] {
            let class = self.id(CLASS_BASE + name * 16);
            let contents = [1_u32.to_be_bytes().to_vec(), class, vec![0; 4], self.id(name)].concat();
            self.record(2, None, &contents);
        }
    }

    /// A class by the number of its name: superclass, loader, statics, fields.
    fn class(
        &self,
        name: u64,
        above: u64,
        loader: u64,
        statics: &[(u64, u64)],
        fields: &[(u64, u8)],
    ) -> Vec<u8> {
        let above = if above == 0 { 0 } else { CLASS_BASE + above * 16 };
        let mut part = vec![0x20];
        part.extend([self.id(CLASS_BASE + name * 16), vec![0; 4], self.id(above), self.id(loader)].concat());
        part.extend([vec![0; 4 * self.id_bytes], vec![0; 4], vec![0; 2]].concat());
        part.extend((statics.len() as u16).to_be_bytes());
        for &(name, value) in statics {
            part.extend([self.id(name), vec![OBJECT], self.id(value)].concat());
        }
        part.extend((fields.len() as u16).to_be_bytes());
        for &(name, kind) in fields {
            part.extend([self.id(name), vec![kind]].concat());
        }
        part
    }

    fn instance(&self, id: u64, class: u64, values: &[u8]) -> Vec<u8> {
        let length = (values.len() as u32).to_be_bytes().to_vec();
        let class = self.id(CLASS_BASE + class * 16);
        [vec![0x21], self.id(id), vec![0; 4], class, length, values.to_vec()].concat()
    }

    fn objects(&self, id: u64, class: u64, items: &[u64]) -> Vec<u8> {
        let items: Vec<u8> = items.iter().flat_map(|&item| self.id(item)).collect();
        let count = ((items.len() / self.id_bytes) as u32).to_be_bytes().to_vec();
        [vec![0x22], self.id(id), vec![0; 4], count, self.id(CLASS_BASE + class * 16), items].concat()
    }

    fn bytes(&self, id: u64, bytes: &[u8]) -> Vec<u8> {
        let count = (bytes.len() as u32).to_be_bytes().to_vec();
        [vec![0x23], self.id(id), vec![0; 4], count, vec![BYTE], bytes.to_vec()].concat()
    }

    /// All parts of the heap.
    fn heap(&self) -> Vec<u8> {
        self.parts().concat()
    }

    fn parts(&self) -> Vec<Vec<u8>> {
        let int = 7_u32.to_be_bytes();
        vec![
            self.class(1, 0, 0, &[], &[]),
            self.class(2, 1, LOADER, &[(3, MAP)], &[]),
            self.class(4, 1, 0, &[], &[(5, OBJECT), (6, INT)]),
            self.class(7, 1, 0, &[], &[]),
            self.class(8, 1, 0, &[], &[(9, OBJECT)]),
            self.class(10, 1, LOADER, &[], &[(11, OBJECT), (16, OBJECT)]),
            self.class(12, 1, 0, &[], &[(14, OBJECT)]),
            self.class(13, 12, 0, &[], &[]),
            self.class(15, 1, 0, &[], &[(9, OBJECT)]),
            self.instance(LOADER, 1, &[]),
            self.instance(MAP, 4, &[self.id(TABLE), int.to_vec()].concat()),
            self.objects(TABLE, 7, &[0, ENTRY, 0]),
            self.instance(ENTRY, 8, &self.id(SESSION)),
            self.instance(SESSION, 10, &[self.id(BODY), self.id(TEXT)].concat()),
            self.bytes(BODY, &[1, 2, 3]),
            self.instance(SOFT, 13, &self.id(SOFTLY_HELD)),
            self.instance(SOFTLY_HELD, 1, &[]),
            self.instance(LOST, 10, &[self.id(0), self.id(0)].concat()),
            self.instance(TEXT, 15, &self.id(CHARACTERS)),
            self.bytes(CHARACTERS, b"a secret"),
            [vec![0x05], self.id(CLASS_BASE + 16)].concat(),
            [vec![0x01], self.id(LOADER), self.id(9)].concat(),
            [vec![0xff], self.id(SOFT)].concat(),
        ]
    }

    /// A dump with each part of the heap in a record of its own.
    fn of_segments() -> Self {
        let mut made = Self::new("1.0.2", 8);
        made.names();
        for part in made.parts() {
            made.record(0x1c, None, &part);
        }
        made.record(0x2c, None, &[]);
        made
    }

    fn usual() -> Self {
        let mut made = Self::new("1.0.2", 8);
        made.names();
        let heap = made.heap();
        made.record(0x1c, None, &heap);
        made.record(0x2c, None, &[]);
        made
    }
}

fn read(bytes: &[u8], contents: Contents) -> Result<DumpedHeap, DumpError> {
    read_by(bytes, contents, 1)
}

/// Reads a dump by so many threads.
fn read_by(bytes: &[u8], contents: Contents, thread_count: usize) -> Result<DumpedHeap, DumpError> {
    let open = |offset: u64| {
        let mut bytes = std::io::Cursor::new(bytes.to_vec());
        bytes.set_position(offset);
        Ok(Some(Box::new(bytes) as Box<dyn Read + Send>))
    };
    read_divided(&open, contents, Division { thread_count, least_bytes: 1 })
}

fn heap(made: &Made) -> Snapshot {
    let heap = read(&made.bytes, Contents::Names).unwrap();
    assert_eq!(heap.notes, Vec::<String>::new());
    heap.snapshot
}

fn node(heap: &Snapshot, name: &str) -> u32 {
    let mut found = (0..heap.node_count()).filter(|&node| heap.name_text(node) == name);
    found.next().unwrap_or_else(|| panic!("{name}"))
}

/// Names of an object's references, with their kinds and targets.
fn edges(heap: &Snapshot, node: u32) -> Vec<(EdgeKind, String, String)> {
    let edges = heap.graph().edges(node);
    edges
        .map(|edge| {
            let target = heap.name_text(heap.graph().target(edge)).into_owned();
            (heap.edge_kind(edge), heap.edge_name(edge).into_owned(), target)
        })
        .collect()
}

fn has(heap: &Snapshot, from: &str, kind: EdgeKind, name: &str, to: &str) {
    let all = edges(heap, node(heap, from));
    assert!(all.contains(&(kind, name.to_owned(), to.to_owned())), "{from}: {all:?}");
}

fn check(heap: &Snapshot) {
    has(heap, "class app.Main", EdgeKind::PROPERTY, "STORE", "java.util.HashMap");
    has(heap, "class app.Main", EdgeKind::INTERNAL, "(superclass)", "class java.lang.Object");
    has(heap, "java.util.HashMap", EdgeKind::INTERNAL, "table", "java.util.HashMap$Node[]");
    has(heap, "java.util.HashMap$Node[]", EdgeKind::ELEMENT, "1", "java.util.HashMap$Node");
    has(heap, "java.util.HashMap$Node", EdgeKind::INTERNAL, "value", "app.Session");
    has(heap, "app.Session", EdgeKind::PROPERTY, "body", "byte[]");
    has(heap, "app.Session", EdgeKind::INTERNAL, "(loader)", "class loader (java.lang.Object)");
    has(heap, "class loader (java.lang.Object)", EdgeKind::INTERNAL, "(class)", "class app.Session");
    has(heap, "java.lang.ref.SoftReference", EdgeKind::WEAK, "referent", "java.lang.Object");
    has(heap, "(system classes)", EdgeKind::ELEMENT, "0", "class java.lang.Object");
    has(heap, "(system classes)", EdgeKind::ELEMENT, "1", "class java.util.HashMap");
    has(heap, "(held by soft references alone)", EdgeKind::ELEMENT, "0", "java.lang.Object");
    has(heap, "(garbage, or held by the virtual machine)", EdgeKind::ELEMENT, "0", "app.Session");
    for store in ["java.util.HashMap$Node[]", "java.util.HashMap$Node"] {
        assert_eq!(heap.kind(node(heap, store)), NodeKind::ARRAY, "{store}");
    }
    assert_eq!(heap.kind(node(heap, "java.util.HashMap")), NodeKind::OBJECT);
    assert_eq!(heap.self_bytes(node(heap, "byte[]")), 24);
}

#[test]
fn references_have_their_names_and_roots_their_rows() {
    check(&heap(&Made::usual()));
}

#[test]
fn ids_of_four_bytes_and_heaps_of_one_record_are_read() {
    // A length of 0 goes on to the end, and the length of a large heap is too small.
    for length in [None, Some(0), Some(40)] {
        let mut made = Made::new("1.0.2", 4);
        made.names();
        let heap_parts = made.heap();
        made.record(0x0c, length, &heap_parts);
        if length == Some(40) {
            // It ends at a multiple of 2^32 beyond 40, or with the file.
            let cut = read(&made.bytes, Contents::Names).unwrap();
            assert_eq!(cut.notes.len(), 1, "{:?}", cut.notes);
            check(&cut.snapshot);
        } else {
            check(&heap(&made));
        }
    }
}

#[test]
fn records_of_android_are_read() {
    let mut made = Made::new("1.0.3", 4);
    made.names();
    let id = |id: u64| (id as u32).to_be_bytes().to_vec();
    let parts = [
        [vec![0xfe], id(1), id(3)].concat(),
        made.heap(),
        [vec![0x89], id(TEXT)].concat(),
        [vec![0x8d], id(BODY)].concat(),
        [vec![0x8e], id(BODY), id(1), id(2)].concat(),
        [vec![0xc3], id(0x6200), id(0), id(100), vec![INT]].concat(),
        [vec![0x90], id(LOST)].concat(),
    ];
    made.record(0x1c, None, &parts.concat());
    let heap = heap(&made);
    check(&heap);
    has(&heap, "(interned strings)", EdgeKind::ELEMENT, "0", "java.lang.String");
    has(&heap, "(garbage, or held by the virtual machine)", EdgeKind::ELEMENT, "1", "int[]");
}

#[test]
fn subclasses_of_collections_are_ones_and_the_next_reference_of_a_queue_is_held() {
    let mut made = Made::new("1.0.2", 8);
    made.names();
    let (name, empty) = ([made.id(17), b"next".to_vec()].concat(), vec![0; 16]);
    made.record(1, None, &name);
    let parts = [
        [made.class(1, 0, 0, &[], &[]), made.class(4, 1, 0, &[], &[(5, OBJECT)])].concat(),
        made.class(10, 4, LOADER, &[], &[(11, OBJECT)]),
        [made.class(12, 1, 0, &[], &[(14, OBJECT), (17, OBJECT)]), made.class(13, 12, 0, &[], &[])].concat(),
        made.instance(SESSION, 10, &[made.id(SOFT), made.id(LOST)].concat()),
        [made.instance(LOST, 1, &[]), made.instance(ENTRY, 12, &empty)].concat(),
        made.instance(SOFT, 13, &[made.id(0), made.id(ENTRY)].concat()),
    ];
    made.record(0x1c, None, &parts.concat());
    let heap = heap(&made);
    has(&heap, "app.Session", EdgeKind::INTERNAL, "table", "java.lang.Object");
    has(&heap, "java.lang.ref.SoftReference", EdgeKind::PROPERTY, "next", "java.lang.ref.Reference");
}

#[test]
fn texts_of_strings_are_shown_only_on_demand() {
    let made = Made::usual();
    assert_eq!(heap(&made).strings().find(b"a secret"), None);
    let shown = read(&made.bytes, Contents::Strings).unwrap().snapshot;
    let text = node(&shown, "a secret");
    assert_eq!(shown.kind(text), NodeKind::STRING);
    check(&shown);
}

#[test]
fn a_written_snapshot_is_the_same_again() {
    let first = heap(&Made::usual());
    let mut text = Vec::new();
    first.write(&mut text).unwrap();
    let again = Snapshot::read(std::io::Cursor::new(text), &heapr_v8::ReadOptions::default()).unwrap();
    check(&again);
    assert_eq!(again.meta().dialect.as_ref().unwrap().runtime, "Java, hprof 1.0.2");
    assert_eq!(again.problems().len(), 0);
}

#[test]
fn a_dump_that_is_cut_shows_what_it_has() {
    let whole = Made::usual().bytes;
    let mut shown = 0;
    for length in 0..whole.len() {
        match read(&whole[..length], Contents::Strings) {
            Ok(_) => shown += 1,
            Err(DumpError::NotHprof | DumpError::NoObjects | DumpError::Ends { .. }) => {}
            Err(error) => panic!("{length}: {error}"),
        }
    }
    assert!(shown > whole.len() / 4, "{shown} of {}", whole.len());
}

#[test]
fn other_files_are_refused() {
    let refused = |bytes: &[u8]| read(bytes, Contents::Names).map(drop).unwrap_err();
    assert!(matches!(refused(b"{\"snapshot\":{}}"), DumpError::NotHprof));
    assert!(matches!(
        refused(b"JAVA PROFILE 1.0.2\0\0\0\0\x03\0\0\0\0\0\0\0\0"),
        DumpError::IdBytes { id_bytes: 3 }
    ));
    let mut made = Made::new("1.0.2", 8);
    made.record(0x1c, None, &[0x77, 1, 2]);
    assert!(matches!(refused(&made.bytes), DumpError::UnknownPart { tag: 0x77, offset } if offset == 40));
    let mut made = Made::new("1.0.2", 8);
    let part = made.bytes(1, &[0; 64]);
    made.record(0x1c, Some(8), &part);
    assert!(matches!(refused(&made.bytes), DumpError::Overrun { .. }));
}

proptest! {
    #[test]
    fn no_bent_dump_stops_the_reader(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let mut bytes = Made::of_segments().bytes;
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        for thread_count in [1, 3] {
            let Ok(heap) = read_by(&bytes, Contents::Strings, thread_count) else { continue };
            let nodes = heap.snapshot.node_count();
            for edge in 0..heap.snapshot.edge_count() {
                prop_assert!(heap.snapshot.graph().target(edge) < nodes);
            }
        }
    }
}
