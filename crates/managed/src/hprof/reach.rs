//! Objects that no root holds: rows for those that only soft references or finalizers keep, and for
//! garbage that the collector has not come to.

use heapr_v8::{EdgeKind, NodeKind};
use rustc_hash::FxHashMap;

use super::classes::Reference;
use super::graph::Objects;
use super::rows::{GARBAGE, Row};

/// Objects that are led to.
struct Reached<'a> {
    objects: &'a Objects<'a>,
    /// A bit for each object: most are looked at in no order, and so few bytes stay at hand.
    is_reached: Vec<u64>,
    pending: Vec<u32>,
    /// Targets of references of `java.lang.ref` that are looked at, by reference.
    referents: FxHashMap<u32, u32>,
    /// Targets of such references that were marked.
    next: Vec<u32>,
}

impl Reached<'_> {
    /// Marks an object and all that it holds. Returns whether it was not marked before.
    fn mark(&mut self, first: u32) -> bool {
        if !enter(&mut self.is_reached, first) {
            return false;
        }
        self.pending.push(first);
        while let Some(node) = self.pending.pop() {
            if !self.referents.is_empty() {
                self.next.extend(self.referents.remove(&node));
            }
            for edge in self.objects.edges(node) {
                let target = self.objects.targets[edge];
                if self.objects.edge_kinds[edge] != EdgeKind::WEAK && enter(&mut self.is_reached, target) {
                    self.pending.push(target);
                }
            }
        }
        true
    }

    fn is_reached(&self, node: u32) -> bool {
        self.is_reached[node as usize / 64] >> (node % 64) & 1 == 1
    }

    /// Marks what references of a kind hold; what they hold may have such references itself.
    fn mark_held_by(&mut self, kind: Reference) -> Vec<u32> {
        let of_kind = self.objects.referents.iter().filter(|(known, ..)| *known == kind);
        self.referents = of_kind.map(|&(_, holder, target)| (holder, target)).collect();
        let mut reached: Vec<u32> =
            self.referents.keys().copied().filter(|&holder| self.is_reached(holder)).collect();
        reached.sort_unstable();
        self.next = reached.iter().filter_map(|holder| self.referents.remove(holder)).collect();
        let mut held = Vec::new();
        while let Some(target) = self.next.pop() {
            if self.mark(target) {
                held.push(target);
            }
        }
        held
    }
}

/// Sets the bit of an object. Returns whether it was not set before.
#[inline]
fn enter(bits: &mut [u64], node: u32) -> bool {
    let (word, bit) = (&mut bits[node as usize / 64], 1 << (node % 64));
    let is_new = *word & bit == 0;
    *word |= bit;
    is_new
}

/// Adds rows for what the rows of roots do not hold. Returns the edges that hold nothing, because
/// they are of objects that nothing leads to.
pub(super) fn add_unreached(objects: &Objects<'_>, rows: &mut Vec<Row>) -> Vec<usize> {
    let count = objects.class_of.len();
    let mut reached = Reached {
        objects,
        is_reached: vec![0; count.div_ceil(64)],
        pending: Vec::new(),
        referents: FxHashMap::default(),
        next: Vec::new(),
    };
    for &(_, _, target) in rows.iter().flat_map(|row| &row.edges) {
        reached.mark(target);
    }
    for (kind, name) in [
        (Reference::Soft, "(held by soft references alone)"),
        (Reference::Final, "(waiting for their finalizers)"),
    ] {
        let held = reached.mark_held_by(kind);
        push(rows, name, NodeKind::SYNTHETIC, held);
    }
    let unreached = (0..count as u32).filter(|&node| !reached.is_reached(node));
    let idle = unreached.flat_map(|node| objects.edges(node));
    let idle = idle.filter(|&edge| reached.is_reached(objects.targets[edge])).collect();
    push(rows, GARBAGE, NodeKind::NATIVE, garbage(&mut reached));
    idle
}

fn push(rows: &mut Vec<Row>, name: &str, kind: NodeKind, items: Vec<u32>) {
    if !items.is_empty() {
        rows.push(Row::of_items(name, kind, items));
    }
}

/// Returns garbage that no other garbage refers to, then an object of each circle.
fn garbage(reached: &mut Reached<'_>) -> Vec<u32> {
    let objects = reached.objects;
    let count = objects.class_of.len() as u32;
    let mut is_held = vec![false; count as usize];
    for node in (0..count).filter(|&node| !reached.is_reached(node)) {
        for edge in objects.edges(node).filter(|&edge| objects.edge_kinds[edge] != EdgeKind::WEAK) {
            is_held[objects.targets[edge] as usize] = true;
        }
    }
    let mut found = Vec::new();
    for holds_circles in [false, true] {
        for node in 0..count {
            if (holds_circles || !is_held[node as usize]) && reached.mark(node) {
                found.push(node);
            }
        }
    }
    found
}
