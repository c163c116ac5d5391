//! Snapshot of a dump: rows of roots first, then all objects.

use heapr_v8::{EdgeKind, GraphColumns, NODE_KINDS, NodeKind, Snapshot, snapshot_header};
use serde_json::json;

use super::kinds::Kind;
use super::objects::Objects;
use super::reach::classes_of_instances_alone;
use crate::dump::edges::Edges;
use crate::dump::rows::{Row, with_rows};
use crate::dump_error::Result;

/// Row of objects that no root leads to.
const GARBAGE: &str = "(garbage, not yet collected)";
/// Row of all objects of a dump without roots.
const WITHOUT_ROOTS: &str = "(objects of a dump without roots)";
/// Classes whose instances hold contents by position or key.
const COLLECTIONS: [&str; 4] = ["Array", "Hash", "Set", "Struct"];
/// Bits of an address inside of a window.
const WINDOW_BITS: u32 = 34;

/// Builds the snapshot.
pub(super) fn build(mut objects: Objects) -> Result<Snapshot> {
    let mut columns = GraphColumns::default();
    for number in 0..objects.all.len() {
        let (kind, name) = objects.node(number)?;
        columns.kinds.push(kind);
        columns.names.push(name);
    }
    add_references(&mut objects, &mut columns)?;
    let rows = rows(&objects, &mut columns);
    let collections: Vec<String> = collections(&objects, &columns);
    let first_node = 1 + rows.len() as u32;
    let own_bytes = objects.all.iter().map(|object| object.own_bytes);
    let mut heap = with_rows(&mut objects.texts, &rows, columns, own_bytes)?;
    heap.ids = ids(&objects, &rows);
    heap.strings = std::mem::take(&mut objects.texts.strings);
    let mut header = snapshot_header(&NODE_KINDS, heap.names.len() as u64, heap.targets.len() as u64);
    let ids = if addresses_fit(&objects) { "addresses" } else { "positions" };
    let program = program(&heap, first_node);
    header["heapr"] = json!({
        "runtime": "Ruby, ObjectSpace.dump_all",
        "language": "ruby",
        "ids": ids,
        "collections": collections,
        "program": program,
    });
    Ok(Snapshot::of_columns(&header, heap)?)
}

/// Adds the references of all objects.
fn add_references(objects: &mut Objects, columns: &mut GraphColumns) -> Result<()> {
    let class = objects.texts.number("(class)")?;
    let superclass = objects.texts.number("(superclass)")?;
    let of_instances_alone = classes_of_instances_alone(objects);
    let mut by_class = rustc_hash::FxHashMap::default();
    for number in 0..objects.all.len() {
        let object = objects.all[number];
        columns.first_edges.push(columns.targets.len() as u32);
        let above = objects.classes.get(&object.address).map_or(0, |facts| facts.superclass);
        let mut push = |kind, name, target| {
            columns.edge_kinds.push(kind);
            columns.edge_names.push(name);
            columns.targets.push(target);
        };
        for position in 0..objects.references_of(number).len() {
            let address = objects.references_of(number)[position];
            let Some(target) = objects.map.get(address) else { continue };
            if object.kind.holds_by_position() {
                push(EdgeKind::ELEMENT, position as u32, target);
            } else if address == above {
                push(EdgeKind::INTERNAL, superclass, target);
            } else {
                let shown = columns.names[target as usize];
                let is_text = columns.kinds[target as usize] == NodeKind::STRING;
                let name = match by_class.get(&(shown, is_text)) {
                    Some(&known) => known,
                    None => {
                        let class = if is_text { "String".into() } else { objects.texts.strings.text(shown) };
                        let name = objects.texts.number(&format!("({class})"))?;
                        *by_class.entry((shown, is_text)).or_insert(name)
                    }
                };
                let is_plumbing = columns.kinds[target as usize] == NodeKind::CODE;
                push(if is_plumbing { EdgeKind::INTERNAL } else { EdgeKind::PROPERTY }, name, target);
            }
        }
        // Classes with a name are held by the constant of that name, unless that was removed.
        let has_name = objects.classes.get(&object.class).is_none_or(|it| it.name != 0 && !it.is_singleton);
        let has_constant = has_name && !of_instances_alone.contains(&object.class);
        if let Some(target) = objects.map.get(object.class).filter(|_| !has_constant) {
            push(EdgeKind::INTERNAL, class, target);
        }
    }
    Ok(())
}

