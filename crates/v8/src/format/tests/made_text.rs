//! Tests with the texts of models, and with these texts damaged.

use proptest::prelude::*;

use super::model::{Model, models, small};
use super::{read, read_as, read_file};
use crate::{Error, Problem, Snapshot};

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
pub(super) fn use_everything(snapshot: Snapshot) {
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
