//! Snapshot of the objects of a dump: rows of roots first, then all objects.

use heapr_v8::{EdgeKind, GraphColumns, NODE_KINDS, NodeKind, Snapshot, Strings, snapshot_header};
use rustc_hash::FxHashMap;
use serde_json::json;

use super::census::Census;
use super::graph::{CLASS_OBJECT, Objects, primitive_of};
use super::records::Walked;
use super::rows::Row;
use super::sizes::OwnBytes;
use crate::dump_error::{DumpError, Result};

/// Class of strings.
const STRING: &str = "java.lang.String";

/// Numbers of texts, each of which is written once.
#[derive(Debug, Default)]
pub(super) struct TextNumbers(FxHashMap<Box<str>, u32>);

impl TextNumbers {
    pub(super) fn number(&mut self, strings: &mut Strings, text: &str) -> Result<u32> {
        if let Some(&known) = self.0.get(text) {
            return Ok(known);
        }
        let number = strings.push(text.as_bytes())?;
        self.0.insert(text.into(), number);
        Ok(number)
    }
}

/// Names of objects that are not those of their classes.
#[derive(Debug)]
pub(super) struct Names<'a> {
    /// Number of each string's text, by object; 0 without one.
    pub(super) texts: Option<&'a [u32]>,
    /// Names of the program's class loaders.
    pub(super) loaders: FxHashMap<u32, String>,
}

