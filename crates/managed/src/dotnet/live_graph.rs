//! Graph of what the runtime's events tell.

use std::collections::BTreeMap;

use heapr_v8::{EdgeKind, NodeKind};
use rustc_hash::{FxHashMap, FxHashSet};

use super::assembly::Assembly;
use super::field_names::FieldNames;
use super::objects::{Class, Objects};
use super::type_names::{is_collection, is_of_dotnet, readable};
use super::walk::{Type, Walk};
use crate::dump::rows::Row;
use crate::dump_error::Result;
use crate::id_map::IdMap;

/// Row of the static variables.
const STATICS: &str = "(static variables)";
/// Flag of roots that keep nothing alive.
const WEAK: u32 = 2;
/// Kind of roots that are handles.
const HANDLE: u8 = 2;

/// Row of a root of a kind: its name, and whether it owns what it leads to.
fn row_of(kind: u8) -> (&'static str, bool) {
    match kind {
        0 => ("(stack)", false),
        1 => ("(waiting for their finalizers)", false),
        HANDLE => ("(handles)", true),
        _ => ("(runtime)", false),
    }
}

/// Builds the graph.
pub(super) fn build(walk: &mut Walk, assemblies: &[Assembly]) -> Result<Objects> {
    let mut map = IdMap::new();
    for &address in &walk.addresses {
        map.insert(address);
    }
    map.finish(&walk.addresses);
    let (classes, class_of) = classes(walk);
    let mut objects = Objects::new(classes, class_of, std::mem::take(&mut walk.own_bytes))?;
    let dependent = dependent(walk, &map);
    let mut fields = FieldNames::of(assemblies, walk);
    let mut rest = &walk.edges[..];
    let (mut types, mut named) = (Vec::new(), Vec::new());
    for (object, &id) in walk.type_ids.iter().enumerate() {
        let own;
        (own, rest) = rest.split_at((walk.edge_counts[object] as usize).min(rest.len()));
        let own = || own.iter().filter_map(|&address| map.get(address));
        types.clear();
        types.extend(own().map(|target| walk.type_ids[target as usize]));
        named.clear();
        let texts = &mut objects.texts;
        fields.names(id, &types, |name| named.push(name.map(|name| texts.number(name)).transpose()));
        let names = named.drain(..).collect::<Result<Vec<_>>>()?;
        let own = own().zip(names);
        let also = dependent.get(&(object as u32)).into_iter().flatten().map(|&value| (value, None));
        objects.push_edges(object, own.chain(also))?;
    }
    objects.contradictions = fields.contradictions;
    detach_statics(walk, &map, &mut objects);
    add_statics(walk, &map, &mut objects)?;
    add_roots(walk, &map, &mut objects);
    Ok(objects)
}

/// Returns the classes, and the class of each object.
fn classes(walk: &Walk) -> (Vec<Class>, Vec<u32>) {
    // A class inside of another one has no namespace: its file tells whose it is.
    let of_dotnet =
        walk.types.values().filter(|known| is_of_dotnet(&known.name) && !known.name.ends_with(']'));
    let mut modules: FxHashSet<u64> = of_dotnet.map(|known| known.module).collect();
    for known in walk.types.values().filter(|known| is_program(known)) {
        modules.remove(&known.module);
    }
    let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
    let mut classes = Vec::new();
    let mut class_of = Vec::with_capacity(walk.type_ids.len());
    for &id in &walk.type_ids {
        class_of.push(*numbers.entry(id).or_insert_with(|| {
            classes.push(walk.types.get(&id).map_or_else(
                || Class { name: "(unknown type)".to_owned(), ..Class::default() },
                |known| class(walk, known, &modules),
            ));
            classes.len() as u32 - 1
        }));
    }
    (classes, class_of)
}

/// Whether a type has a namespace that is not of .NET.
fn is_program(known: &Type) -> bool {
    let outer = known.name.split(['[', '`']).next().unwrap_or_default();
    outer.contains('.') && !is_of_dotnet(outer)
}

