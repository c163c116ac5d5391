//! Objects by what is known of them: a walk over all nodes, on two threads, unless it is only about
//! classes.

use rustc_hash::FxHashMap;

use crate::devtools::{DisplayNames, display_name};
use crate::view::name_order::by_name;
use crate::view::objects::NodeFacts;
use crate::view::{NodeNumber, Objects, Page, class_list};
use crate::{DomState, EdgeKind, NodeKind};

/// What comes first in a list of objects; of equals the one that comes first in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectOrder {
    /// Most bytes kept alive.
    Retained,
    /// Most bytes of its own.
    Shallow,
    /// The smallest id.
    Id,
    /// Nearest to a root.
    Distance,
    /// By the name that lists show.
    Name,
}

/// A test of a text, WTF-8.
pub type TextTest<'a> = &'a (dyn Fn(&[u8]) -> bool + Sync);

/// What an object must be; all of it.
#[derive(Clone, Copy, Default)]
pub struct ObjectQuery<'a> {
    /// Of one of these classes; sorted.
    pub classes: Option<&'a [u32]>,
    /// With that name, as lists show it.
    pub name: Option<TextTest<'a>>,
    /// With a field of that name.
    pub field: Option<TextTest<'a>>,
    /// A string (or a symbol) of that text.
    pub text: Option<TextTest<'a>>,
    /// Of V8's type of that name.
    pub kind: Option<&'a str>,
    /// With so many bytes of its own, from and up to.
    pub self_bytes: Option<(u64, u64)>,
    /// With so many bytes that would be freed with it.
    pub retained_bytes: Option<(u64, u64)>,
    /// A DOM node that no longer hangs in its document.
    pub is_detached: bool,
    /// One of these nodes.
    pub only: Option<&'a crate::devtools::NodeSet>,
}

impl std::fmt::Debug for ObjectQuery<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectQuery")
            .field("classes", &self.classes)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// The nodes that a query is about, on a page, and how many there are.
pub(super) fn search(
    objects: &dyn Objects,
    query: &ObjectQuery<'_>,
    order: ObjectOrder,
    page: Page,
) -> (Vec<u32>, usize) {
    class_list::list(objects, query, order, page).unwrap_or_else(|| walk(objects, query, order, page))
}

/// The same, found by a look at each node.
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

/// Some rows of nodes with what they are sorted by: only these need to be in order.
pub(super) fn page_of(mut keyed: Vec<(u64, u32)>, rows: std::ops::Range<usize>) -> Vec<u32> {
    if rows.end < keyed.len() {
        keyed.select_nth_unstable(rows.end);
        keyed.truncate(rows.end);
    }
    if 0 < rows.start && rows.start < keyed.len() {
        keyed.select_nth_unstable(rows.start);
    }
    let page = keyed.get_mut(rows).unwrap_or_default();
    page.sort_unstable();
    page.iter().map(|&(_, node)| node).collect()
}

/// The nodes of a list in order, those of a page.
pub(super) fn sorted_page(objects: &dyn Objects, nodes: &[u32], page: Page) -> Vec<u32> {
    let retained = objects.numbers_of(NodeNumber::RetainedBytes, nodes);
    let keyed = retained.into_iter().map(|bytes| u64::MAX - bytes).zip(nodes.iter().copied()).collect();
    page_of(keyed, page.range(nodes.len()))
}

/// Runs over both halves of the nodes at once; the results one after the other.
fn in_two<T: Send>(node_count: u32, run: impl Fn(std::ops::Range<u32>) -> Vec<T> + Sync) -> Vec<T> {
    let half = node_count / 2;
    std::thread::scope(|scope| {
        let rest = scope.spawn(|| run(half..node_count));
        let mut all = run(0..half);
        all.extend(rest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        all
    })
}

/// A query with each string tested once.
struct Matcher<'a> {
    objects: &'a dyn Objects,
    query: &'a ObjectQuery<'a>,
    is_field: Option<Vec<bool>>,
    is_name: Option<Vec<bool>>,
    is_text: Option<Vec<bool>>,
    is_plain_object: Vec<bool>,
}

/// What plain objects with the same properties are called is asked once.
struct Shapes {
    /// Plain objects with the number of their shape, in the order in which they are asked for.
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

    /// Those of `nodes` that have the field, if one is asked for; ascending.
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
