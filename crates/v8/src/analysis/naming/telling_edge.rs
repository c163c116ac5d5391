//! The reference that tells best why an object is alive, and so names it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::PoisonError;

use super::super::storage::is_of_the_engine;
use super::Naming;
use crate::objects::{EdgeName, Objects};
use crate::{EdgeKind, NodeKind};

/// Number of retainers from which the naming edge of a node is cached.
const MAX_RETAINERS_LOOKED_AT: usize = 512;
/// Largest number of retainers searched for the edge that names a node. Popular objects have
/// millions.
const MAX_RETAINERS_OF_POPULAR: usize = 1 << 16;
impl<H: Objects + ?Sized> Naming<'_, H> {
    /// Returns the edge into `node` that best explains why it is alive: a named edge from an object
    /// nearer to the roots.
    pub(crate) fn naming_edge(&self, node: u32) -> Option<u32> {
        let few = self.heap.edges_into(node, MAX_RETAINERS_LOOKED_AT);
        if few.len() < MAX_RETAINERS_LOOKED_AT {
            return self.telling_edge(node, &few);
        }
        let mut popular = self.edges_of_popular.lock().unwrap_or_else(PoisonError::into_inner);
        *popular
            .entry(node)
            .or_insert_with(|| self.telling_edge(node, &self.heap.edges_into(node, MAX_RETAINERS_OF_POPULAR)))
    }

    fn telling_edge(&self, node: u32, edges: &[u32]) -> Option<u32> {
        let found = self.most_telling(node, edges)?;
        if !self.is_of_a_moment(self.heap.source(found)) {
            return Some(found);
        }
        // A running function refers to the node, which says nothing about its permanent holder.
        let keeping = edges.iter().copied().filter(|&edge| {
            let holder = self.heap.source(edge);
            !self.is_of_a_moment(holder) && self.heap.kind(holder) != NodeKind::SYNTHETIC
        });
        let keeping: Vec<u32> =
            keeping.filter(|&edge| !self.is_kept_by(self.heap.source(edge), node)).collect();
        self.most_telling(node, &keeping).or(Some(found))
    }

    /// Whether a node stands for references from running functions: V8's groups below "(GC roots)",
    /// or the stack in other engines.
    fn is_of_a_moment(&self, node: u32) -> bool {
        self.heap.kind(node) == NodeKind::SYNTHETIC
            && self.heap.meta().language().is_passing(&self.heap.name(node))
    }

    /// Whether `above` dominates `node`, within a bounded number of steps. Returns true if the
    /// bound is reached.
    fn is_kept_by(&self, node: u32, above: u32) -> bool {
        const MAX_STEPS: usize = 1 << 12;
        let mut at = node;
        for _ in 0..MAX_STEPS {
            let next = self.heap.dominator(at);
            if at == above || next == at {
                return at == above;
            }
            at = next;
        }
        true
    }

    fn most_telling(&self, node: u32, edges: &[u32]) -> Option<u32> {
        let heap = self.heap;
        let distance = heap.distance(node);
        edges
            .iter()
            .filter_map(|&edge| {
                let source = heap.source(edge);
                let kind = heap.edge_kind(edge);
                if kind == EdgeKind::WEAK || source == node {
                    return None;
                }
                let mut doubts = 0;
                if is_of_the_engine(heap, source) {
                    doubts += 2;
                }
                // Hidden edges of an object include the temporary values of a suspended function,
                // which a variable usually holds as well.
                if kind == EdgeKind::HIDDEN && heap.kind(source) == NodeKind::OBJECT {
                    doubts += 4;
                }
                if kind != EdgeKind::ELEMENT && kind != EdgeKind::HIDDEN {
                    let name = heap.string(heap.edge_name_index(edge));
                    if heap.meta().language().is_untelling(&name) || heap.kind(source) == NodeKind::CODE {
                        doubts += 4;
                    }
                    // Key side of a WeakMap entry: the name describes the table, not the value.
                    if name.starts_with("part of key") || name.contains(" pair in WeakMap") {
                        doubts += 1;
                    }
                }
                if heap.distance(source) >= distance {
                    doubts += 3;
                }
                if heap.kind(source) == NodeKind::SYNTHETIC {
                    doubts += 1;
                }
                let rank = match kind {
                    EdgeKind::PROPERTY | EdgeKind::CONTEXT => 0,
                    EdgeKind::ELEMENT => 1,
                    EdgeKind::INTERNAL => 2,
                    EdgeKind::HIDDEN => 3,
                    _ => 4,
                };
                Some(((doubts, heap.distance(source), rank), edge))
            })
            .min_by(|(one, edge), (other, other_edge)| {
                one.cmp(other).then_with(|| self.in_order_of_names(*edge, *other_edge))
            })
            .map(|(_, edge)| edge)
    }

    /// Orders equally good edges by name, symbols last. Node numbers differ between runs and decide
    /// only between equal names.
    fn in_order_of_names(&self, one: u32, other: u32) -> Ordering {
        let heap = self.heap;
        let key = |edge: u32| match heap.edge_name(edge) {
            EdgeName::Index(index) => (false, index, Cow::Borrowed("")),
            EdgeName::Name(name) => (name.starts_with("<symbol"), 0, name),
        };
        let nodes = || (heap.source(one), one).cmp(&(heap.source(other), other));
        key(one).cmp(&key(other)).then_with(nodes)
    }
}