/// Returns the rows of all roots, and of what none of them leads to.
fn rows(objects: &Objects, columns: &mut GraphColumns) -> Vec<Row> {
    let row = |root: &super::objects::Root| {
        let mut targets: Vec<u32> =
            root.references.iter().filter_map(|&address| objects.map.get(address)).collect();
        targets.sort_unstable();
        targets.dedup();
        // Distances count from what the virtual machine and the program hold, rather than from the
        // stack of the moment.
        let kind = if root.name == "(stack)" { NodeKind::SYNTHETIC } else { NodeKind::NATIVE };
        Row { name: root.name.clone(), kind, is_owner: kind == NodeKind::NATIVE, targets }
    };
    let mut rows: Vec<Row> = objects.roots.iter().map(row).collect();
    let edges = Edges { first: &columns.first_edges, targets: &columns.targets, kinds: &columns.edge_kinds };
    let (garbage, idle) = edges.garbage(rows.iter().flat_map(|row| row.targets.iter().copied()));
    for edge in idle {
        columns.edge_kinds[edge] = EdgeKind::WEAK;
    }
    if !garbage.is_empty() {
        let name = if objects.has_no_roots() { WITHOUT_ROOTS } else { GARBAGE };
        let (kind, is_owner) = (NodeKind::NATIVE, objects.has_no_roots());
        rows.push(Row { name: name.to_owned(), kind, is_owner, targets: garbage });
    }
    rows
}

/// Names of the classes of collections: Ruby's own, and those of the dump's structures.
fn collections(objects: &Objects, columns: &GraphColumns) -> Vec<String> {
    let of_kind =
        objects.all.iter().zip(&columns.names).filter(|(object, _)| object.kind == Kind::Collection);
    let mut numbers: Vec<u32> = of_kind.map(|(_, &name)| name).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let texts = numbers.into_iter().map(|number| objects.texts.strings.text(number).into_owned());
    texts.chain(COLLECTIONS.map(str::to_owned)).collect()
}

/// Names of the classes and modules of the dump, as parts of names begin with them.
fn program(heap: &GraphColumns, first_node: u32) -> Vec<String> {
    // A text is no class, whatever it says.
    let nodes = heap.names.iter().zip(&heap.kinds).skip(first_node as usize);
    let names = nodes.filter(|&(_, &kind)| kind == NodeKind::OBJECT).map(|(&name, _)| name);
    let mut numbers: Vec<u32> = names.collect();
    numbers.sort_unstable();
    numbers.dedup();
    let texts = numbers.into_iter().map(|number| heap.strings.text(number).into_owned());
    texts
        .filter_map(|text| {
            let name = text.strip_prefix("class ").or_else(|| text.strip_prefix("module "))?;
            (!is_of_ruby(name)).then(|| name.to_owned())
        })
        .collect()
}

/// Whether a class comes with Ruby.
pub(crate) fn is_of_ruby(name: &str) -> bool {
    /// Outermost modules of Ruby itself and of the libraries that it loads at its start.
    const OF_RUBY: [&str; 36] = [
        "BasicObject",
        "Kernel",
        "Module",
        "Class",
        "Comparable",
        "Enumerable",
        "Enumerator",
        "String",
        "Symbol",
        "Integer",
        "Float",
        "Array",
        "Hash",
        "Proc",
        "Method",
        "Thread",
        "Process",
        "IO",
        "File",
        "Dir",
        "Time",
        "Random",
        "Regexp",
        "Struct",
        "Range",
        "Encoding",
        "ObjectSpace",
        "GC",
        "RubyVM",
        "Gem",
        "RbConfig",
        "Monitor",
        "ErrorHighlight",
        "DidYouMean",
        "Bundler",
        "Exception",
    ];
    OF_RUBY.contains(&name.split("::").next().unwrap_or(name))
}

/// Window of an address: its upper bits.
fn window(address: u64) -> u64 {
    address >> WINDOW_BITS
}

/// Windows of all addresses, at most three of them.
fn windows(objects: &Objects) -> Vec<u64> {
    let mut found: Vec<u64> = Vec::new();
    for object in &objects.all {
        if !found.contains(&window(object.address)) {
            found.push(window(object.address));
            if found.len() > 2 {
                break;
            }
        }
    }
    found
}

/// Whether ids of 32 bits are made of the addresses. Each of two windows needs a number that is the
/// same in all dumps: its lowest bit.
fn addresses_fit(objects: &Objects) -> bool {
    let fits = match windows(objects)[..] {
        [] | [_] => true,
        [one, other] => (one ^ other) & 1 == 1,
        _ => false,
    };
    fits && objects.all.iter().all(|object| object.address.is_multiple_of(8))
}

/// Ids of the root, the rows and the objects. An object's id is made of its address, which is the
/// same as long as it lives. Where addresses lie too far apart, it is a number in the file's order.
fn ids(objects: &Objects, rows: &[Row]) -> Vec<u32> {
    let of_row = |name: &str| {
        let hash = name
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        // No object's: those of Ruby are in slots of 40 bytes or more.
        0xffff_0000 | hash >> 16
    };
    let mut used = rustc_hash::FxHashSet::from_iter([1]);
    let mut all = vec![1];
    for row in rows {
        let mut id = of_row(&row.name);
        while !used.insert(id) {
            id = id.wrapping_sub(1);
        }
        all.push(id);
    }
    let inside = (1_u64 << WINDOW_BITS) - 1;
    if !addresses_fit(objects) {
        all.extend((2..).take(objects.all.len()));
        return all;
    }
    all.extend(objects.all.iter().map(|object| {
        let number = (window(object.address) & 1) as u32;
        number << (WINDOW_BITS - 3) | ((object.address & inside) >> 3) as u32
    }));
    all
}
