//! Ranking of suspects: groups owners of one kind and puts the likeliest leak first.

use std::cmp::Reverse;

use heapr_table::SortRows as _;
use heapr_table::quantity::plural;
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::classes::Names;
use super::super::heap_view::{HeapView, field};
use super::super::naming::Naming;
use super::super::scripts::Place;
use super::growth::{ClassGrowth, Growth, Holding};
use super::ownership::{NONE, is_row};
use super::passing_nodes::PassingNodes;
use super::{Collected, Confidence, threads, timers};
use crate::NodeKind;

/// Owners with one name.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    /// Owner that grew most, in the last snapshot.
    pub(super) owner: u32,
    pub(super) owner_count: u64,
    /// First owners of the group, at most [`OWNERS_KEPT`].
    owners: Vec<u32>,
    pub(super) place: Option<Place>,
    pub(super) growth: Growth,
    /// Number of items, or of the links of a chain.
    pub(super) count: i64,
    /// Growth since the first snapshot, at each later one.
    pub(super) series: Vec<i64>,
    pub(super) also_held_by: Vec<u32>,
    pub(super) confidence: Confidence,
    pub(super) reasons: Vec<String>,
    owner_bytes: i64,
    is_of_the_program: bool,
    hangs_on_the_runtime: bool,
    is_root: bool,
    /// Why nothing that only its root leads to is a leak.
    no_leak: Option<&'static str>,
    /// Whether the items are open handles of Node, held by a root.
    is_of_open_handles: bool,
    score: f64,
}

/// Number of owners of a group whose threads are told.
const OWNERS_KEPT: usize = 64;
/// Largest number of classes listed per suspect.
const MAX_CLASSES: usize = 4;
/// Divisor of the total growth: a suspect with a smaller part is not the leak.
const LEAST_SHARE_OF_ALL: i64 = 100;
/// Divisor of an owner's retained bytes: a smaller growth without more objects is no leak. Longer
/// texts have replaced others.
const LEAST_SHARE_OF_OWNER: i64 = 100;
/// Number of objects from which they count as collected.
const MANY: i64 = 10;

/// Returns the groups with the highest scores. `series[n]` is the growth from the first snapshot to
/// the one `n + 1` after it.
pub(super) fn ranked_groups<H: HeapView>(
    last: &H,
    naming: &Naming<'_, H>,
    names: &Names,
    series: &[FxHashMap<Holding, Growth>],
    top: usize,
) -> Vec<Group> {
    let Some(final_growth) = series.last() else { return Vec::new() };
    let passing = PassingNodes::of(last);
    let mut groups: FxHashMap<(String, Option<&'static str>), Group> = FxHashMap::default();
    for (&holding, growth) in final_growth {
        let Holding { owner, field, item_class } = holding;
        let called = naming.call(owner);
        let field = (field != NONE).then(|| names.name(field));
        let name = match item_class {
            NONE => called.whole(field),
            class => name_at_root(names.name(class)),
        };
        let no_leak = passing.no_leak(owner);
        let group = groups.entry((name.clone(), no_leak)).or_insert_with(|| Group {
            name,
            owner,
            owner_count: 0,
            owners: Vec::new(),
            place: called.place.clone(),
            growth: Growth::default(),
            count: 0,
            series: vec![0; series.len()],
            also_held_by: Vec::new(),
            confidence: Confidence::Low,
            reasons: Vec::new(),
            owner_bytes: i64::MIN,
            is_of_the_program: false,
            hangs_on_the_runtime: naming.hangs_on_the_runtime(&called),
            is_root: is_row(last, owner),
            no_leak,
            is_of_open_handles: item_class != NONE && OPEN_HANDLES.contains(&names.name(item_class)),
            score: 0.0,
        });
        let is_of_the_program = called.is_of_the_program() || called.base == "globalThis" && field.is_some();
        group.is_of_the_program |= is_of_the_program;
        if growth.bytes > 0 {
            group.owner_count += 1;
            if group.owners.len() < OWNERS_KEPT {
                group.owners.push(owner);
            }
        }
        if (growth.bytes, Reverse(owner)) > (group.owner_bytes, Reverse(group.owner)) {
            group.owner = owner;
            group.owner_bytes = growth.bytes;
            group.place = called.place;
            group.also_held_by = growth.also_held_by();
        }
        for (at, growth_then) in series.iter().enumerate() {
            group.series[at] += growth_then.get(&holding).map_or(0, |then| then.bytes);
        }
        group.growth.add(growth.clone());
    }
    let total_bytes = final_growth.values().map(|growth| growth.bytes).sum();
    let mut groups: Vec<Group> = groups.into_values().filter(|group| group.growth.bytes > 0).collect();
    for group in &mut groups {
        group.judge(naming, total_bytes);
    }
    groups.sort_rows_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.name.cmp(&b.name)));
    let told = also_told(&groups);
    groups.retain(|group| !told.contains(&group.owner));
    fold_holders(&mut groups);
    groups.truncate(top);
    for group in &mut groups {
        if last.meta().language().reference_begins_names(&group.name) {
            group.reasons.extend(threads::in_words(last, &group.owners));
        }
        group.reasons.extend(timers::duration_in_words(last, group.owner).filter(|_| group.owner_count == 1));
    }
    groups
}

