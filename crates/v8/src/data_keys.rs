//! Property names that are data: keys of objects that are used as dictionaries, such as session
//! ids.
//!
//! ```text
//! { user: …, cart: … }            names written in the program
//! { sess_17: …, sess_18: … }      computed names: V8 stores many of them in a table of strings
//! ```

use rustc_hash::FxHashSet;

use crate::Snapshot;
use crate::kinds::{EdgeKind, NodeKind};

/// Least number of properties unique to one object that make it a dictionary, even if V8 has no
/// table of them.
const OWN_NAMES_MIN: usize = 32;
/// Least number of consecutive digits that mark a name as data.
const DIGITS_MIN: usize = 4;
/// Largest length of a name that a program writes, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Returns for each string of the snapshot whether it is a key that is data.
pub(crate) fn data_keys(snapshot: &Snapshot) -> Vec<bool> {
    let strings = snapshot.strings();
    let count = strings.count() as usize;
    let mut users = vec![0_u32; count];
    let mut is_in_table = vec![false; count];
    let mut is_written = vec![false; count];
    let mut own: Vec<Vec<u32>> = Vec::new();
    for node in 0..snapshot.node_count() {
        if matches!(snapshot.kind(node), NodeKind::CLOSURE | NodeKind::CODE) {
            mark(&mut is_written, snapshot.name_number(node));
        }
        let names = property_names(snapshot, node);
        if names.is_empty() {
            continue;
        }
        let keys = keys_of_table(snapshot, node);
        // Global variables are in a table as well, but are names.
        let is_table = !keys.is_empty() && !snapshot.name(node).starts_with(b"global");
        for &name in &names {
            if is_table && keys.contains(strings.get(name)) {
                mark(&mut is_in_table, name);
            } else if let Some(users) = users.get_mut(name as usize) {
                *users += 1;
            }
        }
        if !is_table && names.len() >= OWN_NAMES_MIN && !is_made_of_code(snapshot, node) {
            own.push(names);
        }
    }
    for edge in 0..snapshot.edge_count() {
        if snapshot.edge_kind(edge) == EdgeKind::CONTEXT {
            mark(&mut is_written, snapshot.edge_name_number(edge));
        }
    }
    for names in own {
        let is_shared = |name: &&u32| users.get(**name as usize).is_some_and(|&users| users > 1);
        // Up to a tenth of the names may occur elsewhere by chance.
        if names.iter().filter(is_shared).count() * 10 <= names.len() {
            for name in names {
                mark(&mut is_in_table, name);
                if let Some(users) = users.get_mut(name as usize) {
                    *users = users.saturating_sub(1);
                }
            }
        }
    }
    let is_data = |number: usize| {
        let is_alone = is_in_table[number] && users[number] == 0;
        !is_written[number] && (is_alone || looks_like_data(strings.get(number as u32)))
    };
    (0..count).map(is_data).collect()
}

fn mark(marks: &mut [bool], number: u32) {
    if let Some(mark) = marks.get_mut(number as usize) {
        *mark = true;
    }
}

/// Returns the names of an object's properties, without those that every object has.
fn property_names(snapshot: &Snapshot, node: u32) -> Vec<u32> {
    if snapshot.kind(node) != NodeKind::OBJECT {
        return Vec::new();
    }
    let edges = snapshot.graph().edges(node);
    let of_property = edges.filter(|&edge| snapshot.edge_kind(edge) == EdgeKind::PROPERTY);
    let names = of_property.map(|edge| snapshot.edge_name_number(edge));
    names.filter(|&name| !matches!(snapshot.strings().get(name), b"__proto__" | b"constructor")).collect()
}

/// Returns the strings in the table of an object's properties, if V8 uses one.
fn keys_of_table(snapshot: &Snapshot, node: u32) -> FxHashSet<&[u8]> {
    let graph = snapshot.graph();
    let mut properties = graph.edges(node).filter(|&edge| {
        snapshot.edge_kind(edge) == EdgeKind::INTERNAL && snapshot.is_edge_named(edge, b"properties")
    });
    let Some(table) = properties.next().map(|edge| graph.target(edge)) else { return FxHashSet::default() };
    let targets = graph.targets_of(table);
    targets
        .filter(|&target| snapshot.kind(target) == NodeKind::STRING)
        .map(|key| snapshot.name(key))
        .collect()
}

/// Whether most of an object's properties are functions: a namespace, or a module's exports.
fn is_made_of_code(snapshot: &Snapshot, node: u32) -> bool {
    let graph = snapshot.graph();
    let of_property = graph.edges(node).filter(|&edge| snapshot.edge_kind(edge) == EdgeKind::PROPERTY);
    let (mut all, mut closures) = (0, 0);
    for edge in of_property {
        all += 1;
        closures += usize::from(snapshot.kind(graph.target(edge)) == NodeKind::CLOSURE);
    }
    closures * 2 > all
}

/// Whether a name is an address, path, sentence or number, or too long for a name.
fn looks_like_data(name: &[u8]) -> bool {
    let digits = name.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).max().unwrap_or(0);
    // Names that V8 makes up, `(code)`, `get x` and `<symbol x>`, are not data.
    let is_made_up = [&b"("[..], b"get ", b"set "].iter().any(|start| name.starts_with(start));
    let is_plain = |byte: &u8| !matches!(byte, b' ' | b'/' | b':' | b'?');
    let is_marked = name.contains(&b'@') || !name.starts_with(b"<") && !name.iter().all(is_plain);
    !is_made_up && (is_marked || digits >= DIGITS_MIN || name.len() > NAME_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_program_would_call_a_field_is_data() {
        for data in ["bob@example.org", "/srv/app.js", "user:17", "a title of a page", "?q=1", "order-20261"]
        {
            assert!(looks_like_data(data.as_bytes()), "{data}");
        }
        for name in
            ["cache", "content-type", "get size", "(code)", "<symbol node:x y>", "#entries", "$1", "h2"]
        {
            assert!(!looks_like_data(name.as_bytes()), "{name}");
        }
    }
}
