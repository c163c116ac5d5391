//! A managed heap in the form of a V8 heap snapshot, for the same commands, the same views, and
//! DevTools.
//!
//! ```text
//!  root ── (modules) ── pricing ──> module pricing ── _quotes ──> dict ── [17] ──> pricing.Quote
//!       ── thread worker ──> …       frame load (main.py:9) ── rows ──> list
//!       ── (garbage, not yet collected) ──> …
//! ```
//! An object's id is its address plus 1, because ids of objects are odd; that of native memory is
//! its address plus 5. Above the address stand a few bits of contents that never change, if the
//! object has such. So most other objects at the address have another id, in DevTools, too. The
//! member `heapr` of the header says what differs from V8's heaps.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Write};

use heapr_table::json_text::write_json;
use heapr_v8::graph_rows::{
    ARRAY, CLOSURE, CODE, CONTEXT, ELEMENT, INTERNAL, NATIVE, OBJECT, PROPERTY, SHORTCUT, STRING, SYNTHETIC,
    WEAK, edge, node, traced_node,
};
use heapr_v8::{NODE_FIELDS, NODE_KINDS, snapshot_header};
use serde_json::{Value, json};

use crate::heap::{EdgeKind, EdgeName, IDENTITY_BIT, ManagedHeap, NodeKind, Root, RootKind};
use crate::own_slots::OwnSlots;

/// Size of the buffer of rows.
const BUFFER_BYTES: usize = 1 << 18;
/// Folder of the module whose file shows where the standard library is.
const LIBRARY_MODULE: &str = "module os";

/// Writes a heap in the format of V8's heap snapshots.
///
/// # Errors
/// Those of `out`.
pub fn write_snapshot(heap: &mut ManagedHeap, out: &mut dyn Write) -> io::Result<()> {
    // Rows are short: they are gathered before a call of the writer.
    let mut gathered = BufWriter::with_capacity(BUFFER_BYTES, out);
    write_all(heap, &mut gathered)?;
    gathered.flush()
}

fn write_all(heap: &mut ManagedHeap, out: &mut impl Write) -> io::Result<()> {
    let (empty, call_root) = (heap.strings.number(""), heap.strings.number("(root)"));
    let root_names: Vec<u32> = heap.roots.iter().map(|root| heap.strings.number(&root.name)).collect();
    let first_node = 1 + heap.roots.len() as u64;
    let node_count = first_node + heap.nodes.len() as u64;
    let root_edges: usize = heap.roots.iter().map(|root| root.edges.len()).sum();
    let edge_count = heap.roots.len() + root_edges + heap.edges.len();
    let heap = &*heap;
    let mut header = snapshot_header(&NODE_KINDS, node_count, edge_count as u64);
    header["heapr"] = dialect(heap);
    header["trace_function_count"] = heap.stacks.function_count().into();
    write!(out, "{{\"snapshot\":{header}")?;
    write!(out, ",\n\"nodes\":[")?;
    node(out, true, [SYNTHETIC.into(), empty.into(), 1, 0, heap.roots.len() as u64])?;
    for ((root, &name), id) in heap.roots.iter().zip(&root_names).zip(ids_of_roots(heap)) {
        // Distances count from the modules. Other roots hold for the moment, or for the runtime, as
        // V8's own ones do.
        let is_plain = is_owner(root) || root.kind == RootKind::Garbage;
        let kind = if is_plain { NATIVE } else { SYNTHETIC };
        node(out, false, [kind.into(), name.into(), id, 0, root.edges.len() as u64])?;
    }
    for (number, facts) in heap.nodes.iter().enumerate() {
        let label = heap.label_of(facts);
        let kind = match label.kind {
            NodeKind::Object => OBJECT,
            NodeKind::Function => CLOSURE,
            NodeKind::Text => STRING,
            NodeKind::Store => ARRAY,
            NodeKind::Code => CODE,
            NodeKind::Block => NATIVE,
        };
        let degree = heap.edges_of(number as u32).len() as u64;
        // Memory that lies may have a block where an object is; their ids differ all the same.
        let id = facts.address_avma | if label.kind == NodeKind::Block { 5 } else { 1 };
        let identity = if id >> IDENTITY_BIT == 0 { heap.identity(number as u32) } else { 0 };
        let id = id | u64::from(identity) << IDENTITY_BIT;
        let row = [kind.into(), label.name.into(), id, heap.own_bytes(number as u32), degree];
        traced_node(out, false, row, heap.stacks.id_of(number as u32))?;
    }
    write!(out, "],\n\"edges\":[")?;
    for (number, root) in heap.roots.iter().enumerate() {
        let kind = if is_owner(root) { SHORTCUT } else { ELEMENT };
        // As an index: the target has the name.
        let name = if kind == SHORTCUT { u64::from(root_names[number]) } else { number as u64 };
        edge(out, number == 0, [kind.into(), name, 1 + number as u64])?;
    }
    for referred in heap.roots.iter().flat_map(|root| &root.edges).chain(&heap.edges) {
        let (kind, name) = kind_of(referred.name);
        edge(out, false, [kind.into(), name, first_node + u64::from(referred.target)])?;
    }
    write!(out, "],\n\"trace_function_infos\":[")?;
    heap.stacks.write_functions(call_root, empty, out)?;
    write!(out, "],\n\"trace_tree\":[")?;
    heap.stacks.write_tree(|node| heap.own_bytes(node), out)?;
    write!(out, "],\n\"samples\":[],\"locations\":[")?;
    write_locations(heap, out)?;
    write!(out, "],\n\"strings\":[")?;
    for (number, text) in heap.strings.all().iter().enumerate() {
        if number > 0 {
            out.write_all(b",\n")?;
        }
        write_json(&mut *out, text, false)?;
    }
    out.write_all(b"]}\n")
}

