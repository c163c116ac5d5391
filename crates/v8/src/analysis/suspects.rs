//! Suspected leaks: objects that grow from snapshot to snapshot, and their holders.
//!
//! The rank follows owners, not classes: a class says what accumulates, its owner says who holds
//! it. Nodes that appeared since the first snapshot (minus those that disappeared) are added up at
//! the nearest dominator that existed before. If the nodes are in two collections, that dominator
//! is only their common ancestor. Then they are added up at the old collection that refers to most
//! of them. Owners of one kind (the `messages` of all rooms) make one suspect.
//!
//! Objects that the engine makes for itself (code, hidden classes, feedback) are not counted.
//! One-time growth (a module that is loaded late) ranks low, because it adds few objects of many
//! classes. With three or more snapshots it also ranks low because the growth does not continue.

mod chains;
mod growth;
mod holders;
mod late_owners;
mod lost_entries;
mod own_bytes;
mod ownership;
mod passing_nodes;
mod ranking;
mod threads;
mod timers;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::classes::{Classes, Names};
use super::heap_view::HeapView;
use super::matching::{MatchedBy, Matching, NOT_THERE};
use super::naming::Naming;
use super::path::PathStep;
use super::retaining_paths::path_from_root;
use super::scripts::Place;
use crate::CallFunction;
use growth::{Growth, Holding};
use lost_entries::LostEntries;
use ownership::Ownership;
pub(super) use ownership::is_collection;
use ranking::Group;

/// Owner that grew, or a group of owners of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// Name: `MemoryStore.sessions`, `blowingUp (variable in /srv/app.js)`.
    pub name: String,
    /// Number of owners; more than one when many objects of a kind grew.
    pub owner_count: u64,
    /// Id of the owner that grew most.
    pub owner_id: u64,
    /// Class of that owner.
    pub owner_class: String,
    /// Source location where the named object was constructed, or where the variable belongs.
    pub place: Option<Place>,
    /// Bytes that appeared minus bytes that disappeared, from the first snapshot to the last.
    pub growth_bytes: i64,
    /// Objects that appeared minus objects that disappeared.
    pub growth_count: i64,
    /// Growth in bytes since the first snapshot, at each later one.
    pub growth_bytes_at: Vec<i64>,
    /// Bytes that the owner retained in each snapshot; `None` where it did not exist.
    pub retained_bytes_at: Vec<Option<u64>>,
    /// Classes of the gained objects, most bytes first.
    pub collects: Vec<Collected>,
    /// Other old holders of the same objects: clearing only one of them frees nothing.
    pub also_held_by: Vec<String>,
    /// Path from a root down to the owner that grew most.
    pub path: Vec<PathStep>,
    /// Confidence that the suspect is a leak.
    pub confidence: Confidence,
    /// Reasons for the confidence, in words.
    pub reasons: Vec<String>,
}

impl Suspect {
    /// Growth in bytes from each snapshot to the next.
    pub fn growth_by_interval(&self) -> impl Iterator<Item = i128> {
        let before = std::iter::once(0).chain(self.growth_bytes_at.iter().copied());
        self.growth_bytes_at.iter().zip(before).map(|(at, before)| i128::from(*at) - i128::from(before))
    }
}

/// Class of objects that a suspect gained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collected {
    /// Name of the class.
    pub class: String,
    /// Number of gained objects.
    pub count: i64,
    /// Sum of the gained objects' self sizes, in bytes.
    pub bytes: i64,
    /// Id of one of them.
    pub example_id: Option<u64>,
    /// Beginning of the example's text, if it is a string.
    pub example_text: Option<String>,
    /// Function or constructor of the program in the example, and its source location.
    pub example_place: Option<(String, Place)>,
    /// Functions that allocated the example, innermost first. Empty without an allocation trace.
    pub example_allocated_by: Vec<CallFunction>,
}

/// Likelihood that a suspect is a leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Confidence {
    /// The owner grew; no more is known.
    Low,
    /// The owner collects many of a kind, or belongs to the program and grew.
    Medium,
    /// The owner belongs to the program, collects many of a kind, and (given three or more
    /// snapshots) grows in every interval.
    High,
}

