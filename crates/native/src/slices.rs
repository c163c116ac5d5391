//! Large blocks of which only slices are used: beside each reference to them stands a length, and
//! all lengths together cover a small part.
//!
//! ```text
//!  view    | place | length |       also: length, place; place, owner, length (Python's views)
//!  handle  a reference to the block's start beside a view, which frees the block with the view
//!  owner   a small block with a reference, that only views refer to (Rust's Bytes)
//! ```
//! A number beside a reference may be no length. Therefore one of the views has to lead to the
//! inside, or the views have to have an owner, and the block itself has to have few references,
//! unlike an arena whose objects other blocks refer to.

use std::collections::{HashMap, HashSet};

use heapr_trace::{EdgeGrade, SlicedBlock};

use crate::block_map::{BlockMap, Hit};
use crate::scanned::Scanned;

/// Smallest size of a block that is judged.
const BLOCK_BYTES_MIN: u64 = 4096;
/// A block counts if less than this part of it is covered.
const COVERED_PART: u64 = 8;
/// Largest size of an owner.
const OWNER_BYTES_MAX: u64 = 256;
/// Largest distance of a view from the handle or the reference to the owner, in words.
const BESIDE_WORDS: u64 = 4;
/// Bytes of a block for each reference that it may have itself.
const BYTES_PER_EDGE: u64 = 512;
/// Largest offset of a reference that counts as one to the start: the lowest bits may be a tag.
const TAG_MAX: u64 = 7;
/// Largest number of references to a block that are stored: blocks with more are left out.
const PER_BLOCK_MAX: u32 = 4096;
/// Largest number of stored references.
const STORED_MAX: usize = 1 << 22;

/// Place in memory that holds a reference: a block or an area, and the number of the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Holder {
    Block(u32, u64),
    Area(u32, u64),
}

impl Holder {
    /// Distance of two places of the same holder, in words.
    fn distance(self, other: Self) -> Option<u64> {
        match (self, other) {
            (Self::Block(one, at), Self::Block(two, to)) if one == two => Some(at.abs_diff(to)),
            (Self::Area(one, at), Self::Area(two, to)) if one == two => Some(at.abs_diff(to)),
            _ => None,
        }
    }

    fn is_beside(self, other: Self) -> bool {
        self.distance(other).is_some_and(|words| words <= BESIDE_WORDS)
    }
}

/// Reference to a large block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reference {
    target: u32,
    holder: Holder,
    offset_bytes: u64,
    /// Length that stands beside it; 0: none.
    length_bytes: u64,
    /// Number of the edge or root, for its last grade.
    number: usize,
}

/// Gathers the references to large blocks during a scan.
#[derive(Debug, Default)]
pub(crate) struct SliceSearch {
    references: Vec<Reference>,
    counts: HashMap<u32, u32>,
    /// Blocks that are left out: a reference without a length leads to their inside.
    out: HashSet<u32>,
    /// References of a block to itself.
    own: HashMap<u32, u64>,
    is_full: bool,
}

impl SliceSearch {
    /// Notes a reference. `number` is that of its edge or root; `words` surround it at `at`.
    #[inline(always)]
    pub(crate) fn note(
        &mut self,
        map: &BlockMap,
        (holder, number): (Holder, usize),
        (hit, grade): (Hit, EdgeGrade),
        words: Option<(&[[u8; 8]], usize)>,
    ) {
        if map.size_bytes(hit.block as usize) >= BLOCK_BYTES_MIN {
            self.add(map, (holder, number), (hit, grade), words);
        }
    }

    /// Notes a reference that a block has to itself.
    #[inline(always)]
    pub(crate) fn note_own(&mut self, map: &BlockMap, block: u32) {
        if map.size_bytes(block as usize) >= BLOCK_BYTES_MIN {
            *self.own.entry(block).or_default() += 1;
        }
    }

    #[inline(never)]
    fn add(
        &mut self,
        map: &BlockMap,
        (holder, number): (Holder, usize),
        (hit, grade): (Hit, EdgeGrade),
        words: Option<(&[[u8; 8]], usize)>,
    ) {
        let Hit { block: target, offset_bytes } = hit;
        if self.is_full || self.out.contains(&target) {
            return;
        }
        let length = match grade {
            EdgeGrade::Start | EdgeGrade::Interior => {
                words.and_then(|(words, at)| length(map, hit, words, at)).unwrap_or(0)
            }
            _ => 0,
        };
        let count = self.counts.entry(target).or_default();
        *count += 1;
        if (length == 0 && offset_bytes > TAG_MAX) || *count > PER_BLOCK_MAX {
            self.out.insert(target);
            return;
        }
        self.is_full = self.references.len() >= STORED_MAX;
        self.references.push(Reference { target, holder, offset_bytes, length_bytes: length, number });
    }