/// Whether a root owns what it leads to, as the modules of an interpreter do.
fn is_owner(root: &Root) -> bool {
    root.kind == RootKind::Owner
}

fn kind_of(name: EdgeName) -> (u32, u64) {
    let kind = match name.kind() {
        EdgeKind::Attribute => PROPERTY,
        EdgeKind::Variable => CONTEXT,
        EdgeKind::Item => ELEMENT,
        EdgeKind::Internal => INTERNAL,
        EdgeKind::Weak => WEAK,
    };
    (kind, name.number().into())
}

/// Ids of the roots: the same for a root of the same name in each snapshot.
fn ids_of_roots(heap: &ManagedHeap) -> Vec<u64> {
    let mut times: HashMap<&str, u64> = HashMap::new();
    let mut used = HashSet::from([1]);
    let mut ids = Vec::with_capacity(heap.roots.len());
    for root in &heap.roots {
        let time = times.entry(&root.name).or_default();
        *time += 1;
        let text = format!("{}/{time}", root.name);
        let hash = text
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        // No object's id: those are multiples of 8, plus 1.
        let mut id = u64::from(hash) & !7 | 3;
        while !used.insert(id) {
            id += 8;
        }
        ids.push(id);
    }
    ids
}

/// Describes the heap to heapr's own commands.
fn dialect(heap: &ManagedHeap) -> Value {
    let language = if heap.language.is_empty() { Value::Null } else { heap.language.into() };
    let texts = |names: &[u32]| -> Vec<String> {
        names.iter().map(|&name| heap.strings.get(name).to_owned()).collect()
    };
    json!({
        "runtime": heap.runtime,
        "language": language,
        "program": heap.program,
        "ids": "addresses",
        "identity_bit": IDENTITY_BIT,
        "collections": texts(&heap.collections),
        "own_slots": own_slots(heap),
        "fixed": texts(&heap.fixed),
        "scripts": scripts(heap),
        "notes": heap.notes,
    })
}

/// Layouts of the collections, by class.
fn own_slots(heap: &ManagedHeap) -> Vec<Value> {
    let row = |(&class, slots): (&u32, &Option<OwnSlots>)| Some((*slots)?.json(heap.strings.get(class)));
    heap.own_slots.iter().filter_map(row).collect()
}

/// Indexes of the files of all locations, without duplicates.
fn files(heap: &ManagedHeap) -> Vec<u32> {
    let mut files: Vec<u32> = heap.places.iter().map(|place| place.file).collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// Paths of all files; those of the standard library begin with `python:`.
fn scripts(heap: &ManagedHeap) -> Vec<String> {
    let library = heap.nodes.iter().find(|node| heap.name_of(node) == LIBRARY_MODULE).and_then(|node| {
        let place = heap.places.get((heap.label_of(node).place as usize).checked_sub(1)?)?;
        heap.strings.get(place.file).rsplit_once('/').map(|(folder, _)| format!("{folder}/"))
    });
    let shown = |file: u32| {
        let path = heap.strings.get(file);
        let is_package = ["/site-packages/", "/dist-packages/"].iter().any(|part| path.contains(part));
        match library.as_deref().and_then(|library| path.strip_prefix(library)) {
            Some(rest) if !is_package => format!("python:{rest}"),
            _ if path.starts_with('<') => format!("python:{path}"),
            _ => path.to_owned(),
        }
    };
    files(heap).into_iter().map(shown).collect()
}

fn write_locations(heap: &ManagedHeap, out: &mut impl Write) -> io::Result<()> {
    let files = files(heap);
    let script = |file: u32| files.binary_search(&file).unwrap_or(0);
    let of_roots = heap.roots.iter().map(|root| root.place);
    let of_nodes = heap.nodes.iter().map(|node| heap.label_of(node).place);
    let mut is_first = true;
    for (number, place) in of_roots.chain(of_nodes).enumerate() {
        let Some(place) = (place as usize).checked_sub(1).and_then(|place| heap.places.get(place)) else {
            continue;
        };
        let comma = if is_first { "" } else { "\n," };
        is_first = false;
        let at = (1 + number as u64) * NODE_FIELDS;
        write!(out, "{comma}{at},{},{},0", script(place.file), place.line.saturating_sub(1))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_roots_are_the_same_for_a_name_and_never_those_of_objects() {
        let root =
            |name: &str| Root { name: name.to_owned(), kind: RootKind::Program, place: 0, edges: Vec::new() };
        let of = |names: &[&str]| {
            let roots = names.iter().map(|name| root(name)).collect();
            ids_of_roots(&ManagedHeap { roots, ..ManagedHeap::default() })
        };
        let ids = of(&["thread 1", "thread 1", "(modules)"]);
        assert!(ids.iter().all(|id| id % 8 == 3), "{ids:?}");
        assert_eq!(HashSet::<&u64>::from_iter(&ids).len(), 3);
        assert_eq!(of(&["(modules)", "thread 1"]), [ids[2], ids[0]]);
    }
}