/// Reason to doubt a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Doubt {
    /// Few objects are in both snapshots: they are of different programs or threads.
    OtherProgram {
        /// Index of the later snapshot, from 0.
        snapshot: usize,
        /// Share of the first snapshot's nodes that the later one has, in percent.
        kept_percent: u32,
    },
    /// The ids are of another numbering: the snapshots were taken over two connections or of two
    /// processes. Objects were matched by position.
    OtherNumbering {
        /// Index of the later snapshot, from 0.
        snapshot: usize,
    },
    /// The snapshot is older than the first: they are given in the wrong order.
    WrongOrder {
        /// Index of the later snapshot, from 0.
        snapshot: usize,
    },
    /// The last snapshot lacks references from Maps and Sets to their entries, as in files of Bun.
    /// The sizes of tables show the holder of the entries.
    EntriesMissing {
        /// Index of the later snapshot, from 0.
        snapshot: usize,
    },
    /// One of the snapshots shows V8's internal objects and the other does not.
    OtherCaptureMode {
        /// Index of the later snapshot, from 0.
        snapshot: usize,
    },
}

/// Suspects of two or more snapshots, and doubts about them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suspects {
    /// Suspects, the likeliest first.
    pub suspects: Vec<Suspect>,
    /// Reasons to doubt all of the suspects.
    pub doubts: Vec<Doubt>,
    /// Bytes that appeared minus bytes that disappeared in total, without code and hidden classes.
    pub growth_bytes: i64,
    /// Words for what the growth leaves out, if it leaves anything out.
    pub left_out: Option<String>,
}

/// Least share of nodes that snapshots of one program have in common, in percent.
const LEAST_KEPT_PERCENT: u32 = 20;

/// Ranks the owners that grew from the first of `heaps` to the last. Returns at most `top`
/// suspects.
///
/// Returns no suspects for fewer than two heaps.
pub fn suspects<H: HeapView>(heaps: &[&H], top: usize) -> Suspects {
    let mut found = Suspects { suspects: Vec::new(), doubts: Vec::new(), growth_bytes: 0, left_out: None };
    let ([first, .., last], true) = (heaps, heaps.len() >= 2) else { return found };
    found.left_out = last.meta().language().left_out().map(str::to_owned);
    let naming = Naming::of(*last);
    let mut names = Names::default();
    let whole = Matching::of(*first, *last).with_successors(*first, *last);
    let mut late = owners_since(*first, *last, &whole, &mut names);
    // Each snapshot is matched with the last, so that an owner has one number in all of them: its
    // node in the last snapshot.
    let mut with_last = vec![whole];
    for later in &heaps[1..heaps.len() - 1] {
        with_last.push(Matching::of(*later, *last).with_successors(*later, *last));
    }
    with_last.push(Matching::identity(last.graph().node_count()));
    // An owner newer than the last but one snapshot has nothing to compare with. It would take over
    // what its holder gained before. Matching by position cannot show this.
    if let [_, .., before_last, _] = &with_last[..]
        && before_last.matched_by != MatchedBy::Place
    {
        late.retain(|&node| before_last.earlier[node as usize] != NOT_THERE);
    }
    let mut series = Vec::new();
    for (number, later) in heaps.iter().enumerate().skip(1) {
        let is_last = number + 1 == heaps.len();
        let owned;
        let with_first = if is_last {
            &with_last[0]
        } else {
            owned = Matching::of(*first, *later).with_successors(*first, *later);
            &owned
        };
        found.doubts.extend(doubts(*first, *later, with_first, number));
        let to_last = &with_last[number];
        let late: FxHashSet<u32> = late
            .iter()
            .map(|&node| to_last.earlier[node as usize])
            .filter(|&node| node != NOT_THERE)
            .collect();
        let mut classes = Classes::of(*later);
        let ownership = Ownership::of(*later, &with_first.earlier, &late, &mut classes, &mut names);
        let mut growth = growth::growth_between(*first, *later, with_first, &late, &ownership, &mut names);
        holders::move_to_holders((*first, *later), with_first, &mut growth, &mut names);
        chains::move_to_lists(*later, &ownership, &mut growth, &mut names);
        let of_last: FxHashMap<Holding, Growth> = growth
            .into_iter()
            .filter_map(|(holding, growth)| {
                let owner = to_last.later[holding.owner as usize];
                (owner != NOT_THERE).then_some((Holding { owner, ..holding }, growth))
            })
            .collect();
        series.push(of_last);
    }
    found.growth_bytes = series.last().map_or(0, |all| all.values().map(|growth| growth.bytes).sum());
    let lost = series.last().and_then(|all| LostEntries::of(*first, *last, &with_last[0], all));
    if let Some(lost) = &lost {
        found.doubts.push(Doubt::EntriesMissing { snapshot: heaps.len() - 1 });
        for growth in &mut series {
            lost.move_to_holder(last.dominators().root(), growth);
        }
    }
    let mut groups = ranking::ranked_groups(*last, &naming, &names, &series, top);
    for group in
        groups.iter_mut().filter(|group| lost.as_ref().is_some_and(|it| it.holder == Some(group.owner)))
    {
        group
            .reasons
            .push("is told by the size of its table: the file has no references to its entries".to_owned());
    }
    found.suspects =
        groups.into_iter().map(|group| finished(heaps, &with_last, &naming, &names, group)).collect();
    found
}

