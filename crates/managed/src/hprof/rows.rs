//! Rows of roots: system classes, threads, frames, native references.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use heapr_v8::{EdgeKind, NodeKind};
use rustc_hash::{FxHashMap, FxHashSet};

use super::census::Census;
use super::graph::Objects;
use super::names::cut;
use super::records::{RootRecord, RootTag};

/// Row of the classes that are never unloaded.
const SYSTEM_CLASSES: &str = "(system classes)";
/// Row of objects that nothing in the dump leads to. They are dead, or the virtual machine holds
/// them by references that it does not write.
pub(super) const GARBAGE: &str = "(garbage, or held by the virtual machine)";

/// Row of the threads and frames beyond the largest number of rows.
const OTHER_THREADS: &str = "(other threads)";
/// Largest number of rows of threads, and largest number of rows of frames.
const ROWS_MAX: usize = 1 << 16;

/// A group of references from outside of the heap.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// Native for rows that own what they lead to, synthetic for others.
    pub(super) kind: NodeKind,
    /// Whether distances count from the row, which holds for more than a moment.
    pub(super) is_owner: bool,
    /// Kind, name, number of the target. An empty name stands for a position.
    pub(super) edges: Vec<(EdgeKind, &'static str, u32)>,
}

impl Row {
    fn new(name: impl Into<String>, kind: NodeKind) -> Self {
        Self { name: name.into(), kind, is_owner: false, edges: Vec::new() }
    }

    /// Row of items without names.
    pub(super) fn of_items(name: &str, kind: NodeKind, items: Vec<u32>) -> Self {
        let edges = items.into_iter().map(|item| (EdgeKind::ELEMENT, "", item)).collect();
        Self { name: name.to_owned(), kind, is_owner: false, edges }
    }
}

/// Threads by their serial number: object, and serial number of the trace.
pub(super) fn threads(census: &Census) -> BTreeMap<u32, (u32, u32)> {
    let records = census.roots.iter().filter(|root| root.tag == RootTag::ThreadObject);
    records.filter_map(|root| Some((root.thread, (census.map.get(root.id)?, root.number)))).collect()
}

/// Returns the strings that are names of threads, by the thread's object.
pub(super) fn names_of_threads(
    objects: &Objects<'_>,
    threads: &BTreeMap<u32, (u32, u32)>,
) -> FxHashMap<u32, u32> {
    let name_of = |&(thread, _): &(u32, u32)| {
        // Android and older virtual machines have an array of characters, which is no string.
        let named = objects.field(thread, "name").or_else(|| {
            let holder = objects.field(thread, "holder")?;
            objects.field(holder, "name")
        });
        Some((thread, named?))
    };
    threads.values().filter_map(name_of).collect()
}

