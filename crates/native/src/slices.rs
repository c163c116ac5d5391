//! Large blocks of which only slices are used: beside each reference to them stands a length, and
//! all lengths together cover a small part.
//!
//! ```text
//!  view    | place | length |       also: length, place; place, owner, length (Python's views)
//!  handle  a reference to the block's start beside a view, which frees the block with the view
//!  owner   a small block with a reference, that only views refer to (Rust's Bytes)
//! ```
//! A number beside a reference may be no length. Therefore one of the views has to lead to the
//! inside, or the views have to have an owner. The block itself also has to have few references,
//! unlike an arena whose objects other blocks refer to. What stands around a reference also shows
//! what is no view:
//! * a cursor beside a capacity
//! * two places of one block side by side
//! * what is left of an arena
//! * the control bytes of a hash table beside its mask
//! * an array beside the number of its items or dimensions

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

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
/// Least of the largest length of a block's views: smaller numbers are counts, or flags.
const LENGTH_BYTES_MIN: u64 = 8;
/// Sizes of an item with which a number beside a block's start is that of the items of all of it.
const ITEM_BYTES: RangeInclusive<u64> = 9..=128;
/// Number of words before and behind a reference among which a capacity is looked for.
const CAPACITY_WORDS: usize = 3;
/// Bytes of Rust's hash tables behind the control byte of the last place, without and with SSE2.
const TABLE_GROUP_BYTES: [u64; 2] = [8, 16];
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
    /// Whether another number follows the length: both may be dimensions.
    has_second: bool,
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
                words.and_then(|(words, at)| length(map, hit, words, at)).unwrap_or_default()
            }
            _ => Length::default(),
        };
        let count = self.counts.entry(target).or_default();
        *count += 1;
        if (length.bytes == 0 && offset_bytes > TAG_MAX) || *count > PER_BLOCK_MAX {
            self.out.insert(target);
            return;
        }
        self.is_full = self.references.len() >= STORED_MAX;
        if self.is_full {
            self.references = Vec::new();
            return;
        }
        let Length { bytes: length_bytes, has_second } = length;
        self.references.push(Reference { target, holder, offset_bytes, length_bytes, has_second, number });
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
    /// In the order of their places.
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
            if is_beside_one(&views, reference.holder) {
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
        let is_beside_view = |place: &Holder| is_beside_one(&self.views, *place);
        let belongs =
            |owner: &u32| holders.get(owner).is_some_and(|places| places.iter().all(is_beside_view));
        if !self.owners.iter().all(belongs) {
            return None;
        }
        let is_at_start = self.views.iter().all(|view| view.offset_bytes <= TAG_MAX);
        if is_at_start && (self.owners.is_empty() || self.views.iter().any(|view| view.has_second)) {
            return None;
        }
        if self.views.iter().all(|view| view.length_bytes < LENGTH_BYTES_MIN) {
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

/// Whether a place is beside one of some views, which are in the order of their places.
fn is_beside_one(views: &[&Reference], place: Holder) -> bool {
    let (before, behind) = views.split_at(views.partition_point(|view| view.holder < place));
    before.last().into_iter().chain(behind.first()).any(|view| view.holder.is_beside(place))
}

/// Length that stands beside a reference; the default stands for no length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Length {
    bytes: u64,
    /// Whether another number follows that would fit, too.
    has_second: bool,
}

/// Length that stands beside a reference; of two the larger one.
fn length(map: &BlockMap, hit: Hit, words: &[[u8; 8]], at: usize) -> Option<Length> {
    let word = |at: Option<usize>| at.and_then(|at| words.get(at)).map(|word| u64::from_le_bytes(*word));
    let led_to = |word: Option<u64>| {
        let other = word.and_then(|word| map.find(word))?;
        (other.block == hit.block).then_some(other.offset_bytes)
    };
    let whole_bytes = map.size_bytes(hit.block as usize);
    let room_bytes = whole_bytes.checked_sub(hit.offset_bytes)?;
    let fits = |word: Option<u64>| word.filter(|length| (1..=room_bytes).contains(length));
    let (before, next, second) = (word(at.checked_sub(1)), word(Some(at + 1)), word(Some(at + 2)));
    let (led_before, led_next) = (led_to(before), led_to(next));
    // Beside a reference to the inside, one to the start is a handle, and has no length.
    let is_start = hit.offset_bytes <= TAG_MAX;
    if is_start && (led_before.is_some() || led_next.is_some()) {
        return None;
    }
    let is_inside = |offset: Option<u64>| offset.is_some_and(|offset| offset > TAG_MAX);
    let is_mask = |number: Option<u64>| number.is_some_and(|number| is_mask_of_table(number, room_bytes));
    let near = &words[at.saturating_sub(CAPACITY_WORDS)..words.len().min(at + CAPACITY_WORDS + 1)];
    let has_capacity = near.iter().any(|word| u64::from_le_bytes(*word) == whole_bytes);
    let is_table = is_mask(before) || is_mask(next);
    if !is_start && (is_inside(led_before) || is_inside(led_next) || is_table || has_capacity) {
        return None;
    }
    // The length before may be that of another reference, and a capacity may follow the length.
    let before = fits(before).filter(|_| led_to(word(at.checked_sub(2))).is_none());
    let has_second = fits(next).is_some() && fits(second).is_some();
    let bytes = match (led_next, fits(next)) {
        (Some(_), _) => fits(second)?,
        (None, Some(next)) => next.max(before.unwrap_or(0)).max(fits(second).unwrap_or(0)),
        (None, None) => before?,
    };
    let is_rest_of_arena = bytes == room_bytes && (led_before.is_some() || led_next.is_some());
    let is_count_of_all = whole_bytes.is_multiple_of(bytes) && ITEM_BYTES.contains(&(whole_bytes / bytes));
    let is_other = if is_start { is_count_of_all } else { is_rest_of_arena };
    (!is_other).then_some(Length { bytes, has_second })
}

/// Whether a number is the mask of a hash table of Rust to whose control bytes a reference leads.
/// Each place has one control byte, and they end with the block.
fn is_mask_of_table(number: u64, room_bytes: u64) -> bool {
    let group_bytes = room_bytes.checked_sub(number).and_then(|rest| rest.checked_sub(1));
    group_bytes.is_some_and(|bytes| TABLE_GROUP_BYTES.contains(&bytes)) && (number + 1).is_power_of_two()
}

#[cfg(test)]
mod tests;
