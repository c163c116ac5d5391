//! Class loaders: those of the program begin the names of what they hold.
//!
//! A loader holds its classes, and these their statics. Each instance of its classes holds the
//! loader. A loader that cannot go is what a program leaks that deploys an application anew.

use rustc_hash::{FxHashMap, FxHashSet};

use super::census::Census;
use super::classes::Class;
use super::graph::Objects;
use super::names::cut;

/// Fields of loaders with a text that says which one it is, the most telling first.
const NAMES: [&str; 3] = ["contextName", "_name", "name"];

/// Returns the loaders of the program that could be unloaded.
pub(super) fn of_the_program(census: &Census, classes: &[Class]) -> Vec<u32> {
    let own = census.classes.iter().zip(classes).filter(|(_, class)| class.is_of_the_program);
    let ids: FxHashSet<u64> = own.map(|(record, _)| record.loader).collect();
    let passing = ids.into_iter().filter(|id| !census.lasting_loaders.contains(id));
    let mut found: Vec<u32> = passing.filter_map(|id| census.map.get(id)).collect();
    found.sort_unstable();
    found
}

/// Returns the strings that name loaders, by loader.
pub(super) fn strings_of_names(objects: &Objects<'_>, loaders: &[u32]) -> FxHashMap<u32, Vec<u32>> {
    let of = |&loader: &u32| {
        let strings = NAMES.iter().filter_map(|name| objects.field(loader, name));
        (loader, strings.collect())
    };
    loaders.iter().map(of).collect()
}

/// Returns the names of loaders: `class loader /shop (ParallelWebappClassLoader)`. `texts` has the
/// texts of the strings that name them.
pub(super) fn names(
    objects: &Objects<'_>,
    strings: &FxHashMap<u32, Vec<u32>>,
    texts: &FxHashMap<u32, String>,
) -> FxHashMap<u32, String> {
    let name = |(&loader, of_names): (&u32, &Vec<u32>)| {
        let class = objects.class_of.get(loader as usize);
        let class = class.and_then(|&class| objects.classes.get(class as usize));
        let class = class.map_or("unknown class", |class| &*class.name);
        let told = of_names.iter().filter_map(|string| texts.get(string)).find(|text| !text.is_empty());
        let name = match told {
            Some(text) => format!("class loader {text} ({class})"),
            None => format!("class loader ({class})"),
        };
        (loader, cut(name))
    };
    strings.iter().map(name).collect()
}