/// Returns owners that only gained room and that another group names as a holder of its gains. They
/// are part of that leak.
fn also_told(groups: &[Group]) -> FxHashSet<u32> {
    let is_room = |group: &&Group| group.count <= 0;
    let rooms: FxHashSet<u32> = groups.iter().filter(is_room).map(|group| group.owner).collect();
    let told = groups.iter().filter(|group| group.count > 0).flat_map(|group| &group.also_held_by);
    told.copied().filter(|owner| rooms.contains(owner)).collect()
}

/// Merges each owner that another one names as a holder, if it gained no more things than the other
/// (their keys). Both are one leak and are listed once.
fn fold_holders(groups: &mut Vec<Group>) {
    let mut at = 0;
    while at < groups.len() {
        let (told, rest) = groups.split_at_mut(at);
        let group = &rest[0];
        let is_same = |other: &&mut Group| {
            let is_single = other.owner_count == 1 && group.owner_count == 1;
            is_single && other.also_held_by.contains(&group.owner) && group.count <= other.count
        };
        let Some(other) = told.iter_mut().find(is_same) else {
            at += 1;
            continue;
        };
        for (sum, bytes) in other.series.iter_mut().zip(&group.series) {
            *sum += bytes;
        }
        other.growth.add(group.growth.clone());
        groups.remove(at);
    }
}

/// Name for a class of objects that a root holds. Node's handle classes are known to be open
/// handles.
fn name_at_root(class: &str) -> String {
    match OPEN_HANDLES.contains(&class) {
        true => format!("{class} (open handles)"),
        false => format!("{class} (held by the runtime)"),
    }
}

/// Classes whose objects the event loop holds until they are closed or done.
const OPEN_HANDLES: [&str; 19] = [
    "ChannelWrap",
    "FSEvent",
    "FileHandle",
    "HTTPParser",
    "Http2Session",
    "Http2Stream",
    "MessagePort",
    "Pipe",
    "PipeConnectWrap",
    "Process",
    "ShutdownWrap",
    "StatWatcher",
    "TCP",
    "TCPConnectWrap",
    "TLSWrap",
    "TTY",
    "UDP",
    "Worker",
    "WriteWrap",
];

