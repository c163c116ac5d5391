//! Search for objects by their facts: a scan over all nodes on two threads, unless the query is
//! only about classes.

use rustc_hash::FxHashMap;

use crate::devtools::{DisplayNames, display_name};
use crate::objects::{NodeFacts, NodeNumber, ObjectOrder, Objects, Page};
use crate::view::class_list;
use crate::view::name_order::by_name;
use crate::view::query::{ObjectQuery, TextTest};
use crate::view::sorted_rows::page_of;
use crate::{DomState, EdgeKind, NodeKind};

/// Returns a page of the nodes that match a query, and their number.
pub(super) fn search(
    objects: &dyn Objects,
    query: &ObjectQuery<'_>,
    order: ObjectOrder,
    page: Page,
) -> (Vec<u32>, usize) {
    class_list::list(objects, query, order, page).unwrap_or_else(|| walk(objects, query, order, page))
}

/// Returns a page of the nodes that match a query, and their number, by examining each node.
pub(super) fn walk(
    objects: &dyn Objects,
    query: &ObjectQuery<'_>,
    order: ObjectOrder,
    page: Page,
) -> (Vec<u32>, usize) {
    let matcher = Matcher::of(objects, query);
    let mut found: Vec<(u64, u32)> = in_two(objects.node_count(), |nodes| {
        let mut found = Vec::new();
        let with_fields = matcher.with_field(nodes.clone());
        let mut shapes = Shapes::of(&matcher, nodes.clone());
        objects.visit_nodes(nodes, &mut |facts| {
            if matcher.is_match(&facts, &with_fields, &mut shapes) {
                let key = match order {
                    ObjectOrder::Retained => u64::MAX - facts.retained_bytes,
                    ObjectOrder::Shallow => u64::MAX - facts.self_bytes,
                    ObjectOrder::Id => facts.id,
                    ObjectOrder::Distance | ObjectOrder::Name => 0,
                };
                found.push((key, facts.node));
            }
        });
        found
    });
    let total = found.len();
    let range = page.range(total);
    if range.is_empty() {
        return (Vec::new(), total);
    }
    match order {
        ObjectOrder::Distance => {
            for (key, node) in &mut found {
                *key = NodeNumber::of_distance(objects.devtools_distance(*node));
            }
        }
        ObjectOrder::Name => {
            return (by_name(objects, found.into_iter().map(|(_, node)| node).collect(), range), total);
        }
        ObjectOrder::Retained | ObjectOrder::Shallow | ObjectOrder::Id => {}
    }
    (page_of(found, range), total)
}

/// Runs over both halves of the nodes in parallel and concatenates the results.
fn in_two<T: Send>(node_count: u32, run: impl Fn(std::ops::Range<u32>) -> Vec<T> + Sync) -> Vec<T> {
    let half = node_count / 2;
    std::thread::scope(|scope| {
        let rest = scope.spawn(|| run(half..node_count));
        let mut all = run(0..half);
        all.extend(rest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        all
    })
}

/// Query with the results of testing each string once.
struct Matcher<'a> {
    objects: &'a dyn Objects,
    query: &'a ObjectQuery<'a>,
    is_field: Option<Vec<bool>>,
    is_name: Option<Vec<bool>>,
    is_text: Option<Vec<bool>>,
    is_plain_object: Vec<bool>,
}

/// Cached tests of names of plain objects, one per list of properties.
struct Shapes {
    /// Plain objects with the number of their shape, in the order of the scan.
    known: Option<std::iter::Peekable<std::vec::IntoIter<(u32, u32)>>>,
    by_number: FxHashMap<u32, bool>,
    by_properties: FxHashMap<Vec<u32>, bool>,
    names: DisplayNames,
}

impl Shapes {
    fn of(matcher: &Matcher<'_>, nodes: std::ops::Range<u32>) -> Self {
        let known = matcher.is_name.as_ref().and_then(|_| matcher.objects.known_shapes(nodes));
        Self {
            known: known.map(|known| known.into_iter().peekable()),
            by_number: FxHashMap::default(),
            by_properties: FxHashMap::default(),
            names: DisplayNames::default(),
        }
    }

