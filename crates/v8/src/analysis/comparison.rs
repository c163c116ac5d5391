//! Differences between two snapshots of a process, by class.
//!
//! Two objects are the same if their ids are equal, as in DevTools. Ids of two different numberings
//! would pair unrelated objects. Then objects are matched by their position in the graph
//! ([`crate::analysis::Matching`]). Heaps in which nothing moves are matched by address.

use heapr_table::SortRows as _;
use rustc_hash::FxHashMap;

use super::matching::{MatchedBy, Matching, NOT_THERE, Numbering};
use crate::devtools::{Heap, Population};
use crate::objects::Class;

/// Difference of one class between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassDifference {
    /// The class.
    pub class: Class,
    /// Number of objects that only the second snapshot has.
    pub new_count: u64,
    /// Number of objects that only the first snapshot has.
    pub deleted_count: u64,
    /// Bytes of the new objects.
    pub new_bytes: u64,
    /// Bytes of the deleted objects.
    pub deleted_bytes: u64,
    /// Number of objects at the address of an earlier one of their class that have nothing of its
    /// contents. They are others, or the same with other contents.
    pub refilled_count: u64,
}

impl ClassDifference {
    /// New minus deleted objects.
    pub fn count_delta(&self) -> i64 {
        self.new_count as i64 - self.deleted_count as i64
    }

    /// New minus deleted bytes.
    pub fn bytes_delta(&self) -> i64 {
        self.new_bytes as i64 - self.deleted_bytes as i64
    }
}

/// Difference between two snapshots: all classes that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Changed classes, by descending growth in bytes, then by name.
    pub classes: Vec<ClassDifference>,
    /// Number of objects that both snapshots have.
    pub kept_count: u64,
    /// Number of those of which address and class alone say so. 0 where ids are never given again.
    pub by_address_count: u64,
    /// Method by which objects were matched.
    pub matched_by: MatchedBy,
    /// True if the ids show that the second snapshot is the older one.
    pub is_reversed: bool,
}

impl Comparison {
    /// Whether contents tell some objects from others at their addresses. A count of 0 of other
    /// contents would say too much where none tell anything, as in heaps of Ruby.
    pub fn do_contents_tell(&self) -> bool {
        self.matched_by == MatchedBy::Address && self.by_address_count < self.kept_count
    }
}

/// Object that only one of two snapshots has, as a node of that snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectDifference {
    /// A node of the second snapshot.
    New(u32),
    /// A node of the first snapshot.
    Deleted(u32),
}

/// Compares two snapshots: by ids if both use one numbering, else by their graphs. The first is
/// classified by the interfaces of the second, as in DevTools.
pub fn compare(before: &Heap, after: &Heap) -> Comparison {
    let new = Population::of(after, None);
    let old = Population::of(before, Some(new.interfaces()));
    compare_by_id(&old, &new).unwrap_or_else(|| compare_by_graph(before, after))
}

/// Compares two snapshots by their ids, as DevTools does, even if these are of two numberings.
pub fn compare_as_devtools(before: &Heap, after: &Heap) -> Comparison {
    let new = Population::of(after, None);
    let old = Population::of(before, Some(new.interfaces()));
    let numbering = Numbering::of(&old, &new);
    Differences::of(&old, &new, |node| numbering.earlier(new.id(node))).comparison(MatchedBy::Id)
}

/// Compares two populations by their ids. Returns `None` if the ids are of two numberings, or are
/// addresses. `before` must be classified by the interfaces of `after`.
pub fn compare_by_id(before: &Population, after: &Population) -> Option<Comparison> {
    if !before.is_numbered() || !after.is_numbered() {
        return None;
    }
    let numbering = Numbering::of(before, after);
    if !numbering.is_one() {
        return None;
    }
    Some(Differences::of(before, after, |node| numbering.earlier(after.id(node))).comparison(MatchedBy::Id))
}

/// Compares two snapshots by the addresses of their objects, or by their positions in the graph.
pub fn compare_by_graph(before: &Heap, after: &Heap) -> Comparison {
    let new = Population::of(after, None);
    let old = Population::of(before, Some(new.interfaces()));
    let matching = Matching::by_graph(before, after);
    let earlier_of = |node: u32| Some(matching.earlier[node as usize]).filter(|&node| node != NOT_THERE);
    let mut differences = Differences::of(&old, &new, earlier_of);
    if let (MatchedBy::Address, Some(dialect)) = (matching.matched_by, &after.snapshot().meta().dialect) {
        differences.refilled = matching.refilled(before, after);
        let is_by_address = |&node: &u32| !dialect.is_told_by_contents(new.id(node));
        let kept = (0..new.node_count()).filter(|&node| differences.is_kept_after[node as usize]);
        differences.by_address_count = kept.filter(is_by_address).count() as u64;
    }
    differences.comparison(matching.matched_by)
}

