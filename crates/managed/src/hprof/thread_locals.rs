//! Names of thread-local values: the static variable that has the key, as in
//! `thread-local PoolLocal.AUDIT`.

use heapr_v8::EdgeKind;
use rustc_hash::{FxHashMap, FxHashSet};

use super::census::Census;
use super::graph::{CLASS_OBJECT, Objects};
use super::names::cut;
use crate::dump_error::Result;

/// Gives the edges to thread-local values the names of their keys.
pub(super) fn name_values(census: &Census, objects: &mut Objects<'_>) -> Result<()> {
    let keys: FxHashSet<u32> = objects.thread_locals.iter().map(|it| it.key).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let mut is_key = vec![false; objects.class_of.len()];
    keys.iter().for_each(|&key| is_key[key as usize] = true);
    let mut names: FxHashMap<u32, String> = FxHashMap::default();
    let mut is_static: FxHashSet<u32> = FxHashSet::default();
    for node in 0..objects.class_of.len() as u32 {
        let class = objects.class_of[node as usize];
        let is_class_object = class == CLASS_OBJECT;
        for edge in objects.edges(node) {
            let key = objects.targets[edge];
            if objects.edge_kinds[edge] != EdgeKind::PROPERTY || !is_key[key as usize] {
                continue;
            }
            // A static variable says more than an object's field.
            if is_static.contains(&key) || !is_class_object && names.contains_key(&key) {
                continue;
            }
            let owner = match objects.classes.get(class as usize) {
                _ if is_class_object => census.class_name(census.ids[node as usize]),
                Some(class) => class.name.to_string(),
                None => continue,
            };
            let field = String::from_utf8_lossy(objects.strings.get(objects.edge_names[edge]));
            names.insert(key, cut(format!("thread-local {owner}.{field}")));
            if is_class_object {
                is_static.insert(key);
            }
        }
    }
    let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
    for at in 0..objects.thread_locals.len() {
        let it = objects.thread_locals[at];
        let number = match numbers.get(&it.key) {
            Some(&number) => number,
            None => {
                let name = names.remove(&it.key).unwrap_or_else(|| of_class(objects, it.key));
                let number = objects.strings.push(name.as_bytes())?;
                numbers.insert(it.key, number);
                number
            }
        };
        objects.edge_names[it.value_edge as usize] = number;
        objects.edge_kinds[it.value_edge as usize] = EdgeKind::INTERNAL;
    }
    Ok(())
}

/// Name for a key that no variable has: its class.
fn of_class(objects: &Objects<'_>, key: u32) -> String {
    let class = objects.class_of.get(key as usize).and_then(|&class| objects.classes.get(class as usize));
    cut(format!("thread-local ({})", class.map_or("unknown key", |class| &*class.name)))
}