fn doubts<H: HeapView>(first: &H, later: &H, matching: &Matching, snapshot: usize) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let kept_percent = matching.kept_percent();
    if kept_percent < LEAST_KEPT_PERCENT {
        doubts.push(Doubt::OtherProgram { snapshot, kept_percent });
    } else if matching.matched_by == MatchedBy::Place && !first.meta().objects_move() {
        doubts.push(Doubt::OtherNumbering { snapshot });
    } else if matching.is_reversed {
        doubts.push(Doubt::WrongOrder { snapshot });
    }
    if first.shows_internals() != later.shows_internals() {
        doubts.push(Doubt::OtherCaptureMode { snapshot });
    }
    doubts
}

/// Returns the owners that appeared after the first snapshot, as nodes of the last. All comparisons
/// use this set, so that their growth adds up.
fn owners_since<H: HeapView>(first: &H, last: &H, matching: &Matching, names: &mut Names) -> FxHashSet<u32> {
    let mut classes = Classes::of(last);
    let ownership = Ownership::of(last, &matching.earlier, &FxHashSet::default(), &mut classes, names);
    let before = late_owners::Before { heap: first, of_later: &matching.earlier };
    late_owners::late_owners(last, &before, &ownership, &mut classes, names)
}

fn finished<H: HeapView>(
    heaps: &[&H],
    with_last: &[Matching],
    naming: &Naming<'_, H>,
    names: &Names,
    group: Group,
) -> Suspect {
    let last = naming.heap();
    let owner = group.owner;
    let collects = group.collected(last, naming, names);
    // The callback that the runtime will call says more than the runtime's own location.
    let runtime_place = group.place.clone();
    let place = group
        .place
        .filter(|place| !place.is_of_the_runtime())
        .or_else(|| collects.iter().find_map(|collected| Some(collected.example_place.as_ref()?.1.clone())));
    let retained_bytes_at = heaps
        .iter()
        .zip(with_last)
        .map(|(heap, to_last)| match to_last.earlier[owner as usize] {
            NOT_THERE => None,
            node => Some(heap.retained_bytes(node)),
        })
        .collect();
    Suspect {
        name: group.name,
        owner_count: group.owner_count,
        owner_id: last.id(owner),
        owner_class: naming.own_name(owner),
        place: place.or(runtime_place),
        growth_bytes: group.growth.bytes,
        growth_count: group.count,
        growth_bytes_at: group.series,
        retained_bytes_at,
        collects,
        also_held_by: group.also_held_by.iter().map(|&node| naming.call(node).text).collect(),
        path: path_from_root(last, naming, owner),
        confidence: group.confidence,
        reasons: group.reasons,
    }
}
