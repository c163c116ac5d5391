//! Dumps that threads share.

use heapr_v8::{EdgeKind, NodeKind, Snapshot};

use super::{LOADER, Made, check, read_by};
use crate::request::Contents;

/// References of an object: kind, name, target.
type Edges = Vec<(EdgeKind, String, u32)>;

/// All nodes and edges, whatever the numbers of their names are.
fn rows(heap: &Snapshot) -> Vec<(String, NodeKind, u64, u64, Edges)> {
    let edge =
        |edge: u32| (heap.edge_kind(edge), heap.edge_name(edge).into_owned(), heap.graph().target(edge));
    let row = |node: u32| {
        let edges = heap.graph().edges(node).map(edge).collect();
        (heap.name_text(node).into_owned(), heap.kind(node), heap.id(node), heap.self_bytes(node), edges)
    };
    (0..heap.node_count()).map(row).collect()
}

#[test]
fn threads_that_share_a_dump_find_what_one_finds() {
    let mut made = Made::of_segments();
    // An object that comes again in another part of the dump.
    let again = made.instance(LOADER, 1, &[]);
    made.record(0x1c, None, &again);
    for made in [Made::of_segments(), made, Made::usual()] {
        for length in (made.bytes.len() * 3 / 4..=made.bytes.len()).rev().step_by(31) {
            let one = read_by(&made.bytes[..length], Contents::Strings, 1).unwrap();
            let all = read_by(&made.bytes[..length], Contents::Strings, 2 + length % 4).unwrap();
            assert_eq!(rows(&all.snapshot), rows(&one.snapshot), "{length}");
            assert_eq!((all.cut_at, all.notes), (one.cut_at, one.notes));
        }
    }
    check(&read_by(&Made::of_segments().bytes, Contents::Names, 3).unwrap().snapshot);
}