/// Builds the snapshot.
pub(super) fn build(
    census: &Census,
    mut objects: Objects<'_>,
    rows: Vec<Row>,
    (names, own_bytes): (Vec<u32>, OwnBytes),
    own_names: &Names<'_>,
    walked: &Walked,
) -> Result<Snapshot> {
    mark_texts(&mut objects, own_names);
    // Each column is dropped as soon as nothing needs it any more.
    objects.class_of = Vec::new();
    objects.counts = Vec::new();
    let first_node = 1 + rows.len() as u32;
    let mut strings = std::mem::take(&mut objects.strings);
    let of_rows = columns_of_rows(&mut strings, &rows)?;
    let first_edge = of_rows.targets.len() as u32;
    if of_rows.targets.len() + objects.targets.len() >= u32::MAX as usize {
        return Err(DumpError::TooMany { what: "references" });
    }
    let memory_count = objects.memories.all.len() as u32;
    let wide = own_bytes.wide.iter().map(|(&node, &bytes)| (node + first_node, bytes));
    let wide_bytes = wide.collect();
    let columns = std::thread::scope(|scope| {
        let of_edges = scope.spawn(|| GraphColumns {
            targets: joined_with_offset(of_rows.targets, objects.targets, first_node),
            edge_names: joined(of_rows.edge_names, objects.edge_names),
            edge_kinds: joined(of_rows.edge_kinds, objects.edge_kinds),
            ..GraphColumns::default()
        });
        let of_nodes = GraphColumns {
            names: joined(of_rows.names, names),
            kinds: joined(of_rows.kinds, objects.kinds),
            first_edges: joined_with_offset(of_rows.first_edges, objects.first_edges, first_edge),
            ids: ids(census, first_node, memory_count),
            own_bytes: joined(vec![0; first_node as usize], own_bytes.narrow),
            wide_bytes,
            strings,
            ..GraphColumns::default()
        };
        let of_edges = of_edges.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        GraphColumns {
            targets: of_edges.targets,
            edge_names: of_edges.edge_names,
            edge_kinds: of_edges.edge_kinds,
            ..of_nodes
        }
    });
    let mut header = snapshot_header(&NODE_KINDS, columns.names.len() as u64, columns.targets.len() as u64);
    let of_classes = |is_one: fn(&super::classes::Class) -> bool| -> Vec<&str> {
        let mut names: Vec<&str> =
            objects.classes.iter().filter(|class| is_one(class)).map(|class| &*class.name).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let mut program = of_classes(|class| class.is_of_the_program);
    program.extend(own_names.loaders.values().map(String::as_str));
    let sizes = own_bytes.sizes;
    let table = sizes.map(|it| json!({ "header_bytes": it.array_header(), "slot_bytes": it.reference }));
    header["heapr"] = json!({
        "runtime": format!("Java, hprof {}", walked.version.trim_start_matches("JAVA PROFILE ")),
        "language": "java",
        "ids": "positions",
        "table": table,
        "collections": of_classes(|class| class.is_collection),
        "program": program,
    });
    Ok(Snapshot::of_columns(&header, columns)?)
}

/// Puts the rows' part of a column before the objects' part, which is not copied.
fn joined<T>(rows: Vec<T>, mut objects: Vec<T>) -> Vec<T> {
    objects.splice(0..0, rows);
    objects
}

/// Joins the parts of a column of numbers. Those of the objects become greater by `offset`.
fn joined_with_offset(rows: Vec<u32>, mut objects: Vec<u32>, offset: u32) -> Vec<u32> {
    objects.iter_mut().for_each(|number| *number += offset);
    joined(rows, objects)
}

/// Returns the columns of the root and the rows.
fn columns_of_rows(strings: &mut Strings, rows: &[Row]) -> Result<GraphColumns> {
    let first_node = 1 + rows.len() as u32;
    let mut columns = GraphColumns::default();
    columns.kinds.push(NodeKind::SYNTHETIC);
    columns.names.push(0);
    columns.first_edges.push(0);
    let mut known = TextNumbers::default();
    for (number, row) in (1..).zip(rows) {
        let name = known.number(strings, &row.name)?;
        let is_owner = row.is_owner;
        columns.names.push(name);
        columns.kinds.push(row.kind);
        columns.targets.push(number);
        columns.edge_names.push(if is_owner { name } else { number - 1 });
        columns.edge_kinds.push(if is_owner { EdgeKind::SHORTCUT } else { EdgeKind::ELEMENT });
    }
    for row in rows {
        columns.first_edges.push(columns.targets.len() as u32);
        for (position, &(kind, name, target)) in (0..).zip(&row.edges) {
            columns.targets.push(first_node + target);
            columns.edge_names.push(if name.is_empty() { position } else { known.number(strings, name)? });
            columns.edge_kinds.push(kind);
        }
    }
    Ok(columns)
}

/// Makes texts of the strings whose texts are known.
fn mark_texts(objects: &mut Objects<'_>, own_names: &Names<'_>) {
    if own_names.texts.is_none() {
        return;
    }
    let is_string: Vec<bool> = objects.classes.iter().map(|class| &*class.name == STRING).collect();
    for (kind, &class) in objects.kinds.iter_mut().zip(&objects.class_of) {
        if is_string.get(class as usize) == Some(&true) {
            *kind = NodeKind::STRING;
        }
    }
}

/// Returns the number of the name of each object. The name of a string whose text is known is the
/// text.
pub(super) fn names_of_nodes(
    census: &Census,
    objects: &Objects<'_>,
    strings: &mut Strings,
    own_names: &Names<'_>,
) -> Result<Vec<u32>> {
    let mut known = TextNumbers::default();
    let mut of_classes = Vec::with_capacity(objects.classes.len());
    for class in objects.classes {
        of_classes.push(known.number(strings, &class.name)?);
    }
    let unknown = known.number(strings, "(unknown class)")?;
    let mut of_primitives = FxHashMap::default();
    let mut names = Vec::with_capacity(objects.class_of.len());
    for (node, &class) in objects.class_of.iter().enumerate() {
        let facts = objects.classes.get(class as usize);
        let text = own_names.texts.filter(|_| facts.is_some_and(|facts| &*facts.name == STRING));
        names.push(if let Some(texts) = text {
            texts.get(node).copied().unwrap_or(0)
        } else if let Some(&name) = of_classes.get(class as usize).or_else(|| of_primitives.get(&class)) {
            name
        } else if class == CLASS_OBJECT {
            let name = census.class_name(census.ids[node]);
            known.number(strings, &format!("class {name}"))?
        } else if let Some(kind) = primitive_of(class) {
            let name = known.number(strings, &format!("{}[]", kind.name()))?;
            of_primitives.insert(class, name);
            name
        } else {
            unknown
        });
    }
    for (memory, name) in objects.memories.all.iter().zip(&mut names[census.ids.len()..]) {
        *name = known.number(strings, memory.name())?;
    }
    for (&loader, name) in &own_names.loaders {
        names[loader as usize] = known.number(strings, name)?;
    }
    Ok(names)
}

/// Returns the ids of the root, the rows, the objects, and native memory, which has the numbers
/// after the rows. An object's id is its address; an eighth of it where addresses need more than 32
/// bits; its number where even that is too much.
fn ids(census: &Census, first_node: u32, memory_count: u32) -> Vec<u32> {
    let most = census.ids.iter().copied().max().unwrap_or(0);
    let least = census.ids.iter().copied().min().unwrap_or(0);
    let first_object = first_node + memory_count;
    let divisor = if most < u64::from(u32::MAX) { 1 } else { 8 };
    let fits = most / divisor < u64::from(u32::MAX)
        && least / divisor >= u64::from(first_object)
        && (divisor == 1 || census.ids.iter().all(|id| id % 8 == 0));
    let of_objects = (first_object..).zip(&census.ids);
    let own = of_objects.map(|(number, &id)| if fits { (id / divisor) as u32 } else { number });
    (0..first_node).chain(own).chain(first_node..first_object).collect()
}