    /// Judges the blocks, after the grades of all references are known.
    pub(crate) fn sliced(mut self, map: &BlockMap, found: &Scanned) -> Vec<SlicedBlock> {
        if self.is_full {
            return Vec::new();
        }
        let (out, own) = (&self.out, &self.own);
        let has_few_references = |block: u32| {
            let range = &found.first_edge[block as usize..=block as usize + 1];
            let edges = u64::from(range[1] - range[0]) + own.get(&block).copied().unwrap_or(0);
            edges <= map.size_bytes(block as usize) / BYTES_PER_EDGE
        };
        self.references
            .retain(|reference| !out.contains(&reference.target) && has_few_references(reference.target));
        self.references.sort_unstable_by_key(|reference| (reference.target, reference.holder));
        // Dead memory holds no view, and a base class or a counted string uses all of a block.
        let is_other = |reference: &Reference| {
            let grade = match reference.holder {
                Holder::Block(..) => found.grades[reference.number],
                Holder::Area(..) => found.roots[reference.number].grade,
            };
            !matches!(grade, EdgeGrade::Start | EdgeGrade::Interior | EdgeGrade::Tagged)
        };
        let groups: Vec<Group<'_>> = self
            .references
            .chunk_by(|one, other| one.target == other.target)
            .filter(|group| !group.iter().any(is_other))
            .filter_map(|group| Group::of(map, group))
            .collect();
        let wanted: HashSet<u32> = groups.iter().flat_map(|group| group.owners.iter().copied()).collect();
        let holders = holders_of(&wanted, found);
        groups.iter().filter_map(|group| group.sliced(map, &holders)).collect()
    }
}

/// Places that hold the references to some blocks.
fn holders_of(wanted: &HashSet<u32>, found: &Scanned) -> HashMap<u32, Vec<Holder>> {
    let mut holders: HashMap<u32, Vec<Holder>> = HashMap::new();
    if wanted.is_empty() {
        return holders;
    }
    for root in found.roots.iter().filter(|root| wanted.contains(&root.target)) {
        holders.entry(root.target).or_default().push(Holder::Area(root.area, root.offset_bytes / 8));
    }
    for block in 0..found.first_edge.len().saturating_sub(1) {
        for edge in found.first_edge[block] as usize..found.first_edge[block + 1] as usize {
            if wanted.contains(&found.targets[edge]) {
                let place = Holder::Block(block as u32, u64::from(found.slots[edge]));
                holders.entry(found.targets[edge]).or_default().push(place);
            }
        }
    }
    holders
}

/// References to one block, sorted out.
struct Group<'a> {
    target: u32,
    views: Vec<&'a Reference>,
    /// Small blocks with a reference that is no view.
    owners: Vec<u32>,
}

impl<'a> Group<'a> {
    /// Sorts out references; `None` if one of them is neither a view, a handle nor an owner's.
    fn of(map: &BlockMap, references: &'a [Reference]) -> Option<Self> {
        let target = references.first()?.target;
        let is_view = |reference: &Reference| {
            let whole_bytes = map.size_bytes(target as usize);
            reference.length_bytes > 0 && reference.length_bytes < whole_bytes / COVERED_PART
        };
        let (views, rest): (Vec<&Reference>, Vec<&Reference>) =
            references.iter().partition(|reference| is_view(reference));
        let mut owners = Vec::new();
        for reference in rest {
            if views.iter().any(|view| view.holder.is_beside(reference.holder)) {
                continue;
            }
            match reference.holder {
                Holder::Block(owner, _) if map.size_bytes(owner as usize) <= OWNER_BYTES_MAX => {
                    owners.push(owner);
                }
                _ => return None,
            }
        }
        (!views.is_empty()).then_some(Self { target, views, owners })
    }

    /// The block, if its owners belong to the views and the views cover little. `holders` are those
    /// of all owners.
    fn sliced(&self, map: &BlockMap, holders: &HashMap<u32, Vec<Holder>>) -> Option<SlicedBlock> {
        let is_beside_view = |place: &Holder| self.views.iter().any(|view| view.holder.is_beside(*place));
        let belongs =
            |owner: &u32| holders.get(owner).is_some_and(|places| places.iter().all(is_beside_view));
        if !self.owners.iter().all(belongs) {
            return None;
        }
        if self.owners.is_empty() && self.views.iter().all(|view| view.offset_bytes <= TAG_MAX) {
            return None;
        }
        let mut ranges: Vec<(u64, u64)> = self
            .views
            .iter()
            .map(|view| (view.offset_bytes, view.offset_bytes + view.length_bytes))
            .collect();
        ranges.sort_unstable();
        let (mut covered_bytes, mut until) = (0, 0);
        for (start, end) in ranges {
            covered_bytes += end.saturating_sub(start.max(until));
            until = until.max(end);
        }
        (covered_bytes < map.size_bytes(self.target as usize) / COVERED_PART).then_some(SlicedBlock {
            node: self.target,
            view_count: self.views.len() as u32,
            covered_bytes,
        })
    }
}

/// Length that stands beside a reference; of two the larger one.
fn length(map: &BlockMap, hit: Hit, words: &[[u8; 8]], at: usize) -> Option<u64> {
    let word = |at: Option<usize>| at.and_then(|at| words.get(at)).map(|word| u64::from_le_bytes(*word));
    let leads_there = |word: Option<u64>| {
        word.and_then(|word| map.find(word)).is_some_and(|other| other.block == hit.block)
    };
    let room_bytes = map.size_bytes(hit.block as usize).checked_sub(hit.offset_bytes)?;
    let fits = |word: Option<u64>| word.filter(|length| (1..=room_bytes).contains(length));
    let (before, next, second) = (word(at.checked_sub(1)), word(Some(at + 1)), word(Some(at + 2)));
    // Beside a reference to the inside, one to the start is a handle, and has no length.
    let is_start = hit.offset_bytes <= TAG_MAX;
    if leads_there(next) {
        return fits(second).filter(|_| !is_start);
    }
    if is_start && leads_there(before) {
        return None;
    }
    // The length before may be that of another reference, and a capacity may follow the length.
    let before = fits(before).filter(|_| !leads_there(word(at.checked_sub(2))));
    match fits(next) {
        Some(next) => Some(next.max(before.unwrap_or(0)).max(fits(second).unwrap_or(0))),
        None => before,
    }
}

#[cfg(test)]
mod tests;