impl Group {
    /// Sets score, confidence and reasons.
    fn judge<H: HeapView>(&mut self, naming: &Naming<'_, H>, total_bytes: i64) {
        // A list or a chain of strings has one item, its first link; then all links are counted.
        let classes = self.growth.by_class.values();
        let links = classes.clone().filter(|class| class.item_count > 0).map(|class| class.count).max();
        let chain_count = links.or(classes.map(|class| class.count).max()).unwrap_or(0);
        self.count = if self.growth.item_count >= 3 { self.growth.item_count } else { chain_count };
        let repetition = match self.count {
            i64::MIN..=1 => 0.05,
            2..=4 => 0.2,
            5..MANY => 0.5,
            _ => 1.0,
        };
        let holds_of_the_program = self.is_of_the_program
            || self.hangs_on_the_runtime
            || self.growth.by_class.values().any(|class| {
                class.count >= 2
                    && class.example.is_some_and(|node| {
                        naming.is_of_program_class(node) || naming.place_within(node).is_some()
                    })
            });
        let origin = if self.is_of_the_program {
            1.0
        } else if holds_of_the_program {
            0.8
        } else {
            0.1
        };
        let is_steady = self.is_steady();
        let steadiness = if is_steady == Some(false) { 0.1 } else { 1.0 };
        self.score = self.growth.bytes as f64 * repetition * origin * steadiness;

        self.confidence = match (is_steady, repetition == 1.0, holds_of_the_program) {
            (Some(false), ..) => Confidence::Low,
            (Some(true), true, true) => Confidence::High,
            (_, true, true) => Confidence::Medium,
            (Some(true), true, false) | (Some(true), false, true) => Confidence::Medium,
            _ => Confidence::Low,
        };
        // Node's own modules are many, and each is loaded once. Properties that a program adds to a
        // module have an owner of their own below the module.
        let is_loaded = self.name.starts_with("BuiltinModule.") || naming.is_builtin_module(self.owner);
        if is_loaded && !holds_of_the_program {
            self.confidence = Confidence::Low;
            self.reasons.push("is a module of the runtime that was loaded meanwhile".to_owned());
        }
        self.reasons.push(
            match is_steady {
                Some(true) => "grew in every interval",
                Some(false) if self.grows_always() => "grew in every interval, most of it in one",
                Some(false) => "did not grow in every interval",
                None => "grew once: a third snapshot would tell whether it goes on",
            }
            .to_owned(),
        );
        self.reasons.push(match self.count {
            MANY.. => format!("collects {}", plural(self.count.unsigned_abs(), "object")),
            _ => "collects few objects".to_owned(),
        });
        self.reasons.push(self.holder(holds_of_the_program).to_owned());
        if self.growth.bytes.saturating_mul(LEAST_SHARE_OF_ALL) < total_bytes {
            self.confidence = Confidence::Low;
            self.reasons.push("is a small part of the whole growth".to_owned());
        }
        self.judge_in_other_language(naming);
        let retained = i64::try_from(naming.heap().retained_bytes(self.owner)).unwrap_or(i64::MAX);
        if self.count <= 0 && self.growth.bytes.saturating_mul(LEAST_SHARE_OF_OWNER) < retained {
            self.confidence = Confidence::Low;
            self.reasons.push("grew by a small part of what it holds".to_owned());
        }
        let is_told = holds_of_the_program || self.is_of_open_handles;
        if self.is_root && (!is_told || !self.is_of_one_class()) {
            self.confidence = Confidence::Low;
            self.score *= 0.1;
            self.reasons.push("is a root, which holds things of all kinds".to_owned());
        }
    }

