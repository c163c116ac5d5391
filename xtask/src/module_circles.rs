//! Finds circles among the modules of a crate: files that import one another.
//!
//! A name that a module only passes on (`pub use`) counts as a name of the file that defines it. So
//! a folder may re-export what its files define. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;

use crate::sources::{code_of, rust_files};

/// Path of a module: the names from the crate's root.
type Place = Vec<String>;

/// References of a file to other modules.
#[derive(Default)]
struct Module {
    code: String,
    /// Re-exported name -> path that it comes from; `*` names are in `globs`.
    passed_on: BTreeMap<String, Place>,
    globs: Vec<Place>,
    /// Paths that the code names.
    named: BTreeSet<Place>,
}

/// Returns each circle of a crate's sources. Modules are compared with their siblings, each
/// including everything below it. A module and its own submodules count as one. Each arrow has an
/// example.
pub(crate) fn circles(folder: &Path) -> anyhow::Result<Vec<String>> {
    let modules = read(folder)?;
    // Parent -> (child, another child that the first one imports) -> imported path.
    let mut levels: BTreeMap<Place, BTreeMap<(Place, Place), &Place>> = BTreeMap::new();
    for (here, module) in &modules {
        for (named, there) in module.named.iter().map(|place| (place, resolve(&modules, place, 0))) {
            let above = here.iter().zip(&there).take_while(|(left, right)| left == right).count();
            if above < here.len() && above < there.len() {
                let level = levels.entry(here[..above].to_vec()).or_default();
                level.entry((here[..=above].to_vec(), there[..=above].to_vec())).or_insert(named);
            }
        }
    }
    let mut found = Vec::new();
    for arrows in levels.values() {
        let places: Vec<&Place> =
            arrows.keys().flat_map(|(from, to)| [from, to]).collect::<BTreeSet<_>>().into_iter().collect();
        let number = |place: &Place| places.binary_search(&place).unwrap_or_default();
        let mut numbered = vec![BTreeSet::new(); places.len()];
        for (from, to) in arrows.keys() {
            numbered[number(from)].insert(number(to));
        }
        let circles = components(&numbered).into_iter().filter(|circle| circle.len() > 1);
        found.extend(circles.map(|circle| {
            let is_in = |place: &Place| circle.contains(&number(place));
            let inside = arrows.iter().filter(|((from, to), _)| is_in(from) && is_in(to));
            let arrow = |((from, _), named): (&(Place, Place), &&Place)| {
                format!("{} -> {}", from.join("::"), named.join("::"))
            };
            inside.map(arrow).collect::<Vec<_>>().join(", ")
        }));
    }
    Ok(found)
}

fn read(folder: &Path) -> anyhow::Result<BTreeMap<Place, Module>> {
    let mut modules = BTreeMap::new();
    for path in rust_files(folder)? {
        let inside = path.strip_prefix(folder).unwrap_or(&path).to_owned();
        if inside
            .components()
            .any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs" | "bin")))
        {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let module = Module { code: code_of(text), ..Module::default() };
        modules.insert(place_of(&inside), module);
    }
    let known: BTreeSet<Place> = modules.keys().cloned().collect();
    for (here, module) in &mut modules {
        read_names(&known, here, module);
    }
    Ok(modules)
}

fn place_of(inside: &Path) -> Place {
    let mut place: Place = inside
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if matches!(place.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        place.pop();
    }
    place
}

fn read_names(known: &BTreeSet<Place>, here: &Place, module: &mut Module) {
    let code = std::mem::take(&mut module.code);
    let mut rest = String::with_capacity(code.len());
    let mut at = 0;
    while let Some(found) = next_use(&code, at) {
        rest.push_str(&code[at..found]);
        let end = code[found..].find(';').map_or(code.len(), |end| found + end);
        let is_passed_on = code[..found].trim_end().ends_with("pub")
            || code[..found].trim_end().ends_with(')')
                && code[..found].rsplit('\n').next().unwrap_or("").contains("pub(");
        for (path, name) in use_paths(&code[found + 4..end]) {
            let Some(place) = absolute(known, here, &path) else { continue };
            match name.as_str() {
                "*" if is_passed_on => module.globs.push(place),
                _ if is_passed_on => _ = module.passed_on.insert(name, place),
                _ => _ = module.named.insert(place),
            }
        }
        at = end;
    }
    rest.push_str(&code[at..]);
    for path in inline_paths(&rest) {
        module.named.extend(absolute(known, here, &path));
    }
    module.code = rest;
}

fn next_use(code: &str, from: usize) -> Option<usize> {
    code[from..]
        .match_indices("use ")
        .map(|(at, _)| from + at)
        .find(|&at| code[..at].chars().next_back().is_none_or(|before| before.is_whitespace()))
}

/// Returns the paths of a use tree, each with the name that it gives: `a::{b, c as d}` -> a::b (b),
/// a::c (d).
fn use_paths(tree: &str) -> Vec<(Place, String)> {
    fn walk(tree: &str, before: &Place, found: &mut Vec<(Place, String)>) {
        let tree = tree.trim();
        if let Some(open) = tree.find('{') {
            let mut before = before.clone();
            before.extend(
                tree[..open].split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned),
            );
            let inner = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
            let (mut depth, mut start) = (0, 0);
            for (at, letter) in inner.char_indices() {
                match letter {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        walk(&inner[start..at], &before, found);
                        start = at + 1;
                    }
                    _ => {}
                }
            }
            return walk(&inner[start..], &before, found);
        }
        if tree.is_empty() {
            return;
        }
        let (path, renamed) = tree.split_once(" as ").unwrap_or((tree, ""));
        let mut place = before.clone();
        place.extend(
            path.split("::")
                .map(|part| part.trim().to_owned())
                .filter(|part| part != "self" || before.is_empty()),
        );
        let last = place.last().cloned().unwrap_or_default();
        if last == "*" {
            place.pop();
        }
        found.push((place, if renamed.is_empty() { last } else { renamed.trim().to_owned() }));
    }
    let mut found = Vec::new();
    walk(tree, &Place::new(), &mut found);
    found
}