/// Returns the objects of a class that only one of the snapshots has, ordered by id.
pub fn compare_class(
    before: &Heap,
    after: &Heap,
    matched_by: MatchedBy,
    class: &Class,
) -> Vec<ObjectDifference> {
    let new = Population::of(after, None);
    let old = Population::of(before, Some(new.interfaces()));
    let differences = match matched_by {
        MatchedBy::Id => {
            let numbering = Numbering::of(&old, &new);
            Differences::of(&old, &new, |node| numbering.earlier(new.id(node)))
        }
        MatchedBy::Address | MatchedBy::Place => {
            let earlier = Matching::by_graph(before, after).earlier;
            Differences::of(&old, &new, |node| Some(earlier[node as usize]).filter(|&node| node != NOT_THERE))
        }
    };
    let deleted =
        differences.deleted(class).into_iter().map(|node| (old.id(node), ObjectDifference::Deleted(node)));
    let came = differences.came(class).into_iter().map(|node| (new.id(node), ObjectDifference::New(node)));
    let mut objects: Vec<(u64, ObjectDifference)> = deleted.chain(came).collect();
    objects.sort_by_key(|&(id, _)| id);
    objects.into_iter().map(|(_, object)| object).collect()
}

/// Marks of the objects that both snapshots have.
struct Differences<'a> {
    before: &'a Population,
    after: &'a Population,
    /// Classes of both snapshots, by common number.
    classes: Vec<&'a Class>,
    of_before: Vec<u32>,
    of_after: Vec<u32>,
    is_kept_before: Vec<bool>,
    is_kept_after: Vec<bool>,
    /// Nodes of the later snapshot that have nothing of the contents of the earlier ones.
    refilled: Vec<u32>,
    by_address_count: u64,
}

impl<'a> Differences<'a> {
    /// Marks objects as common if they have a partner of the same class and both have self sizes
    /// above 0.
    fn of(before: &'a Population, after: &'a Population, earlier_of: impl Fn(u32) -> Option<u32>) -> Self {
        let mut classes: Vec<&Class> = Vec::new();
        let mut numbers: FxHashMap<&Class, u32> = FxHashMap::default();
        let mut number_all = |all: &'a [Class]| -> Vec<u32> {
            all.iter()
                .map(|class| {
                    *numbers.entry(class).or_insert_with(|| {
                        classes.push(class);
                        classes.len() as u32 - 1
                    })
                })
                .collect()
        };
        let (of_before, of_after) = (number_all(before.classes()), number_all(after.classes()));
        let mut is_kept_before = vec![false; before.node_count() as usize];
        let mut is_kept_after = vec![false; after.node_count() as usize];
        for node in (0..after.node_count()).filter(|&node| after.self_bytes(node) != 0) {
            let Some(earlier) = earlier_of(node) else { continue };
            let is_same =
                of_before[before.class_of(earlier) as usize] == of_after[after.class_of(node) as usize];
            if is_same && before.self_bytes(earlier) != 0 && !is_kept_before[earlier as usize] {
                is_kept_before[earlier as usize] = true;
                is_kept_after[node as usize] = true;
            }
        }
        let (refilled, by_address_count) = (Vec::new(), 0);
        Self {
            before,
            after,
            classes,
            of_before,
            of_after,
            is_kept_before,
            is_kept_after,
            refilled,
            by_address_count,
        }
    }

    fn comparison(self, matched_by: MatchedBy) -> Comparison {
        let none = |class: &&Class| ClassDifference {
            class: (*class).clone(),
            new_count: 0,
            deleted_count: 0,
            new_bytes: 0,
            deleted_bytes: 0,
            refilled_count: 0,
        };
        let mut all: Vec<ClassDifference> = self.classes.iter().map(none).collect();
        for node in (0..self.before.node_count()).filter(|&node| !self.is_kept_before[node as usize]) {
            let bytes = self.before.self_bytes(node);
            if bytes != 0 {
                let line = &mut all[self.of_before[self.before.class_of(node) as usize] as usize];
                line.deleted_count += 1;
                line.deleted_bytes = line.deleted_bytes.saturating_add(bytes);
            }
        }
        let mut kept_count = 0;
        for node in 0..self.after.node_count() {
            let bytes = self.after.self_bytes(node);
            if self.is_kept_after[node as usize] {
                kept_count += 1;
            } else if bytes != 0 {
                let line = &mut all[self.of_after[self.after.class_of(node) as usize] as usize];
                line.new_count += 1;
                line.new_bytes = line.new_bytes.saturating_add(bytes);
            }
        }
        for &node in self.refilled.iter().filter(|&&node| self.is_kept_after[node as usize]) {
            all[self.of_after[self.after.class_of(node) as usize] as usize].refilled_count += 1;
        }
        all.retain(|class| class.new_count + class.deleted_count + class.refilled_count > 0);
        all.sort_rows_by(|left, right| {
            right.bytes_delta().cmp(&left.bytes_delta()).then_with(|| left.class.cmp(&right.class))
        });
        let is_reversed = matched_by == MatchedBy::Id && self.before.max_js_id() > self.after.max_js_id();
        Comparison {
            classes: all,
            kept_count,
            by_address_count: self.by_address_count,
            matched_by,
            is_reversed,
        }
    }

    fn deleted(&self, class: &Class) -> Vec<u32> {
        only(self.before, &self.is_kept_before, class)
    }

    fn came(&self, class: &Class) -> Vec<u32> {
        only(self.after, &self.is_kept_after, class)
    }
}

/// Returns the objects of a class that the other snapshot lacks.
fn only(population: &Population, is_kept: &[bool], class: &Class) -> Vec<u32> {
    let Some(wanted) = population.classes().iter().position(|known| known == class) else {
        return Vec::new();
    };
    (0..population.node_count())
        .filter(|&node| population.class_of(node) as usize == wanted)
        .filter(|&node| population.self_bytes(node) != 0 && !is_kept[node as usize])
        .collect()
}