    /// Says whose code holds the group. `holds_of_the_program`: it holds the program's objects.
    fn holder(&self, holds_of_the_program: bool) -> &'static str {
        match (self.is_of_the_program, holds_of_the_program) {
            (true, _) => "is held by the program's code",
            _ if self.hangs_on_the_runtime => "hangs on an object of the runtime that programs add to",
            (false, true) => "is held by the runtime for the program's code",
            (false, false) => "is held by the runtime",
        }
    }

    /// Lowers the confidence for what no part of a program of another language holds.
    fn judge_in_other_language<H: HeapView>(&mut self, naming: &Naming<'_, H>) {
        let heap = naming.heap();
        let language = heap.meta().language();
        let by_name = language.no_leak(&self.name).or_else(|| language.no_leak(&heap.name(self.owner)));
        if let Some(reason) = by_name.or(self.no_leak) {
            self.confidence = Confidence::Low;
            self.score *= 0.01;
            self.reasons.push(reason.to_owned());
        } else if heap.meta().dialect.is_some() && self.owner == heap.root() {
            self.confidence = Confidence::Low;
            self.score *= 0.1;
            self.reasons.push("is held in several ways, none of them the program's".to_owned());
        }
    }

    /// Whether most items are of one class.
    fn is_of_one_class(&self) -> bool {
        let most = self.growth.by_class.values().map(|class| class.item_count).max().unwrap_or(0);
        most * 2 > self.growth.item_count
    }

    /// Whether each interval brought a fair part of the growth; `None` with two snapshots.
    fn is_steady(&self) -> Option<bool> {
        let intervals = self.series.len() as i64;
        if intervals < 2 {
            return None;
        }
        let fair = (self.growth.bytes / intervals / 5).max(1);
        let mut before = 0;
        Some(self.series.iter().all(|&now| {
            let gained = now - before;
            before = now;
            gained >= fair
        }))
    }

    /// Whether each interval brought some growth.
    fn grows_always(&self) -> bool {
        self.series.is_sorted_by(|before, now| before < now)
            && self.series.first().is_some_and(|&first| first > 0)
    }

    /// Classes of the gained objects, most bytes first.
    pub(super) fn collected<H: HeapView>(
        &self,
        last: &H,
        naming: &Naming<'_, H>,
        names: &Names,
    ) -> Vec<Collected> {
        let mut classes: Vec<_> = self
            .growth
            .by_class
            .iter()
            .filter(|(_, class)| class.count > 0 && (class.bytes > 0 || class.item_count > 0))
            .collect();
        // Items come first: the owner collects them, and the other classes are their parts.
        // In other languages than JavaScript the program's own classes say most. Builtin ones are
        // their parts.
        let is_told = |class: &ClassGrowth| {
            let is_of_the_program = |node| {
                naming.is_of_program_class(node)
                    || naming.place(node).is_some_and(|place| !place.is_of_the_runtime())
            };
            last.meta().dialect.is_some() && class.example.is_some_and(is_of_the_program)
        };
        classes.sort_rows_by_key(|(number, class)| {
            (Reverse(is_told(class)), Reverse(class.item_count > 0), Reverse(class.bytes), **number)
        });
        classes
            .into_iter()
            .take(MAX_CLASSES)
            .map(|(&number, class)| Collected {
                class: match class.example {
                    Some(node) => naming.name_in_sources(node, names.name(number).into()),
                    None => names.name(number).to_owned(),
                },
                count: class.count,
                bytes: class.bytes,
                example_id: class.example.map(|node| last.id(node)),
                example_text: class.example.and_then(|node| text_of(last, node)),
                example_allocated_by: class
                    .example
                    .map(|node| last.allocation_stack(node))
                    .unwrap_or_default(),
                example_place: class.example.and_then(|node| naming.place_within(node)),
            })
            .collect()
    }
}

/// Returns the beginning of a string. A concatenated string is read piece by piece.
fn text_of(heap: &impl HeapView, node: u32) -> Option<String> {
    const MAX_CHARS: usize = 60;
    const MAX_PIECES: usize = 1000;
    if !heap.kind(node).is_string() {
        return None;
    }
    let mut text = String::new();
    let mut room = MAX_CHARS;
    let mut rest = vec![node];
    let mut pieces = 0;
    while let Some(piece) = rest.pop() {
        pieces += 1;
        if room == 0 || pieces > MAX_PIECES {
            break;
        }
        if heap.kind(piece) == NodeKind::CONS_STRING {
            rest.extend(["second", "first"].iter().filter_map(|name| field(heap, piece, &[name])));
            continue;
        }
        for character in heap.name(piece).chars().take(room) {
            text.push(character);
            room -= 1;
        }
    }
    (!text.is_empty()).then_some(text)
}
