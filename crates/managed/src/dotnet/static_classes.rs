//! Classes of static variables, which the runtime's events do not name.
//!
//! An event has a variable's name and its address. The files of the assemblies say which classes
//! have a variable of that name. Where several have one, neighbours decide: some runtimes
//! lay the variables of a file out in the order of its classes.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;

use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::OFlags;

use super::assembly::{self, Assembly};
use super::type_names::readable;
use super::walk::StaticVariable;

/// Largest size of all files that are read, in bytes.
const FILES_BYTES_MAX: u64 = 1 << 30;
/// Least share of neighbours, in percent, that must be in the order of the classes.
const ORDERED_PERCENT: usize = 90;
/// Largest number of candidates that are looked at: a bent file may have any number of one name.
const LOOKS_MAX: usize = 1 << 26;

/// Class of an assembly: numbers of the file and of the class in it.
type Place = (u32, u32);

/// Reads the assemblies that a process has mapped.
pub(super) fn assemblies(pid: u32) -> Vec<Assembly> {
    let mut seen = FxHashSet::default();
    let mut rest = FILES_BYTES_MAX;
    let mut found = Vec::new();
    for mapping in heapr_proc::mappings::read(pid).unwrap_or_default() {
        let is_assembly = [".dll", ".exe"].iter().any(|end| mapping.name.ends_with(end));
        if mapping.inode == 0 || !is_assembly || !seen.insert(mapping.name.clone()) {
            continue;
        }
        let path = format!("/proc/{pid}/root{}", mapping.name);
        let Some(file) = contents(&path, rest) else { continue };
        rest -= file.len() as u64;
        found.extend(assembly::read(&file));
    }
    found
}

/// Contents of a regular file that is not larger than this. The process may exchange the file at
/// any time: a pipe must not block.
fn contents(path: &str, bytes_max: u64) -> Option<Vec<u8>> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(nonblocking).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > bytes_max {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Names the classes of variables, as far as the files tell them.
pub(super) fn name(assemblies: &[Assembly], variables: &mut [StaticVariable]) {
    let mut by_name: FxHashMap<&str, Vec<Place>> = FxHashMap::default();
    for (file, assembly) in (0..).zip(assemblies) {
        for variable in &assembly.variables {
            by_name.entry(&variable.name).or_default().push((file, variable.class));
        }
    }
    variables.sort_unstable_by_key(|variable| variable.place);
    let class_name = |(file, class): Place| &*assemblies[file as usize].classes[class as usize];
    // Variables of generic classes lie elsewhere.
    let is_generic = |place| class_name(place).contains('`');
    let candidates: Vec<&[Place]> =
        variables.iter().map(|it| by_name.get(&*it.name).map_or(&[][..], Vec::as_slice)).collect();
    let mut known: Vec<Option<Place>> = candidates
        .iter()
        .map(|places| match places {
            [only] => Some(*only),
            _ => None,
        })
        .collect();
    if are_in_order(known.iter().flatten().copied().filter(|&place| !is_generic(place))) {
        decide(&candidates, &mut known, &is_generic);
    }
    for (variable, place) in variables.iter_mut().zip(known) {
        variable.class = place.map(|place| readable(class_name(place)));
    }
}

/// Whether the classes of neighbours in the same file follow each other.
fn are_in_order(places: impl Iterator<Item = Place> + Clone) -> bool {
    let pairs = places.clone().zip(places.skip(1)).filter(|(one, next)| one.0 == next.0);
    let (mut all, mut ordered) = (0, 0);
    for (one, next) in pairs {
        all += 1;
        ordered += usize::from(one.1 <= next.1);
    }
    all > 0 && ordered * 100 >= all * ORDERED_PERCENT
}

/// Decides between candidates by the known classes before and behind.
fn decide(candidates: &[&[Place]], known: &mut [Option<Place>], is_generic: &dyn Fn(Place) -> bool) {
    let mut behind = vec![None; known.len()];
    let mut next = None;
    for at in (0..known.len()).rev() {
        behind[at] = next;
        next = known[at].filter(|&place| !is_generic(place)).or(next);
    }
    let mut before: Option<Place> = None;
    let mut left = LOOKS_MAX;
    for at in 0..known.len() {
        if known[at].is_none() {
            // The rest stays unknown.
            let Some(less) = left.checked_sub(candidates[at].len()) else { return };
            left = less;
            let fits = |place: &&Place| {
                let follows = before.is_some_and(|before| before.0 == place.0 && before.1 <= place.1);
                let precedes = behind[at].is_some_and(|next| next.0 == place.0 && place.1 <= next.1);
                // Between two of one file it must fit both.
                let is_inside = before.zip(behind[at]).is_some_and(|(one, next)| one.0 == next.0);
                !is_generic(**place) && if is_inside { follows && precedes } else { follows || precedes }
            };
            let mut fitting = candidates[at].iter().filter(fits);
            if let (Some(&place), None) = (fitting.next(), fitting.next()) {
                known[at] = Some(place);
            }
        }
        before = known[at].filter(|&place| !is_generic(place)).or(before);
    }
}

#[cfg(test)]
mod tests {
    use super::super::assembly::Variable;
    use super::*;

    fn assembly(classes: &[(&str, &[&str])]) -> Assembly {
        let mut assembly = Assembly::default();
        for (class, (name, variables)) in (0..).zip(classes) {
            assembly.classes.push((*name).to_owned());
            let named = variables.iter().map(|&name| Variable { name: name.to_owned(), class });
            assembly.variables.extend(named);
        }
        assembly
    }

    fn classes(assemblies: &[Assembly], names: &[&str]) -> Vec<String> {
        let variable = |(place, name): (u64, &&str)| StaticVariable {
            place,
            target: 8,
            name: (*name).to_owned(),
            class: None,
        };
        let mut variables: Vec<StaticVariable> = (0..).zip(names).map(variable).collect();
        name(assemblies, &mut variables);
        variables.into_iter().map(|it| it.class.unwrap_or_default()).collect()
    }

    #[test]
    fn neighbours_decide_between_classes_of_one_variable_name() {
        let shop = assembly(&[
            ("Shop.A", &["first", "cache"]),
            ("Shop.B", &["second", "cache"]),
            ("Shop.C", &["cache", "third"]),
        ]);
        let found = classes(&[shop], &["first", "cache", "second", "cache", "third"]);
        // The last one may be of two classes.
        assert_eq!(found, ["Shop.A", "", "Shop.B", "", "Shop.C"]);
        let shop = assembly(&[("A", &["a", "cache"]), ("B", &["b"]), ("C", &["cache"]), ("D", &["d"])]);
        assert_eq!(classes(&[shop], &["a", "b", "cache", "d"]), ["A", "B", "C", "D"]);
    }

    #[test]
    fn without_an_order_only_names_that_are_unique_tell_a_class() {
        let shop = assembly(&[("A", &["a", "cache"]), ("B", &["b"]), ("C", &["cache", "c"]), ("D", &["d"])]);
        assert_eq!(classes(&[shop], &["d", "c", "cache", "a", "b", "none"]), ["D", "C", "", "A", "B", ""]);
    }
}
