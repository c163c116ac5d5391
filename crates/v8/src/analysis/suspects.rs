//! Which objects grow from snapshot to snapshot, and who holds them.
//!
//! The rank follows owners, not classes: a class that grew says what is kept, its owner says who keeps it. Nodes that
//! came since the first snapshot (minus those that went) are added up at the nearest object above them in the
//! dominator tree that was there before; if that object is only their common ancestor (they are in two collections at
//! once), at the old collection that refers to most of them. Owners of one kind (the `messages` of all rooms) make one
//! suspect.
//!
//! What the engine makes for itself (code, hidden classes, feedback) is not counted. What happens once (a module that
//! is loaded late) ranks low, because it gains few objects of many classes; with three or more snapshots also because
//! it does not go on.

mod growth;
mod holders;
mod late_owners;
mod ownership;
mod ranking;

use rustc_hash::{FxHashMap, FxHashSet};

use super::classes::{Classes, Names};
use super::heap_view::HeapView;
use super::matching::Matching;
use super::naming::Naming;
use super::path::{PathStep, path_from_root};
use super::scripts::Place;
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
}

/// How likely a suspect is a leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// It grew, and that is all that is known.
    Low,
    /// It collects many of a kind, or it is the program's own and grew.
    Medium,
    /// It is the program's, collects many of a kind, and (given three snapshots or more) never stops.
    High,
}

/// What stands in the way of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// So few objects are in both snapshots that they are of different processes.
    OtherProcess {
        /// The number of the later snapshot, from 0.
        snapshot: usize,
        /// How many of the first snapshot's nodes it has, in percent.
        kept_percent: u32,
    },
    /// One shows V8's internal objects and one does not.
    OtherCaptureMode {
        /// The number of the later snapshot, from 0.
        snapshot: usize,
    },
}

/// The suspects of two or more snapshots of one isolate, and what casts doubt on them.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspects {
    /// The likeliest first.
    pub suspects: Vec<Suspect>,
    /// Reasons not to believe any of them.
    pub doubts: Vec<Doubt>,
    /// Bytes that came minus bytes that went in all, without code and hidden classes.
    pub growth_bytes: i64,
}

/// Fewer common nodes than this are a coincidence of ids.
const LEAST_KEPT_PERCENT: u32 = 20;

/// Ranks the owners that grew from the first of `heaps` to the last; `top` suspects at most.
///
/// Needs two heaps at least; with fewer there is no growth and no suspect.
pub fn suspects<H: HeapView>(heaps: &[&H], top: usize) -> Suspects {
    let mut found = Suspects { suspects: Vec::new(), doubts: Vec::new(), growth_bytes: 0 };
    let ([first, .., last], true) = (heaps, heaps.len() >= 2) else { return found };
    let naming = Naming::of(*last);
    let mut names = Names::default();
    let late = owners_since(*first, *last, &mut names);
    let mut series = Vec::new();
    for (number, later) in heaps.iter().enumerate().skip(1) {
        let matching = Matching::of(*first, *later);
        let kept_percent = matching.kept_percent();
        if kept_percent < LEAST_KEPT_PERCENT {
            found.doubts.push(Doubt::OtherProcess { snapshot: number, kept_percent });
        }
        if first.shows_internals() != later.shows_internals() {
            found.doubts.push(Doubt::OtherCaptureMode { snapshot: number });
        }
        let late: FxHashSet<u32> =
            (0..later.graph().node_count()).filter(|&node| late.contains(&later.id(node))).collect();
        let mut growth = growth::growth_between(*first, *later, &matching, &late, &mut names);
        holders::move_to_holders(*later, &matching, &mut growth, &mut names);
        let by_id: FxHashMap<(u64, u32), growth::Growth> = growth
            .into_iter()
            .map(|(holding, growth)| ((later.id(holding.owner), holding.field), growth))
            .collect();
        series.push(by_id);
    }
    found.growth_bytes = series.last().map_or(0, |all| all.values().map(|growth| growth.bytes).sum());
    let groups = ranking::ranked_groups(*last, &naming, &names, &series, top);
    found.suspects = groups.into_iter().map(|group| finished(heaps, *last, &naming, &names, group)).collect();
    found
}

/// The ids of the owners that came after the first snapshot; the same in all comparisons, so that these add up.
fn owners_since<H: HeapView>(first: &H, last: &H, names: &mut Names) -> FxHashSet<u64> {
    let matching = Matching::of(first, last);
    let mut classes = Classes::of(last);
    let ownership = Ownership::of(last, &matching.earlier, &FxHashSet::default(), &mut classes, names);
    late_owners::late_owners(last, &matching.earlier, &ownership, &mut classes, names)
        .into_iter()
        .map(|node| last.id(node))
        .collect()
}

fn finished<H: HeapView>(
    heaps: &[&H],
    last: &H,
    naming: &Naming<'_, H>,
    names: &Names,
    group: Group,
) -> Suspect {
    let owner = group.owner;
    let owner_id = last.id(owner);
    let collects = group.collected(last, naming, names);
    Suspect {
        name: group.name,
        owner_count: group.owner_count,
        owner_id,
        owner_class: naming.own_name(owner),
        place: group.place,
        growth_bytes: group.growth.bytes,
        growth_count: group.count,
        growth_bytes_at: group.series,
        retained_bytes_at: heaps.iter().map(|heap| retained_by_id(*heap, owner_id)).collect(),
        collects,
        also_held_by: group.also_held_by.iter().map(|&node| naming.call(node).text).collect(),
        path: path_from_root(last, naming, owner),
        confidence: group.confidence,
        reasons: group.reasons,
    }
}

fn retained_by_id(heap: &impl HeapView, id: u64) -> Option<u64> {
    let node = (0..heap.graph().node_count()).find(|&node| heap.id(node) == id)?;
    Some(heap.retained_bytes(node))
}
