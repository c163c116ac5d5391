//! Rows of roots: system classes, threads, frames, native references.

use std::collections::BTreeMap;

use heapr_v8::{EdgeKind, NodeKind};
use rustc_hash::{FxHashMap, FxHashSet};

use super::census::Census;
use super::graph::Objects;
use super::records::{RootRecord, RootTag};

/// Row of the classes that are never unloaded.
pub(super) const SYSTEM_CLASSES: &str = "(system classes)";
/// Row of objects that nothing in the dump leads to. They are dead, or the virtual machine holds
/// them by references that it does not write.
pub(super) const GARBAGE: &str = "(garbage, or held by the virtual machine)";

/// A group of references from outside of the heap.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// Native for rows that own what they lead to, synthetic for others.
    pub(super) kind: NodeKind,
    /// Kind, name, number of the target. An empty name stands for a position.
    pub(super) edges: Vec<(EdgeKind, &'static str, u32)>,
}

impl Row {
    fn new(name: impl Into<String>, kind: NodeKind) -> Self {
        Self { name: name.into(), kind, edges: Vec::new() }
    }

    /// Row of items without names.
    pub(super) fn of_items(name: &str, kind: NodeKind, items: Vec<u32>) -> Self {
        let edges = items.into_iter().map(|item| (EdgeKind::ELEMENT, "", item)).collect();
        Self { name: name.to_owned(), kind, edges }
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
    let mut of_frames: BTreeMap<(u32, u32), Row> = BTreeMap::new();
    let mut seen: FxHashSet<(RootTag, u32, u32, u32)> = FxHashSet::default();
    let thread_name = |serial: u32| {
        let object = threads.get(&serial).map(|&(object, _)| object);
        match object.and_then(|object| names.get(&object)) {
            Some(name) if !name.is_empty() => format!("thread {name}"),
            _ => format!("thread {serial}"),
        }
    };
    // Classes of the boot loader are never unloaded. Not all of them are among the roots.
    let of_boot = census.classes.iter().filter(|class| class.loader == 0);
    let of_boot =
        of_boot.map(|class| RootRecord { tag: RootTag::SystemClass, id: class.id, thread: 0, number: 0 });
    for root in census.roots.iter().copied().chain(of_boot) {
        let Some(target) = census.map.get(root.id) else { continue };
        if !seen.insert((root.tag, root.thread, root.number, target)) {
            continue;
        }
        let thread = |row: &mut BTreeMap<u32, Row>, name: &'static str| {
            let row = row
                .entry(root.thread)
                .or_insert_with(|| Row::new(thread_name(root.thread), NodeKind::SYNTHETIC));
            row.edges.push((EdgeKind::INTERNAL, name, target));
        };
        match root.tag {
            RootTag::ThreadObject => thread(&mut of_threads, "(thread)"),
            RootTag::JniLocal => thread(&mut of_threads, "(native local)"),
            RootTag::Thread => thread(&mut of_threads, "(native)"),
            RootTag::Frame => match frame_name(census, &threads, &root) {
                Some(name) => {
                    let key = (root.thread, root.number);
                    let row = of_frames.entry(key).or_insert_with(|| Row::new(name, NodeKind::SYNTHETIC));
                    row.edges.push((EdgeKind::INTERNAL, "(local)", target));
                }
                None => thread(&mut of_threads, "(local)"),
            },
            other => {
                let (name, kind) = of_kind(other);
                let row = by_kind.entry(other).or_insert_with(|| Row::new(name, kind));
                row.edges.push((EdgeKind::ELEMENT, "", target));
            }
        }
    }
    by_kind.into_values().chain(of_threads.into_values()).chain(of_frames.into_values()).collect()
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
    Some(format!("frame {class}.{method}{place}"))
}
