//! Tests that an index and its heap answer alike.

use std::sync::Arc;

use super::{Dice, indexed, popular};
use crate::analysis::{Naming, StoredAnswers, path_from_root};
use crate::devtools::{Heap, RetainersView, display_text, edge_text};
use crate::index::END_ROWS;
use crate::index::edge_sources::SEARCHES_MAX;
use crate::node_set::NodeSet;
use crate::objects::{EdgeName, ObjectOrder, Objects, Page};
use crate::view::{FieldOrder, ObjectQuery, SnapshotView, by_name};
use crate::{EdgeKind, StoredSummary};

#[test]
fn sources_in_memory_are_those_that_a_search_in_the_file_finds() {
    let indexed = indexed(6000, 11);
    let stored = indexed.open();
    assert!(stored.edge_count() > SEARCHES_MAX, "in the second round they are in memory");
    for _ in 0..2 {
        for edge in 0..stored.edge_count() {
            assert_eq!(stored.source(edge), indexed.heap.source(edge), "edge {edge}");
        }
    }
}

/// Compares all single facts of all nodes and edges.
fn assert_alike(left: &dyn Objects, right: &dyn Objects) {
    assert_eq!((left.node_count(), left.edge_count()), (right.node_count(), right.edge_count()));
    assert_eq!((left.root(), left.capture_mode()), (right.root(), right.capture_mode()));
    assert_eq!((left.string_count(), left.class_list()), (right.string_count(), right.class_list()));
    assert_eq!(left.script_paths().all(), right.script_paths().all());
    for node in 0..left.node_count() {
        let facts = |objects: &dyn Objects| {
            (
                (objects.kind(node), objects.dom_state(node), objects.name_index(node), objects.id(node)),
                (objects.self_bytes(node), objects.retained_bytes(node), objects.devtools_distance(node)),
                (objects.class_of(node), objects.dominator(node), objects.dominated_count(node)),
                (objects.location(node), objects.edges(node), display_text(objects, node)),
                objects.edges_into(node, usize::MAX).into_owned(),
                objects.edges_into(node, 2).into_owned(),
                (objects.dominated_by(node).into_owned(), objects.dominated_by_count(node)),
                objects.targets(objects.edges(node)),
            )
        };
        assert_eq!(facts(left), facts(right), "node {node}");
        assert_eq!(left.node_of_id(left.id(node)), right.node_of_id(left.id(node)));
    }
    for edge in 0..left.edge_count() {
        let facts = |objects: &dyn Objects| {
            (
                (objects.source(edge), objects.target(edge), objects.edge_kind(edge)),
                (objects.edge_name_index(edge), edge_text(objects, edge)),
            )
        };
        assert_eq!(facts(left), facts(right), "edge {edge}");
    }
    for number in 0..=left.string_count() {
        assert_eq!(left.string_bytes(number), right.string_bytes(number));
    }
    let (nodes, strings) = (3..left.node_count(), 2..left.string_count());
    let walked = |objects: &dyn Objects| {
        let (mut all, mut edges, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        objects.visit_nodes(nodes.clone(), &mut |facts| all.push(facts));
        objects.visit_edges(nodes.clone(), &mut |node, kind, name| edges.push((node, kind, name)));
        objects.visit_strings(strings.clone(), &mut |number, text| texts.push((number, text.to_vec())));
        (all, edges, texts)
    };
    assert_eq!(walked(left), walked(right));
    assert_eq!((left.damage(), right.damage()), (None, None));
}

#[test]
fn an_index_says_what_the_heap_says() {
    for (node_count, seed) in [(1, 1), (2, 5), (300, 2), (9000, 3)] {
        let made = indexed(node_count, seed);
        let stored = made.open();
        assert_alike(&*made.heap, &stored);
        assert_eq!(stored.summary(), StoredSummary::of(&made.heap));
        assert_eq!(stored.answers(None), Some(StoredAnswers::of(&made.heap)));
        let loaded = Heap::load(Arc::new(stored)).unwrap();
        assert_alike(&*made.heap, &loaded);
        assert_eq!(StoredSummary::of(&loaded), StoredSummary::of(&made.heap));
        assert_eq!(loaded.classes().interfaces(), made.heap.classes().interfaces());
        assert_eq!(loaded.moved_bytes(), made.heap.moved_bytes());
    }
}

#[test]
fn lists_are_the_same_from_an_index() {
    let made = indexed(6000, 4);
    let (stored, memory) =
        (made.store.view(&made.file).unwrap(), SnapshotView::of_heap(Arc::clone(&made.heap)));
    assert_eq!(stored.summary().unwrap(), memory.summary().unwrap());
    let pages = [
        Page::top(7),
        Page { first: 5, count: 20 },
        Page { first: 100_000, count: 3 },
        Page::top(usize::MAX),
    ];
    let orders = [
        ObjectOrder::Retained,
        ObjectOrder::Shallow,
        ObjectOrder::Id,
        ObjectOrder::Distance,
        ObjectOrder::Name,
    ];
    let (is_name, is_field) = (|text: &[u8]| text.ends_with(b"xx"), |text: &[u8]| text.ends_with(b"xxx"));
    let queries = [
        ObjectQuery::default(),
        ObjectQuery { name: Some(&is_name), ..ObjectQuery::default() },
        ObjectQuery { text: Some(&is_name), ..ObjectQuery::default() },
        ObjectQuery { field: Some(&is_field), kind: Some("closure"), ..ObjectQuery::default() },
        ObjectQuery { retained_bytes: Some((100, u64::MAX)), is_detached: true, ..ObjectQuery::default() },
        ObjectQuery { classes: Some(&[0, 3]), self_bytes: Some((1, 48)), ..ObjectQuery::default() },
        ObjectQuery { classes: Some(&[0, 3, 1_000_000]), ..ObjectQuery::default() },
    ];
    for query in &queries {
        for order in orders {
            let all = memory.search(query, order, Page::top(usize::MAX)).unwrap();
            assert_eq!(all.total_count, all.rows.len() as u64);
            for page in pages {
                let some = stored.search(query, order, page).unwrap();
                assert_eq!(some.total_count, all.total_count);
                assert_eq!(some.rows, all.rows[page.range(all.rows.len())], "{order:?} {page:?}");
            }
        }
    }
    for node in (0..6000).step_by(611) {
        for page in pages {
            for order in [FieldOrder::Object, FieldOrder::Retained] {
                assert_eq!(
                    stored.children(node, order, page).unwrap(),
                    memory.children(node, order, page).unwrap()
                );
            }
            assert_eq!(stored.retainers(node, page).unwrap(), memory.retainers(node, page).unwrap());
            assert_eq!(stored.dominated(node, page).unwrap(), memory.dominated(node, page).unwrap());
        }
        assert_eq!(stored.details(node).unwrap(), memory.details(node).unwrap());
        assert_eq!(stored.dominators(node).unwrap(), memory.dominators(node).unwrap());
        let none = std::collections::HashSet::new();
        let of = |view: &SnapshotView| view.retaining_paths(node, &none, 4).unwrap();
        let (from_index, in_memory) = (of(&stored), of(&memory));
        assert_eq!(from_index.paths, in_memory.paths);
        // In memory a search knows how far the root is, and gives up less.
        assert!(from_index.is_cut || !in_memory.is_cut);
        let path = |objects: &dyn Objects| path_from_root(objects, &Naming::of(objects), node);
        assert_eq!(path(stored.objects()), path(memory.objects()));
    }
}

#[test]
fn an_id_that_was_listed_is_that_of_its_row() {
    let made = indexed(6000, 16);
    let view = made.store.view(&made.file).unwrap();
    let listed = view.search(&ObjectQuery::default(), ObjectOrder::Name, Page::top(100)).unwrap();
    let fields = view.children(0, FieldOrder::Retained, Page::top(100)).unwrap();
    for row in listed.rows.iter().chain(fields.rows.iter().map(|row| &row.object)) {
        assert_eq!(view.node_of_id(row.id).unwrap(), Some(row.node));
        assert_eq!(made.heap.snapshot().node_of_id(row.id), Some(row.node));
    }
    assert_eq!(view.node_of_id(1 << 50).unwrap(), None);
}

#[test]
fn short_names_are_the_beginnings_of_names() {
    let made = indexed(6000, 15);
    let view = made.store.view(&made.file).unwrap().with_short_names(10);
    let mut cut_count = 0;
    for node in 0..6000 {
        let (name, short) = (made.heap.display_text(node), view.row(node).unwrap().name);
        assert!(name.starts_with(&short) && short.len() >= name.len().min(10), "{short:?} of {name:?}");
        assert_eq!(view.details(node).unwrap().row.name, name);
        cut_count += u32::from(short != name);
    }
    assert!(cut_count > 0);
}

#[test]
fn the_objects_of_a_class_are_those_of_a_walk_over_all_nodes() {
    const NODE_COUNT: u32 = 27_000;
    let made = indexed(NODE_COUNT.into(), 9);
    let (stored, memory) =
        (made.store.view(&made.file).unwrap(), SnapshotView::of_heap(Arc::clone(&made.heap)));
    assert!(stored.objects().class_rows(0).is_some() && memory.objects().class_rows(0).is_none());
    let class_count = made.heap.classes().count();
    let largest: Vec<u32> = {
        let mut classes: Vec<u32> = (0..class_count).collect();
        let node_count = |class: u32| {
            let [with_bytes, without] = stored.objects().class_rows(class).unwrap();
            (without.end - with_bytes.start) as usize
        };
        assert_eq!(classes.iter().map(|&class| node_count(class)).sum::<usize>(), NODE_COUNT as usize);
        classes.sort_by_key(|&class| std::cmp::Reverse(node_count(class)));
        // The classes are large enough for whole columns to be read, and for names to be numbered.
        assert!(node_count(classes[0]) + node_count(classes[1]) + node_count(classes[2]) > 2048);
        let mut first = classes[..3].to_vec();
        first.sort_unstable();
        first
    };
    // Some classes have stored ends and others do not.
    let has_ends = |&class: &u32| stored.objects().class_end(class, ObjectOrder::Name, true).is_some();
    let with_ends = (0..class_count).filter(has_ends).count();
    assert!(0 < with_ends && with_ends < class_count as usize && has_ends(&largest[0]), "{with_ends}");
    let mut every_third = NodeSet::new(NODE_COUNT);
    assert!((0..NODE_COUNT).step_by(3).all(|node| every_third.insert(node)));
    let mut row_count = 0;
    for order in [
        ObjectOrder::Retained,
        ObjectOrder::Shallow,
        ObjectOrder::Id,
        ObjectOrder::Distance,
        ObjectOrder::Name,
    ] {
        for classes in
            (0..class_count).step_by(151).map(|class| vec![class]).chain([largest.clone(), vec![largest[0]]])
        {
            for self_bytes in [Some((1, u64::MAX)), None] {
                for only in [None, Some(&every_third)] {
                    let query =
                        ObjectQuery { classes: Some(&classes), self_bytes, only, ..ObjectQuery::default() };
                    let all = memory.search(&query, order, Page::top(usize::MAX)).unwrap();
                    row_count += all.rows.len();
                    let total = all.rows.len();
                    for page in [
                        Page::top(0),
                        Page::top(200),
                        Page { first: END_ROWS - 9, count: 9 },
                        Page { first: END_ROWS - 9, count: 10 },
                        Page { first: total.saturating_sub(END_ROWS), count: 9 },
                        Page::top(usize::MAX),
                        Page { first: total / 2, count: 9 },
                        Page { first: total.saturating_sub(9), count: 9 },
                        Page { first: total, count: 1 },
                    ] {
                        let some = stored.search(&query, order, page).unwrap();
                        assert_eq!(some.total_count, all.total_count);
                        assert_eq!(some.rows, all.rows[page.range(total)], "{order:?} {page:?} {classes:?}");
                    }
                }
            }
        }
    }
    assert!(row_count > 10_000);
}

#[test]
fn all_retainers_of_an_object_are_in_the_order_of_single_look_ups() {
    let made = indexed(6000, 14);
    let stored = made.open();
    let (mut edge_count, mut most) = (0, 0);
    for objects in [&*made.heap as &dyn Objects, &stored] {
        let view = RetainersView::whole(objects);
        for node in (0..6000).rev().take(40).chain((0..6000).step_by(29)).chain([popular(6000) as u32]) {
            let all = objects.edges_into(node, usize::MAX);
            let single: Vec<_> =
                all.iter().map(|&edge| (objects.source(edge), objects.edge_kind(edge))).collect();
            assert_eq!(objects.holders(&all), single);
            let mut expected: Vec<u32> = all
                .iter()
                .copied()
                .filter(|&edge| !matches!(objects.edge_kind(edge), EdgeKind::WEAK | EdgeKind::INVISIBLE))
                .filter(|&edge| objects.source(edge) != objects.root())
                .collect();
            expected.sort_by_cached_key(|&edge| {
                let (is_last, is_index, name) = match objects.edge_name(edge) {
                    EdgeName::Index(index) => (false, true, index.to_string()),
                    EdgeName::Name(name) => (name == "__proto__", false, name.into_owned()),
                };
                // Names of this snapshot are ASCII: byte order is JavaScript's order.
                (view.edge_distance(edge), is_last, is_index, name)
            });
            assert_eq!(view.edges_into(node), expected, "node {node}");
            edge_count += expected.len();
            most = most.max(all.len());
        }
    }
    // A node has so many retainers that whole columns were read.
    assert!(edge_count > 1000 && most * 256 > 6000, "{edge_count} {most}");
}

#[test]
fn a_page_of_very_many_retainers_is_that_of_all_of_them() {
    let made = indexed(9000, 21);
    let (node, stored, mut dice) = (popular(9000) as u32, made.open(), Dice(5));
    let view = RetainersView::whole(&*made.heap);
    let all = view.edges_into(node);
    assert!(all.len() > 4 * END_ROWS, "{}", all.len());
    assert_eq!(stored.retainers_in_order(node, Page::top(usize::MAX)), Some((all.clone(), all.len())));
    assert_eq!(stored.retainers_in_order(node + 1, Page::top(1)), None);
    let (from_index, in_memory) = (stored, &made.heap);
    for number in 0..200 {
        let count = dice.below(2 * END_ROWS as u64) as usize;
        let first = match number % 4 {
            0 => dice.below(20) as usize,
            1 => (all.len() - dice.below(20) as usize).saturating_sub(count),
            _ => dice.below(all.len() as u64 + 10) as usize,
        };
        let rows = Page { first, count }.range(all.len());
        for objects in [&**in_memory as &dyn Objects, &from_index] {
            let (some, total) = RetainersView::whole(objects).some_edges_into(node, first, count);
            assert_eq!((&some[..], total), (&all[rows.clone()], all.len()), "{first} {count}");
        }
    }
}

#[test]
fn names_are_in_the_order_of_their_bytes_however_many_objects_have_them() {
    for (node_count, seed) in [(3000, 12), (9000, 13)] {
        let made = indexed(node_count, seed);
        let stored = made.open();
        let mut expected: Vec<(Vec<u8>, u32)> =
            (0..node_count as u32).map(|node| (made.heap.display_name(node).into_owned(), node)).collect();
        expected.sort();
        for objects in [&*made.heap as &dyn Objects, &stored] {
            for rows in [0..1, 0..200, 150..160, 1000..1100, 0..node_count as usize] {
                let nodes = (0..node_count as u32).rev().collect();
                let found = by_name(objects, nodes, rows.clone());
                let wanted: Vec<u32> = expected[rows].iter().map(|&(_, node)| node).collect();
                assert_eq!(found, wanted);
            }
        }
    }
}
