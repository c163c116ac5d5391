//! Names of references: the fields of the objects' classes.

use rustc_hash::FxHashMap;

use super::assembly::Assembly;
use super::slots::{Classes, Slot, places};
use super::walk::Walk;

/// Names of references of objects by their types.
pub(super) struct FieldNames<'a> {
    classes: Classes<'a>,
    walk: &'a Walk,
    slots: FxHashMap<u64, Option<Vec<Slot>>>,
    /// Answers to whether an object of a type can stand in a place of another one.
    fitting: FxHashMap<(u64, u32, u64), bool>,
    /// Objects whose references are of no order that their class could have.
    pub(super) contradictions: u64,
}

impl<'a> FieldNames<'a> {
    pub(super) fn of(assemblies: &'a [Assembly], walk: &'a Walk) -> Self {
        Self {
            classes: Classes::of(assemblies, walk),
            walk,
            slots: FxHashMap::default(),
            fitting: FxHashMap::default(),
            contradictions: 0,
        }
    }

    /// Calls `take` with the name of each reference of an object of a type, in order.
    pub(super) fn names(&mut self, id: u64, targets: &[u64], mut take: impl FnMut(Option<&str>)) {
        let (classes, walk) = (&self.classes, self.walk);
        let slots = self.slots.entry(id).or_insert_with(|| classes.slots(walk, id));
        let Some(slots) = slots else { return targets.iter().for_each(|_| take(None)) };
        let slots = &*slots;
        let fitting = &mut self.fitting;
        let fits = |slot: usize, target: u64| {
            *fitting
                .entry((id, slot as u32, target))
                .or_insert_with(|| classes.fits(walk, slots[slot].wanted, target))
        };
        let found = places(slots, targets, fits);
        self.contradictions += u64::from(found.is_none());
        let found = found.unwrap_or_else(|| vec![None; targets.len()]);
        found.into_iter().for_each(|place| take(place.map(|place| &*slots[place].name)));
    }
}