    fn is_match(&mut self, objects: &dyn Objects, node: u32, test: TextTest<'_>) -> bool {
        if let Some(known) = &mut self.known {
            while known.next_if(|&(before, _)| before < node).is_some() {}
            if let Some((_, shape)) = known.next_if(|&(found, _)| found == node) {
                return *self.by_number.entry(shape).or_insert_with(|| test(&display_name(objects, node)));
            }
        }
        let edges = objects.edges(node);
        let properties: Vec<u32> = edges
            .filter(|&edge| objects.edge_kind(edge) == EdgeKind::PROPERTY)
            .map(|edge| objects.edge_name_index(edge))
            .collect();
        *self.by_properties.entry(properties).or_insert_with(|| test(&display_name(objects, node)))
    }
}

impl<'a> Matcher<'a> {
    fn of(objects: &'a dyn Objects, query: &'a ObjectQuery<'a>) -> Self {
        let tested = |test: Option<TextTest<'_>>| -> Option<Vec<bool>> {
            let test = test?;
            Some(in_two(objects.string_count(), |numbers| {
                let mut results = Vec::with_capacity(numbers.len());
                objects.visit_strings(numbers, &mut |_, text| results.push(test(text)));
                results
            }))
        };
        let is_plain: TextTest<'_> = &|text| text == b"Object";
        Self {
            objects,
            query,
            is_field: tested(query.field),
            is_name: tested(query.name),
            is_text: tested(query.text),
            is_plain_object: query.name.map_or_else(Vec::new, |_| tested(Some(is_plain)).unwrap_or_default()),
        }
    }

    /// Returns those of `nodes` that have the field of the query, ascending.
    fn with_field(&self, nodes: std::ops::Range<u32>) -> Vec<u32> {
        let mut found: Vec<u32> = Vec::new();
        let (Some(is_field), Some(test)) = (&self.is_field, self.query.field) else { return found };
        let mut numbers: FxHashMap<u32, bool> = FxHashMap::default();
        self.objects.visit_edges(nodes, &mut |node, kind, name| {
            if found.last() == Some(&node) {
                return;
            }
            let is_match = if kind.has_string_name() {
                is_named(is_field, name)
            } else {
                *numbers.entry(name).or_insert_with(|| test(name.to_string().as_bytes()))
            };
            if is_match {
                found.push(node);
            }
        });
        found
    }

    fn is_match(&self, facts: &NodeFacts, with_field: &[u32], shapes: &mut Shapes) -> bool {
        let query = self.query;
        let is_within = |value: u64, limits: Option<(u64, u64)>| {
            limits.is_none_or(|(least, most)| (least..=most).contains(&value))
        };
        query.classes.is_none_or(|classes| classes.binary_search(&facts.class).is_ok())
            && query.only.is_none_or(|only| only.contains(facts.node))
            && is_within(facts.self_bytes, query.self_bytes)
            && is_within(facts.retained_bytes, query.retained_bytes)
            && (!query.is_detached
                || facts.dom_state == DomState::Detached && self.objects.is_detached(facts.node))
            && query
                .kind
                .is_none_or(|name| self.objects.meta().node_kind_name(facts.kind).eq_ignore_ascii_case(name))
            && (self.is_field.is_none() || with_field.binary_search(&facts.node).is_ok())
            && self.has_text(facts, &mut shapes.names)
            && self.has_name(facts, shapes)
    }

    fn has_text(&self, facts: &NodeFacts, names: &mut DisplayNames) -> bool {
        let (Some(is_text), Some(test)) = (&self.is_text, self.query.text) else { return true };
        match facts.kind {
            NodeKind::CONS_STRING => test(&names.of(self.objects, facts.node)),
            kind if kind.is_string() || kind == NodeKind::SYMBOL => is_named(is_text, facts.name_index),
            _ => false,
        }
    }

    fn has_name(&self, facts: &NodeFacts, shapes: &mut Shapes) -> bool {
        let (Some(is_name), Some(test)) = (&self.is_name, self.query.name) else { return true };
        match facts.kind {
            NodeKind::CONS_STRING => test(&shapes.names.of(self.objects, facts.node)),
            NodeKind::OBJECT if is_named(&self.is_plain_object, facts.name_index) => {
                shapes.is_match(self.objects, facts.node, test)
            }
            _ => is_named(is_name, facts.name_index),
        }
    }
}

fn is_named(names: &[bool], number: u32) -> bool {
    names.get(number as usize).copied().unwrap_or(false)
}
