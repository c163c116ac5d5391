//! Which objects grow from snapshot to snapshot, and who holds them.
//!
//! The rank follows owners, not classes: a class that grew says what is kept, its owner says who
//! keeps it. Nodes that came since the first snapshot (minus those that went) are added up at the
//! nearest object above them in the dominator tree that was there before; if that object is only
//! their common ancestor (they are in two collections at once), at the old collection that refers
//! to most of them. Owners of one kind (the `messages` of all rooms) make one suspect.
//!
//! What the engine makes for itself (code, hidden classes, feedback) is not counted. What happens
//! once (a module that is loaded late) ranks low, because it gains few objects of many classes;
//! with three or more snapshots also because it does not go on.

mod chains;
mod growth;
mod holders;
mod late_owners;
mod lost_entries;
mod own_bytes;
mod ownership;
mod ranking;
mod timers;

use rustc_hash::{FxHashMap, FxHashSet};

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
use ranking::Group;

/// An owner that grew, or a group of owners of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// What to call it: `MemoryStore.sessions`, `blowingUp (variable in /srv/app.js)`.
    pub name: String,
    /// How many owners there are; more than one when many objects of a kind grew.
    pub owner_count: u64,
    /// The owner that grew most, by id.
    pub owner_id: u64,
    /// Its class.
    pub owner_class: String,
    /// Where the object was constructed that the name begins with, or where the variable belongs.
    pub place: Option<Place>,
    /// Bytes that came minus bytes that went, from the first snapshot to the last.
    pub growth_bytes: i64,
    /// Objects that came minus objects that went.
    pub growth_count: i64,
    /// The growth since the first snapshot at each later one.
    pub growth_bytes_at: Vec<i64>,
    /// What the owner retained in each snapshot; `None` where it is not there.
    pub retained_bytes_at: Vec<Option<u64>>,
    /// What it collects, most bytes first.
    pub collects: Vec<Collected>,
    /// Other old holders of the same objects: freeing one alone frees nothing.
    pub also_held_by: Vec<String>,
    /// From a root down to the owner that grew most.
    pub path: Vec<PathStep>,
    /// How sure this is.
    pub confidence: Confidence,
    /// Why, in words.
    pub reasons: Vec<String>,
}

/// A class of objects that a suspect gained.
#[derive(Debug, Clone, PartialEq)]
pub struct Collected {
    /// The class.
    pub class: String,
    /// How many more there are.
    pub count: i64,
    /// Their own bytes.
    pub bytes: i64,
    /// One of them, by id.
    pub example_id: Option<u64>,
    /// The beginning of its text, if it is a string.
    pub example_text: Option<String>,
    /// A function or constructor of the program in the example, and where it stands.
    pub example_place: Option<(String, Place)>,
    /// The functions that made the example, the innermost first, if an allocation trace tells.
    pub example_allocated_by: Vec<CallFunction>,
}

/// How likely a suspect is a leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// It grew, and that is all that is known.
    Low,
    /// It collects many of a kind, or it is the program's own and grew.
    Medium,
    /// It is the program's, collects many of a kind, and (given three snapshots or more) never
    /// stops.
    High,
}

/// What stands in the way of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// So few objects are in both snapshots that they are of different programs or threads.
    OtherProgram {
        /// The number of the later snapshot, from 0.
        snapshot: usize,
        /// How many of the first snapshot's nodes it has, in percent.
        kept_percent: u32,
    },
    /// The ids are of another numbering: the snapshots were taken over two connections or of two
    /// processes, and objects were recognized by their places.
    OtherNumbering {
        /// The number of the later snapshot, from 0.
        snapshot: usize,
    },
    /// It is older than the first: they are given in the wrong order.
    WrongOrder {
        /// The number of the later snapshot, from 0.
        snapshot: usize,
    },
    /// The last one has no references from Maps and Sets to their entries, as Bun writes it: who
    /// keeps these is told by the size of tables.
    EntriesMissing {
        /// The number of the later snapshot, from 0.
        snapshot: usize,
    },
    /// One shows V8's internal objects and one does not.
    OtherCaptureMode {
        /// The number of the later snapshot, from 0.
        snapshot: usize,
    },
}

/// The suspects of two or more snapshots, and what casts doubt on them.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspects {
    /// The likeliest first.
    pub suspects: Vec<Suspect>,
    /// Reasons not to believe any of them.
    pub doubts: Vec<Doubt>,
    /// Bytes that came minus bytes that went in all, without code and hidden classes.
    pub growth_bytes: i64,
}

/// Snapshots of one program have more than this in common, whatever it did in between.
const LEAST_KEPT_PERCENT: u32 = 20;

/// Ranks the owners that grew from the first of `heaps` to the last; `top` suspects at most.
///
/// Needs two heaps at least; with fewer there is no growth and no suspect.
pub fn suspects<H: HeapView>(heaps: &[&H], top: usize) -> Suspects {
    let mut found = Suspects { suspects: Vec::new(), doubts: Vec::new(), growth_bytes: 0 };
    let ([first, .., last], true) = (heaps, heaps.len() >= 2) else { return found };
    let naming = Naming::of(*last);
    let mut names = Names::default();
    let whole = Matching::of(*first, *last).with_successors(*first, *last);
    let mut late = owners_since(*first, *last, &whole, &mut names);
    // Each snapshot with the last, so that an owner has one number in all of them: its node in the
    // last.
    let mut with_last = vec![whole];
    for later in &heaps[1..heaps.len() - 1] {
        with_last.push(Matching::of(*later, *last).with_successors(*later, *last));
    }
    with_last.push(Matching::identity(last.graph().node_count()));
    // What came after the last but one has nothing to compare, and would take from its holder what
    // that gained before. By places alone that cannot be told.
    if let [_, .., before_last, _] = &with_last[..]
        && before_last.matched_by == MatchedBy::Id
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
        holders::move_to_holders(*later, with_first, &mut growth, &mut names);
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
    } else if matching.matched_by == MatchedBy::Place {
        doubts.push(Doubt::OtherNumbering { snapshot });
    } else if matching.is_reversed {
        doubts.push(Doubt::WrongOrder { snapshot });
    }
    if first.shows_internals() != later.shows_internals() {
        doubts.push(Doubt::OtherCaptureMode { snapshot });
    }
    doubts
}

/// The owners that came after the first snapshot, in the last; the same in all comparisons, so that
/// these add up.
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
    // Of what the runtime holds, the function that it will call tells more than the runtime's own.
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