/// Returns the rows of all roots. `names` has the names of threads by their objects.
pub(super) fn rows(census: &Census, names: &FxHashMap<u32, String>) -> Vec<Row> {
    let threads = threads(census);
    let mut by_kind: BTreeMap<RootTag, Row> = BTreeMap::new();
    let mut of_threads: BTreeMap<u32, Row> = BTreeMap::new();
    let mut of_native_code: BTreeMap<u32, Row> = BTreeMap::new();
    let mut of_frames: BTreeMap<(u32, u32), Row> = BTreeMap::new();
    let mut others = Row::new(OTHER_THREADS, NodeKind::SYNTHETIC);
    let mut seen: FxHashSet<(RootTag, u32, u32, u32)> = FxHashSet::default();
    let thread_name = |serial: u32| {
        let object = threads.get(&serial).map(|&(object, _)| object);
        match object.and_then(|object| names.get(&object)) {
            Some(name) if !name.is_empty() => cut(format!("thread {name}")),
            _ => format!("thread {serial}"),
        }
    };
    // Classes of the virtual machine's own loaders are never unloaded, and hold these. Not all of
    // them are among the roots.
    let is_lasting = |loader: u64| loader == 0 || census.lasting_loaders.contains(&loader);
    let classes = census.classes.iter().filter(|class| is_lasting(class.loader)).map(|class| class.id);
    let lasting = classes.map(|id| RootRecord { tag: RootTag::SystemClass, id, thread: 0, number: 0 });
    for root in census.roots.iter().copied().chain(lasting) {
        let Some(target) = census.map.get(root.id) else { continue };
        if !seen.insert((root.tag, root.thread, root.number, target)) {
            continue;
        }
        let of_thread = match root.tag {
            RootTag::ThreadObject => "(thread)",
            RootTag::JniLocal => "(native local)",
            RootTag::Thread => "(native)",
            RootTag::Frame => {
                let name = || frame_name(census, &threads, &root);
                if let Some(row) = row_of(&mut of_frames, (root.thread, root.number), name) {
                    row.edges.push((EdgeKind::INTERNAL, "(local)", target));
                    continue;
                }
                "(local)"
            }
            other => {
                let (name, kind) = of_kind(other);
                let row = by_kind.entry(other).or_insert_with(|| Row::new(name, kind));
                row.edges.push((EdgeKind::ELEMENT, "", target));
                continue;
            }
        };
        // A thread that runs holds its object, and so its thread-local values, as long as it runs.
        let of_kind = if root.tag == RootTag::ThreadObject { &mut of_threads } else { &mut of_native_code };
        let name = || Some(thread_name(root.thread));
        let row = row_of(of_kind, root.thread, name).unwrap_or(&mut others);
        row.edges.push((EdgeKind::INTERNAL, of_thread, target));
    }
    for row in of_threads.values_mut() {
        (row.kind, row.is_owner) = (NodeKind::NATIVE, true);
    }
    for row in of_native_code.values_mut() {
        row.name = format!("{}, native code", row.name);
    }
    for (&tag, row) in &mut by_kind {
        row.is_owner = tag == RootTag::SystemClass;
    }
    let others = (!others.edges.is_empty()).then_some(others);
    let of_threads = of_threads.into_values().chain(of_native_code.into_values());
    by_kind.into_values().chain(of_threads).chain(of_frames.into_values()).chain(others).collect()
}

/// Returns the row of a key. `None`: it has no name, or there are too many rows.
fn row_of<K: Ord>(
    rows: &mut BTreeMap<K, Row>,
    key: K,
    name: impl FnOnce() -> Option<String>,
) -> Option<&mut Row> {
    let is_full = rows.len() >= ROWS_MAX;
    match rows.entry(key) {
        Entry::Occupied(row) => Some(row.into_mut()),
        Entry::Vacant(_) if is_full => None,
        Entry::Vacant(place) => Some(place.insert(Row::new(name()?, NodeKind::SYNTHETIC))),
    }
}

fn of_kind(tag: RootTag) -> (&'static str, NodeKind) {
    match tag {
        RootTag::SystemClass => (SYSTEM_CLASSES, NodeKind::NATIVE),
        RootTag::JniGlobal => ("(native references)", NodeKind::SYNTHETIC),
        RootTag::Monitor => ("(monitors)", NodeKind::SYNTHETIC),
        RootTag::InternedString => ("(interned strings)", NodeKind::SYNTHETIC),
        RootTag::Finalizing => ("(finalizing)", NodeKind::SYNTHETIC),
        RootTag::Debugger => ("(debugger)", NodeKind::SYNTHETIC),
        RootTag::Internal => ("(virtual machine)", NodeKind::SYNTHETIC),
        _ => ("(unknown roots)", NodeKind::SYNTHETIC),
    }
}

/// Name of the frame of a root: `frame Main.work (Main.java:9)`.
fn frame_name(census: &Census, threads: &BTreeMap<u32, (u32, u32)>, root: &RootRecord) -> Option<String> {
    let &(_, trace) = threads.get(&root.thread)?;
    let id = census.traces.get(&trace)?.get(root.number as usize)?;
    let frame = census.frames.get(id)?;
    let class =
        census.class_name_of_serial(frame.class_serial).unwrap_or_else(|| "(unknown class)".to_owned());
    let method = census.text(frame.method);
    let place = match (census.text(frame.source), frame.line) {
        ("", _) => String::new(),
        (file, line @ 1..) => format!(" ({file}:{line})"),
        (file, _) => format!(" ({file})"),
    };
    Some(cut(format!("frame {class}.{method}{place}")))
}
