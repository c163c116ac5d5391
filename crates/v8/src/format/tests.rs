//! Tests of the reader against a naive model, and with damaged or malformed files.

use std::io::Read;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{EdgeKind, Error, NodeKind, Problem, ReadOptions, Result, Snapshot};

/// Reader that returns a few bytes at a time, like a pipe.
struct Trickle {
    text: Vec<u8>,
    at: usize,
    step: usize,
}

impl Read for Trickle {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.step.min(into.len()).min(self.text.len() - self.at);
        into[..count].copy_from_slice(&self.text[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

fn read(text: &[u8]) -> Result<Snapshot> {
    read_as(text, 2, usize::MAX)
}

fn read_as(text: &[u8], thread_count: usize, step: usize) -> Result<Snapshot> {
    let options = ReadOptions { thread_count, ..ReadOptions::default() };
    Snapshot::read(Trickle { text: text.to_vec(), at: 0, step }, &options)
}

fn read_file(text: &[u8]) -> Result<Snapshot> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, text).unwrap();
    Snapshot::open(file.path(), &ReadOptions::default())
}

const NODE_FIELDS: [&str; 7] =
    ["type", "name", "id", "self_size", "edge_count", "trace_node_id", "detachedness"];
const EDGE_FIELDS: [&str; 3] = ["type", "name_or_index", "to_node"];

/// Snapshot as rows of fields by name; the order of fields in the file is chosen when it is
/// written.
#[derive(Debug, Clone)]
struct Model {
    /// kind, name, id, self size, edge count, detachedness
    nodes: Vec<[u64; 6]>,
    /// kind, name, target node
    edges: Vec<[u64; 3]>,
    strings: Vec<String>,
    node_order: Vec<usize>,
    edge_order: Vec<usize>,
    members: Vec<usize>,
    space: &'static str,
}

impl Model {
    fn text(&self) -> String {
        let node_fields: Vec<&str> = self.node_order.iter().map(|&at| NODE_FIELDS[at]).collect();
        let edge_fields: Vec<&str> = self.edge_order.iter().map(|&at| EDGE_FIELDS[at]).collect();
        let types = |fields: &[&str], names: Value| -> Value {
            fields
                .iter()
                .map(|&field| if field == "type" { names.clone() } else { json!("number") })
                .collect()
        };
        let header = json!({
            "meta": {
                "node_fields": node_fields,
                "node_types": types(&node_fields, json!(["hidden", "object", "string", "synthetic", "of the future"])),
                "edge_fields": edge_fields,
                "edge_types": types(&edge_fields, json!(["element", "property", "weak"])),
                "location_fields": ["object_index", "script_id", "line", "column"],
            },
            "node_count": self.nodes.len(),
            "edge_count": self.edges.len(),
        });
        let list = |numbers: Vec<u64>| {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            format!("[{0}{1}{0}]", self.space, numbers.join(&format!("{0},{0}", self.space)))
        };
        let node_row = |node: &[u64; 6]| {
            let fields = [node[0], node[1], node[2], node[3], node[4], 0, node[5]];
            self.node_order.iter().map(|&at| fields[at]).collect::<Vec<u64>>()
        };
        let edge_row = |edge: &[u64; 3]| {
            let fields = [edge[0], edge[1], edge[2] * self.node_order.len() as u64];
            self.edge_order.iter().map(|&at| fields[at]).collect::<Vec<u64>>()
        };
        let members = [
            ("snapshot", header.to_string()),
            ("nodes", list(self.nodes.iter().flat_map(node_row).collect())),
            ("edges", list(self.edges.iter().flat_map(edge_row).collect())),
            ("strings", json!(self.strings).to_string()),
            ("unknown", json!([{ "a": [1, "]}", -2.5e3, null, true] }]).to_string()),
        ];
        let members: Vec<String> = self
            .members
            .iter()
            .map(|&at| format!("{0}\"{1}\"{0}:{0}{2}{0}", self.space, members[at].0, members[at].1))
            .collect();
        format!("{0}{{{1}}}{0}", self.space, members.join(","))
    }

