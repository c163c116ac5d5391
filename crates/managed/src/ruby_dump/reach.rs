//! Classes that only their instances lead to.

use rustc_hash::FxHashSet;

use super::objects::Objects;

/// Returns the addresses of classes that only their instances lead to, as after their constant was
/// removed. A dump does not list an object's class among its references.
pub(super) fn classes_of_instances_alone(objects: &Objects) -> FxHashSet<u64> {
    if objects.has_no_roots() {
        return FxHashSet::default();
    }
    let mut is_reached = vec![false; objects.all.len()];
    let of_roots = objects.roots.iter().flat_map(|root| &root.references);
    let mut pending: Vec<u32> = of_roots.filter_map(|&address| objects.map.get(address)).collect();
    while let Some(node) = pending.pop() {
        if std::mem::replace(&mut is_reached[node as usize], true) {
            continue;
        }
        let references = objects.references_of(node as usize).iter();
        let targets = references.filter_map(|&address| objects.map.get(address));
        pending.extend(targets.filter(|&target| !is_reached[target as usize]));
    }
    let addresses = objects.all.iter().map(|object| object.address);
    let unreached = addresses.zip(is_reached).filter(|&(_, is_reached)| !is_reached);
    unreached.map(|(address, _)| address).filter(|address| objects.classes.contains_key(address)).collect()
}