/// Returns paths of two names or more in code: `crate::a::b`, `super::c`, `child::d`.
fn inline_paths(code: &str) -> Vec<Place> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    code.split(|letter| !is_name(letter))
        .filter(|word| word.contains("::") && !word.starts_with(':'))
        .map(|word| word.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect())
        .collect()
}

/// Returns the path from the crate's root; `None` outside of the crate.
fn absolute(known: &BTreeSet<Place>, here: &Place, path: &Place) -> Option<Place> {
    let mut base = here.clone();
    let mut names = path.iter().peekable();
    match names.peek()?.as_str() {
        "crate" => {
            base.clear();
            names.next();
        }
        "self" => _ = names.next(),
        "super" => {
            while names.peek().is_some_and(|name| *name == "super") {
                base.pop()?;
                names.next();
            }
        }
        child => {
            base.push(child.to_owned());
            return known.contains(&base).then(|| [here.as_slice(), path].concat());
        }
    }
    base.extend(names.cloned());
    Some(base)
}

/// Returns the module that defines the target of a path.
fn resolve(modules: &BTreeMap<Place, Module>, path: &Place, depth: usize) -> Place {
    let mut place = Place::new();
    for (at, name) in path.iter().enumerate() {
        let deeper = [place.as_slice(), std::slice::from_ref(name)].concat();
        if modules.contains_key(&deeper) {
            place = deeper;
            continue;
        }
        let Some(module) = modules.get(&place).filter(|_| depth < 8) else { break };
        let origin = module.passed_on.get(name).cloned().or_else(|| {
            let through =
                module.globs.iter().map(|glob| [glob.as_slice(), std::slice::from_ref(name)].concat());
            through.into_iter().find(|path| defines(modules, path))
        });
        if let Some(origin) = origin {
            let rest = [origin.as_slice(), &path[at + 1..]].concat();
            return resolve(modules, &rest, depth + 1);
        }
        break;
    }
    place
}

fn defines(modules: &BTreeMap<Place, Module>, path: &Place) -> bool {
    let Some((name, place)) = path.split_last() else { return false };
    modules.get(place).is_some_and(|module| {
        ["struct ", "enum ", "fn ", "trait ", "type ", "const ", "static "]
            .iter()
            .any(|kind| module.code.contains(&format!("{kind}{name}")))
            || module.passed_on.contains_key(name)
    })
}

/// Returns the strongly connected components, by two walks (Kosaraju).
fn components(arrows: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    fn walk(arrows: &[BTreeSet<usize>], from: usize, seen: &mut [bool], order: &mut Vec<usize>) {
        if std::mem::replace(&mut seen[from], true) {
            return;
        }
        for &to in &arrows[from] {
            walk(arrows, to, seen, order);
        }
        order.push(from);
    }
    let mut order = Vec::new();
    let mut seen = vec![false; arrows.len()];
    (0..arrows.len()).for_each(|from| walk(arrows, from, &mut seen, &mut order));
    let mut back = vec![BTreeSet::new(); arrows.len()];
    for (from, tos) in arrows.iter().enumerate() {
        for &to in tos {
            back[to].insert(from);
        }
    }
    seen.fill(false);
    let mut found = Vec::new();
    for &from in order.iter().rev() {
        let mut files = Vec::new();
        walk(&back, from, &mut seen, &mut files);
        found.push(files);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
        let name = format!("heapr-circles-{}-{}", std::process::id(), files[1].0);
        let folder = std::env::temp_dir().join(name);
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = circles(&folder).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        found
    }

    #[test]
    fn files_that_import_each_other_are_a_circle() {
        let found = circles_of(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("a.rs", "use crate::b::B;\npub struct A;\n"),
            ("b.rs", "pub struct B;\nfn f() { super::a::g() }\n"),
            ("c.rs", "use crate::{a::A, b};\n"),
        ]);
        assert_eq!(found, ["a -> b::B, b -> a::g"]);
    }

    #[test]
    fn a_name_that_is_passed_on_belongs_to_its_own_file() {
        let found = circles_of(&[
            ("lib.rs", "mod error;\nmod work;\npub use error::Error;\npub use work::*;\n"),
            ("error.rs", "pub enum Error {}\n"),
            ("work.rs", "use crate::Error;\npub struct Work;\n"),
            ("last.rs", "use crate::{Error, Work};\n"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