    fn assert_is(&self, snapshot: &Snapshot) {
        const KINDS: [NodeKind; 4] =
            [NodeKind::HIDDEN, NodeKind::OBJECT, NodeKind::STRING, NodeKind::SYNTHETIC];
        const EDGE_KINDS: [EdgeKind; 3] = [EdgeKind::ELEMENT, EdgeKind::PROPERTY, EdgeKind::WEAK];
        assert_eq!(snapshot.node_count() as usize, self.nodes.len());
        assert_eq!(snapshot.edge_count() as usize, self.edges.len());
        for (at, node) in self.nodes.iter().enumerate() {
            let at = at as u32;
            match KINDS.get(node[0] as usize) {
                Some(&kind) => assert_eq!(snapshot.kind(at), kind),
                None => assert_eq!(snapshot.meta().node_kind_name(snapshot.kind(at)), "of the future"),
            }
            assert_eq!(snapshot.name(at), self.strings[node[1] as usize].as_bytes());
            assert_eq!((snapshot.id(at), snapshot.self_bytes(at)), (node[2], node[3]));
            assert_eq!(snapshot.graph().edges(at).len() as u64, node[4]);
            assert_eq!(snapshot.dom_state(at) as u64, node[5]);
        }
        for (at, edge) in self.edges.iter().enumerate() {
            let at = at as u32;
            assert_eq!(snapshot.edge_kind(at), EDGE_KINDS[edge[0] as usize]);
            assert_eq!(u64::from(snapshot.edge_name_number(at)), edge[1]);
            assert_eq!(u64::from(snapshot.graph().target(at)), edge[2]);
        }
    }
}

fn models() -> impl Strategy<Value = Model> {
    let sizes = prop_oneof![0u64..100, Just(u64::from(u32::MAX)), Just(5_000_000_000), 0u64..1 << 48];
    let node = (0u64..5, 0u64..4, prop_oneof![0u64..1 << 20, 0u64..1 << 40], sizes, 0u64..4, 0u64..3);
    let nodes = prop::collection::vec(node, 1..40);
    let edges = prop::collection::vec((0u64..3, 0u64..4, 0u64..1 << 32), 160);
    let strings = prop::collection::vec(any::<String>(), 4);
    let node_order = Just((0..7).collect::<Vec<usize>>()).prop_shuffle();
    let edge_order = Just((0..3).collect::<Vec<usize>>()).prop_shuffle();
    let members = Just((0..5).collect::<Vec<usize>>()).prop_shuffle();
    let space = prop::sample::select(vec!["", " ", "\n", "\r\n\t "]);
    (nodes, edges, strings, node_order, edge_order, members, space).prop_map(
        |(nodes, edges, strings, node_order, edge_order, members, space)| {
            let nodes: Vec<[u64; 6]> =
                nodes.into_iter().map(|(a, b, c, d, e, f)| [a, b, c, d, e, f]).collect();
            let edge_count: u64 = nodes.iter().map(|node| node[4]).sum();
            let count = nodes.len() as u64;
            let edges = edges.into_iter().take(edge_count as usize);
            let edges = edges.map(|(kind, name, target)| [kind, name, target % count]).collect();
            Model { nodes, edges, strings, node_order, edge_order, members, space }
        },
    )
}

fn small() -> String {
    let model = Model {
        nodes: vec![[3, 0, 1, 0, 2, 0], [1, 1, 3, 16, 1, 0], [2, 2, 5, 24, 0, 0]],
        edges: vec![[0, 1, 1], [1, 3, 2], [1, 3, 2]],
        strings: ["", "Object", "text", "field"].map(str::to_owned).to_vec(),
        node_order: (0..7).collect(),
        edge_order: (0..3).collect(),
        members: vec![0, 1, 2, 4, 3],
        space: "",
    };
    model.text()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_order_of_fields_members_and_any_white_space_is_read(model in models(), step in 1usize..5000) {
        let text = model.text();
        model.assert_is(&read_as(text.as_bytes(), 2, step).unwrap());
        model.assert_is(&read_file(text.as_bytes()).unwrap());
    }

    #[test]
    fn damaged_bytes_never_panic(model in models(), places in prop::collection::vec((any::<usize>(), any::<u8>()), 1..6)) {
        let mut text = model.text().into_bytes();
        for (at, byte) in places {
            let at = at % text.len();
            text[at] = byte;
        }
        if let Ok(snapshot) = read(&text) {
            use_everything(snapshot);
        }
    }

    #[test]
    fn a_file_that_breaks_off_is_read_or_refused(model in models(), cut in any::<usize>()) {
        let text = model.text().into_bytes();
        let cut = cut % text.len();
        if let Ok(snapshot) = read(&text[..cut]) {
            use_everything(snapshot);
        }
    }
}

/// Calls every query of a snapshot.
fn use_everything(snapshot: Snapshot) {
    use crate::analysis::compare;
    use crate::devtools::{DuplicateStrings, Filter, Heap, NativeContexts, RetainersView};
    let _ = snapshot.check();
    let mut written = Vec::new();
    snapshot.write_anonymous(crate::Secrecy::TextsAndNames, &mut written).unwrap();
    snapshot.write_retained_by(snapshot.node_count() - 1, &mut written).unwrap();
    snapshot.write_graph(Some(snapshot.root()), crate::GraphForm::Dot, &mut written).unwrap();
    written.clear();
    snapshot.write_graph(None, crate::GraphForm::Json, &mut written).unwrap();
    let graph: serde_json::Value = serde_json::from_slice(&written).unwrap();
    let count = |key: &str| graph[key].as_array().map_or(0, Vec::len) as u32;
    assert_eq!((count("nodes"), count("edges")), (snapshot.node_count(), snapshot.edge_count()));
    let heap = Heap::with_summary(snapshot).unwrap();
    heap.aggregates(None);
    heap.aggregates(Some(&Filter::RetainedByContexts));
    heap.statistics();
    DuplicateStrings::of(&heap);
    NativeContexts::of(&heap).sizes(&heap);
    compare(&heap, &heap);
    let view = RetainersView::new(&heap, &[heap.snapshot().node_count() / 2]);
    for node in 0..heap.snapshot().node_count() {
        view.edges_into(node);
        heap.display_name(node);
    }
}

#[test]
fn every_prefix_of_a_snapshot_is_read_or_refused() {
    let text = small();
    for cut in 0..text.len() {
        if let Ok(snapshot) = read(&text.as_bytes()[..cut]) {
            assert!(cut == text.len() - 1 || !snapshot.problems().is_empty(), "{cut} bytes look whole");
            use_everything(snapshot);
        }
    }
    assert!(read(text.as_bytes()).unwrap().check().is_empty());
    assert!(matches!(read(b""), Err(Error::Empty)));
    assert!(matches!(read(b"{}"), Err(Error::NoMember { name: "snapshot" })));
}

#[test]
fn errors_name_the_place_and_the_value() {
    let text = small();
    let at = text.find("\"nodes\":[").unwrap() + 9;
    let broken = |from: &str, to: &str| read(text.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
    assert_eq!(
        broken("\"nodes\":[3", "\"nodes\":[x"),
        format!("byte 'x' at offset {at} has no place in a list of numbers")
    );
    assert_eq!(broken("\"nodes\":[3,", "\"nodes\":["), "\"nodes\" has 20 numbers, no multiple of 7");
    assert_eq!(broken("\"edges\":[0,1,7", "\"edges\":[0,1,8"), "edge 0 goes to 8, where no node begins");
    assert_eq!(broken("\"edges\":[0,1,7", "\"edges\":[0,1,70"), "edge 0 goes to node 10 of 3");
    assert!(broken("\"edge_fields\"", "\"edge_felds\"").starts_with("the snapshot's meta data"));
}

#[test]
fn counts_that_differ_from_the_header_are_told() {
    let text = small();
    let fewer = text.replacen("\"node_count\":3", "\"node_count\":9", 1);
    let found = read_file(fewer.as_bytes()).unwrap();
    assert_eq!(found.problems(), [Problem::CountDiffers { section: "nodes", promised: 9, found: 3 }]);
    // A header with a far too large count costs no memory.
    let most = text.replacen("\"edge_count\":3", "\"edge_count\":4000000000", 1);
    assert_eq!(read_file(most.as_bytes()).unwrap().edge_count(), 3);
    assert!(read(text.replacen("\"node_count\":3", "\"node_count\":99999999999", 1).as_bytes()).is_err());
}

#[test]
fn the_lists_count_where_the_header_counts_less() {
    let text = small();
    for (from, to, section, promised, found) in [
        ("\"node_count\":3", "\"node_count\":0", "nodes", 0, 3),
        ("\"node_count\":3", "\"node_count\":2", "nodes", 2, 3),
        ("\"edge_count\":3", "\"edge_count\":0", "edges", 0, 3),
        ("\"edge_count\":3", "\"edge_count\":1", "edges", 1, 3),
    ] {
        let wrong = text.replacen(from, to, 1);
        let read_back = read_file(wrong.as_bytes()).unwrap();
        assert_eq!((read_back.node_count(), read_back.edge_count()), (3, 3), "{to}");
        assert_eq!(read_back.problems(), [Problem::CountDiffers { section, promised, found }]);
        // Text from a pipe cannot be read again.
        assert!(matches!(read(wrong.as_bytes()), Err(Error::MoreThanPromised { .. })), "{to}");
    }
    let neither = text.replacen("\"node_count\":3", "\"node_count\":1", 1);
    let neither = neither.replacen("\"edge_count\":3", "\"edge_count\":0", 1);
    let read_back = read_file(neither.as_bytes()).unwrap();
    assert_eq!((read_back.node_count(), read_back.edge_count(), read_back.problems().len()), (3, 3, 2));
}

#[test]
fn a_compressed_file_whose_header_counts_less_is_read_again() {
    let text = small().replacen("\"edge_count\":3", "\"edge_count\":0", 1);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, &zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
    let read_back = Snapshot::open(file.path(), &ReadOptions::default()).unwrap();
    assert_eq!(read_back.edge_count(), 3);
}

#[test]
fn texts_that_are_no_unicode_are_told() {
    let text = small().replace("\"text\"", "\"t??t\"");
    let mut bytes = text.into_bytes();
    let at = bytes.windows(2).position(|two| two == b"??").unwrap();
    bytes[at..at + 2].copy_from_slice(&[0xff, 0xc3]);
    let problems = read(&bytes).unwrap().check();
    assert!(matches!(problems[..], [Problem::NoUnicode { count: 1, .. }]), "{problems:?}");
    let lone = small().replace("\"text\"", "\"\\ud83d \u{fffd} \u{1f600}\"");
    assert_eq!(read(lone.as_bytes()).unwrap().check(), []);
}

#[test]
fn a_five_gigabyte_buffer_stays_one() {
    let text = small().replacen(",24,", ",5000000000,", 1);
    let heap = crate::devtools::Heap::with_summary(read(text.as_bytes()).unwrap()).unwrap();
    assert_eq!(heap.snapshot().self_bytes(2), 5_000_000_000);
    assert_eq!(heap.retained()[0], 5_000_000_016);
    assert_eq!(heap.statistics().total_bytes, 5_000_000_016);
}

#[test]
fn names_that_a_cut_file_does_not_have_are_said_to_be_absent() {
    let model = Model {
        nodes: vec![[3, 0, 1, 0, 3, 0], [1, 4, 3, 16, 0, 1], [2, 2, 5, 24, 0, 0], [2, 3, 7, 24, 0, 0]],
        edges: vec![[1, 5, 1], [1, 3, 2], [0, 7, 3]],
        strings: ["", "Object", "text", "field", "Tenant", "held"].map(str::to_owned).to_vec(),
        node_order: (0..7).collect(),
        edge_order: (0..3).collect(),
        members: vec![0, 1, 2, 4, 3],
        space: "",
    };
    let text = model.text();
    let strings = text.find("\"strings\"").unwrap();
    let absent = "(name not in the file)";
    for cut in [strings, text.find("\"text\"").unwrap()] {
        let heap = crate::devtools::Heap::with_summary(read(&text.as_bytes()[..cut]).unwrap()).unwrap();
        let class = heap.classes().get(heap.classes().of_node(1)).name_text().into_owned();
        // The node is marked as detached. Its name is stored behind the table, so it is not absent.
        assert!(class.ends_with(absent), "{class}");
        // Two texts that are not there are not the same text.
        assert!(crate::devtools::DuplicateStrings::of(&heap).groups.is_empty());
        assert_eq!(heap.snapshot().name(3), absent.as_bytes());
    }
    let heap = crate::devtools::Heap::with_summary(read(text.as_bytes()).unwrap()).unwrap();
    assert_eq!(heap.classes().get(heap.classes().of_node(1)).name_text(), "Tenant");
    assert_eq!(heap.snapshot().strings().find(absent.as_bytes()), None);
}

#[test]
fn counts_of_the_header_are_taken_as_json_has_them_or_refused_by_name() {
    let with = |number: &str| small().replace("\"node_count\":3", &format!("\"node_count\":{number}"));
    assert_ne!(with("7"), small());
    for number in ["3", "3.0", "0.3e1"] {
        assert_eq!(read(with(number).as_bytes()).unwrap().problems(), &[], "{number}");
    }
    assert!(!read(with("1e3").as_bytes()).unwrap().problems().is_empty());
    for number in ["1.5", "-3", "\"3\"", "1e+30", "true"] {
        let error = read(with(number).as_bytes()).unwrap_err().to_string();
        assert!(error.contains("has node_count") && error.contains(number.trim_matches('"')), "{error}");
    }
}

#[test]
fn strings_keep_what_unicode_forbids() {
    let text = small().replace("\"text\"", "\"\\ud83d\\ude00 \\ud83d \\u00e4\\n\\\"\"");
    let snapshot = read(text.as_bytes()).unwrap();
    assert_eq!(snapshot.name(2), b"\xf0\x9f\x98\x80 \xed\xa0\xbd \xc3\xa4\n\"");
    let mut written = Vec::new();
    snapshot.write_retained_by(2, &mut written).unwrap();
    let again = read(&written).unwrap();
    assert!((0..again.node_count()).any(|node| again.name(node) == snapshot.name(2)));
}

#[test]
fn a_deep_chain_does_not_overflow_the_stack() {
    let count = 1_000_000u64;
    let nodes = (0..count).map(|at| [1, 1, 2 * at + 1, 8, u64::from(at + 1 < count), 0]).collect();
    let edges = (1..count).map(|at| [1, 3, at]).collect();
    let strings = ["", "Object", "text", "next"].map(str::to_owned).to_vec();
    let order = (0..7).collect();
    let model = Model {
        nodes,
        edges,
        strings,
        node_order: order,
        edge_order: vec![0, 1, 2],
        members: vec![0, 1, 2, 3],
        space: "",
    };
    let heap = crate::devtools::Heap::with_summary(read(model.text().as_bytes()).unwrap()).unwrap();
    assert_eq!(heap.retained()[0], 8 * count);
    assert_eq!(heap.distances()[count as usize - 1], count as i32 - 1);
}

#[test]
fn compressed_text_is_recognized() {
    let text = small();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for packed in [&gzip, &zstd] {
        assert_eq!(read(packed).unwrap().node_count(), 3);
        assert_eq!(read_file(packed).unwrap().node_count(), 3);
        // A truncated compressed file is like truncated text.
        assert!(read(&packed[..packed.len() / 2]).is_err());
    }
}

/// Member of a tar archive.
fn tar_member(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    let size = format!("{:011o}\0", content.len());
    header[124..136].copy_from_slice(size.as_bytes());
    header[156] = kind;
    header[257..262].copy_from_slice(b"ustar");
    header.extend_from_slice(content);
    header.resize(header.len().next_multiple_of(512), 0);
    header
}

/// Member of a zip archive, compressed or stored.
fn zip_member(name: &str, content: &[u8], is_packed: bool) -> Vec<u8> {
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, content).unwrap();
    let content = if is_packed { packed.finish().unwrap() } else { content.to_vec() };
    let mut member = b"PK\x03\x04".to_vec();
    member.extend([20, 0, 0, 0, if is_packed { 8 } else { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    member.extend((content.len() as u32).to_le_bytes());
    member.extend([0; 4]);
    member.extend((name.len() as u16).to_le_bytes());
    member.extend([0; 2]);
    member.extend(name.as_bytes());
    member.extend(content);
    member
}

/// Zip member as a program writes it to a pipe: its sizes come after the content.
fn streamed(mut member: Vec<u8>) -> Vec<u8> {
    member[6] = 8;
    member[18..22].fill(0);
    member.extend(b"PK\x07\x08");
    member.extend([0; 12]);
    member
}

#[test]
fn archives_are_read_up_to_their_first_snapshot() {
    let text = small();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let tar = [
        tar_member("notes.txt", b'0', b"{}"),
        tar_member("a/", b'5', b""),
        tar_member("././@LongLink", b'L', b"a/a.heapsnapshot\0"),
        tar_member("a/a.heapsnap", b'0', text.as_bytes()),
        vec![0; 1024],
    ]
    .concat();
    let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
    for packed in [
        zstd::encode_all(&tar[..], 1).unwrap(),
        tar,
        tar_member("a.heapsnapshot.zst", b'0', &zstd),
        [zip_member("notes.txt", b"none", true), zip_member("a.heapsnapshot", text.as_bytes(), true)]
            .concat(),
        zip_member("a.heapsnapshot", text.as_bytes(), false),
        // Another JSON file is not a snapshot.
        [tar_member("package.json", b'0', b"{}"), tar_member("a.json", b'0', text.as_bytes())].concat(),
        [zip_member("package.json", b"{}", false), zip_member("a.json", text.as_bytes(), false)].concat(),
        [
            streamed(zip_member("notes.txt", b"none", true)),
            streamed(zip_member("package.json", b"{}", true)),
            streamed(zip_member("a.heapsnapshot", text.as_bytes(), true)),
        ]
        .concat(),
        marked,
    ] {
        assert_eq!(read(&packed).unwrap().node_count(), 3);
        assert_eq!(read_file(&packed).unwrap().node_count(), 3);
        for cut in (0..packed.len()).step_by(61) {
            if let Ok(snapshot) = read(&packed[..cut]) {
                use_everything(snapshot);
            }
        }
    }
    for without in [tar_member("notes.txt", b'0', b"{}"), zip_member("notes.txt", b"{}", true)] {
        let error = std::error::Error::source(&read(&without).unwrap_err()).unwrap().to_string();
        assert!(error.contains("holds no .heapsnapshot"), "{error}");
    }
}

#[test]
fn xz_is_recognized() {
    // Output of `xz` for a snapshot of one node.
    const PACKED: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x16,
        0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x01, 0x07, 0x00, 0x9f, 0x5d, 0x00, 0x3d, 0x88, 0x8a,
        0x67, 0x23, 0x92, 0x17, 0x58, 0x4b, 0x49, 0x78, 0x92, 0xbb, 0x81, 0xc7, 0x2b, 0x2f, 0x26, 0x65, 0xe8,
        0xa2, 0x6c, 0x7c, 0xd2, 0xea, 0xca, 0xca, 0x74, 0x9b, 0x26, 0xd6, 0xb3, 0x3f, 0x1e, 0xa4, 0x87, 0x48,
        0x13, 0x8d, 0xf0, 0xdd, 0xb1, 0x74, 0x1a, 0xff, 0xa3, 0xea, 0x50, 0x36, 0xd5, 0x80, 0x45, 0x3c, 0x60,
        0x68, 0x64, 0x6f, 0x88, 0x24, 0xfa, 0xc6, 0xfa, 0x53, 0x7a, 0x13, 0xdb, 0x27, 0xb6, 0x4c, 0x96, 0x42,
        0x43, 0x6a, 0xd5, 0x3b, 0x83, 0x94, 0xd9, 0xf0, 0x0a, 0xce, 0x0b, 0x23, 0x62, 0xba, 0xcb, 0x20, 0x18,
        0x8c, 0x38, 0xae, 0x8e, 0xe5, 0xc0, 0xc9, 0x36, 0x0c, 0x79, 0x88, 0x07, 0xee, 0x7e, 0x15, 0x5c, 0x9e,
        0x91, 0x33, 0xe7, 0xf1, 0x0d, 0x5d, 0xc2, 0xad, 0x15, 0x1d, 0x81, 0x0a, 0x8f, 0x05, 0xe9, 0x51, 0x65,
        0x49, 0xc4, 0x0d, 0xf2, 0x40, 0xb2, 0x49, 0xe9, 0x34, 0x1c, 0x64, 0x7e, 0x43, 0x48, 0xd5, 0x34, 0x93,
        0xcf, 0x6e, 0x4d, 0x23, 0xa4, 0xd0, 0xe3, 0xa0, 0xb6, 0x8f, 0x8a, 0xf9, 0xc2, 0x4a, 0x94, 0x37, 0x37,
        0x53, 0x08, 0xcc, 0x00, 0x00, 0xf8, 0x91, 0xa4, 0xfa, 0x36, 0x41, 0x77, 0x38, 0x00, 0x01, 0xbb, 0x01,
        0x88, 0x02, 0x00, 0x00, 0x61, 0x54, 0x51, 0xa5, 0xb1, 0xc4, 0x67, 0xfb, 0x02, 0x00, 0x00, 0x00, 0x00,
        0x04, 0x59, 0x5a,
    ];
    assert_eq!(read(PACKED).unwrap().node_count(), 1);
    assert_eq!(read_file(PACKED).unwrap().node_count(), 1);
}

#[test]
fn members_that_nobody_knows_are_passed_over() {
    // Member that the newest V8 may write: the uses of scopes' variables.
    let scopes = r#""scopes":[0,1,0,2,1],"scope_context_vars":[[1,"a,]"],{"b":[2]}],"scope_uses":[]"#;
    let text = format!(
        r#"{{"snapshot":{{"meta":{{"node_fields":["type","name","id","self_size","edge_count"],"node_types":[["synthetic"]],
        "edge_fields":["type","name_or_index","to_node"],"edge_types":[["element"]],"scope_fields":["scope_id"]}},
        "node_count":2,"edge_count":1}},"nodes":[0,0,1,0,1,0,1,3,8,0],"edges":[0,0,5],"locations":[],{scopes},"strings":["","x"]}}"#
    );
    let snapshot = read(text.as_bytes()).unwrap();
    assert_eq!((snapshot.node_count(), snapshot.edge_count()), (2, 1));
    assert!(snapshot.problems().is_empty(), "{:?}", snapshot.problems());
    assert_eq!(snapshot.name(1), b"x");
}