fn class(walk: &Walk, known: &Type, modules: &FxHashSet<u64>) -> Class {
    let item = walk.types.get(&known.item());
    let is_store = known.is_array && item.is_none_or(|item| !item.is_primitive);
    let mut element = known;
    // Arrays of arrays are those of their last items; the bound is against circles.
    for _ in 0..32 {
        match walk.types.get(&element.item()).filter(|_| element.is_array) {
            Some(item) => element = item,
            None => break,
        }
    }
    let is_of_dotnet = is_of_dotnet(&element.name) || modules.contains(&element.module);
    let name = readable(&known.name);
    let is_collection = known.is_delegate || is_collection(&name);
    Class { name, is_store, is_collection, is_of_dotnet }
}

/// Values by the objects that keep them alive without a reference.
fn dependent(walk: &Walk, map: &IdMap) -> FxHashMap<u32, Vec<u32>> {
    let mut found: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for &(key, value) in &walk.dependent {
        if let Some((key, value)) = map.get(key).zip(map.get(value)) {
            found.entry(key).or_default().push(value);
        }
    }
    found
}

/// Makes the references weak by which arrays of the runtime hold the values of static variables.
fn detach_statics(walk: &Walk, map: &IdMap, objects: &mut Objects) {
    let statics: FxHashSet<u32> = walk.statics.iter().filter_map(|it| map.get(it.target)).collect();
    let handles = walk.roots.iter().filter(|root| root.kind == HANDLE && root.flags & WEAK == 0);
    let arrays: FxHashSet<u32> = handles.filter_map(|root| map.get(root.target)).collect();
    for &array in &arrays {
        if objects.classes[objects.class_of[array as usize] as usize].name != "System.Object[]" {
            continue;
        }
        let columns = &mut objects.columns;
        let at =
            |node: usize| columns.first_edges.get(node).map_or(columns.targets.len(), |&edge| edge as usize);
        for edge in at(array as usize)..at(array as usize + 1) {
            if statics.contains(&columns.targets[edge]) {
                columns.edge_kinds[edge] = EdgeKind::WEAK;
            }
        }
    }
}

/// Adds a node for each class with static variables; those of unknown classes are in one.
fn add_statics(walk: &Walk, map: &IdMap, objects: &mut Objects) -> Result<()> {
    let mut by_class: BTreeMap<&str, Vec<(String, u32)>> = BTreeMap::new();
    let mut unknown = Vec::new();
    for variable in &walk.statics {
        let Some(target) = map.get(variable.target) else { continue };
        let named = (variable.name.clone(), target);
        match &variable.class {
            Some(class) => by_class.entry(class).or_default().push(named),
            None => unknown.push(named),
        }
    }
    let mut targets = Vec::new();
    for (class, variables) in by_class {
        targets.push(objects.push_class(class, &variables)?);
    }
    if !unknown.is_empty() {
        targets.push(objects.push_class("(unknown)", &unknown)?);
    }
    if !targets.is_empty() {
        let name = STATICS.to_owned();
        objects.rows.push(Row { name, kind: NodeKind::NATIVE, is_owner: true, targets });
    }
    Ok(())
}

fn add_roots(walk: &Walk, map: &IdMap, objects: &mut Objects) {
    let mut by_kind: BTreeMap<(&str, bool), Vec<u32>> = BTreeMap::new();
    for root in walk.roots.iter().filter(|root| root.flags & WEAK == 0) {
        if let Some(target) = map.get(root.target) {
            by_kind.entry(row_of(root.kind)).or_default().push(target);
        }
    }
    for ((name, is_owner), mut targets) in by_kind {
        targets.sort_unstable();
        targets.dedup();
        let kind = if is_owner { NodeKind::NATIVE } else { NodeKind::SYNTHETIC };
        objects.rows.push(Row { name: name.to_owned(), kind, is_owner, targets });
    }
}
