//! Checks rules for heapr's dependencies: their origin, their licence, duplicates, and that
//! docs/dependencies.md gives the purpose of each.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::dist;

/// Only allowed origin of packages.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// Packages that the program contains or is built with in two versions, with the reason.
const TWICE: &[(&str, &str)] = &[
    ("block-buffer", "of sha2, as that"),
    ("cpufeatures", "of sha2, as that"),
    ("crypto-common", "of sha2, as that"),
    ("digest", "of sha2, as that"),
    ("foldhash", "of hashbrown, as that"),
    ("hashbrown", "ours is 0.15, that of ratatui-core 0.17; see docs/dependencies.md"),
    ("sha2", "ours is 0.10, that of lzma-rust2 0.11; see docs/dependencies.md"),
    ("syn", "that of crossterm's derives is 2, of the others' 3: at build time alone"),
];
const LIST: &str = "docs/dependencies.md";

/// Package of Cargo.lock.
#[derive(Debug, Default, PartialEq, Eq)]
struct Locked {
    name: String,
    version: String,
    source: Option<String>,
    has_checksum: bool,
}

/// Lists every breach of the rules.
pub(crate) fn run() -> anyhow::Result<()> {
    dist::check_licences()?;
    let root = crate::root();
    let read = |path: &str| std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned());
    let locked = locked(&read("Cargo.lock")?);
    let mut breaches = wrong_sources(&locked);
    breaches.extend(wrong_duplicates(&shipped_versions()?));
    let direct = direct_dependencies()?;
    breaches.extend(wrong_rows(&direct, &locked, &read(LIST)?));
    if !breaches.is_empty() {
        bail!(
            "dependencies that break the rules of xtask/src/dependency_policy.rs:\n  {}",
            breaches.join("\n  ")
        );
    }
    println!(
        "check-dependencies: {} packages, {} of them asked for by name, keep the rules",
        locked.len(),
        direct.len()
    );
    Ok(())
}

/// Parses a Cargo.lock, which is a list of tables with one line for each value.
fn locked(text: &str) -> Vec<Locked> {
    let mut all: Vec<Locked> = Vec::new();
    for line in text.lines() {
        if line == "[[package]]" {
            all.push(Locked::default());
        }
        let (Some(package), Some((key, value))) = (all.last_mut(), line.split_once(" = ")) else { continue };
        let value = value.trim_matches('"').to_owned();
        match key {
            "name" => package.name = value,
            "version" => package.version = value,
            "source" => package.source = Some(value),
            "checksum" => package.has_checksum = true,
            _ => {}
        }
    }
    all
}

/// Lists packages that do not come from the registry, or whose content is not fixed by a checksum.
fn wrong_sources(locked: &[Locked]) -> Vec<String> {
    let foreign = locked.iter().filter_map(|package| {
        let source = package.source.as_deref()?;
        let Locked { name, version, .. } = package;
        if source != REGISTRY {
            return Some(format!("{name} {version} comes from {source}"));
        }
        (!package.has_checksum).then(|| format!("{name} {version} has no checksum in Cargo.lock"))
    });
    foreign.collect()
}

/// Lists packages that are in the program twice without a reason here, and reasons that are not
/// needed.
fn wrong_duplicates(versions: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let is_known = |name: &str| TWICE.iter().any(|(known, _)| *known == name);
    let twice: Vec<&String> =
        versions.iter().filter(|(_, versions)| versions.len() > 1).map(|(name, _)| name).collect();
    let unknown = twice.iter().filter(|name| !is_known(name)).map(|name| {
        let versions: Vec<&str> = versions[*name].iter().map(String::as_str).collect();
        format!("{name} is in the program as {}: use one, or give the reason", versions.join(" and "))
    });
    let idle = TWICE.iter().filter(|(name, _)| !twice.iter().any(|it| it == name)).map(|(name, _)| {
        format!("{name} is in the program once: its reason to be there twice is not needed")
    });
    unknown.chain(idle).collect()
}

fn shipped_versions() -> anyhow::Result<BTreeMap<String, BTreeSet<String>>> {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for dependency in dist::dependencies()?.into_values().filter(|it| it.is_shipped && !it.is_own) {
        versions.entry(dependency.name).or_default().insert(dependency.version);
    }
    Ok(versions)
}

/// Returns the dependencies in the manifests of this repository, each with its requirements.
fn direct_dependencies() -> anyhow::Result<BTreeMap<String, BTreeSet<String>>> {
    let text = crate::output_of(crate::cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata")?;
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let packages = metadata["packages"].as_array().context("packages")?;
    for need in packages.iter().filter_map(|package| package["dependencies"].as_array()).flatten() {
        if need["path"].is_null()
            && let (Some(name), Some(requirement)) = (need["name"].as_str(), need["req"].as_str())
        {
            found.entry(name.to_owned()).or_default().insert(requirement.to_owned());
        }
    }
    Ok(found)
}

/// Lists missing, superfluous and wrong rows of the list of dependencies.
fn wrong_rows(direct: &BTreeMap<String, BTreeSet<String>>, locked: &[Locked], list: &str) -> Vec<String> {
    let rows = rows(list);
    let mut wrong = Vec::new();
    for (name, requirements) in direct {
        if requirements.contains("*") {
            wrong.push(format!("{name} is asked for in any version"));
        }
        match rows.get(name.as_str()) {
            None => wrong.push(format!("{name} is not in {LIST}: say what it is for")),
            Some(version) if !locked.iter().any(|it| it.name == *name && it.version == *version) => {
                wrong.push(format!("{LIST} has {name} {version}, Cargo.lock has another one"));
            }
            Some(_) => {}
        }
    }
    let gone = rows.keys().filter(|name| !direct.contains_key(**name));
    wrong.extend(gone.map(|name| format!("{LIST} has {name}, which no manifest asks for")));
    wrong
}

/// Returns the crates of the list with their versions: the first two cells of each row that begins
/// with a name in backticks.
fn rows(list: &str) -> BTreeMap<&str, &str> {
    list.lines()
        .filter_map(|line| {
            let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
            Some((name, rest.split(" |").next()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"x\"\ndependencies = [\n \"b\",\n]\n\n[[package]]\nname = \"b\"\nversion = \"0.2.0\"\nsource = \"git+https://example.org/b\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";

    fn versions(all: &[(&str, &[&str])]) -> BTreeMap<String, BTreeSet<String>> {
        let set = |versions: &[&str]| versions.iter().map(|it| (*it).to_owned()).collect();
        all.iter().map(|(name, versions)| ((*name).to_owned(), set(versions))).collect()
    }

    #[test]
    fn what_is_not_of_the_registry_is_told() {
        let locked = locked(LOCK);
        assert_eq!(locked.len(), 3);
        assert_eq!(wrong_sources(&locked), ["b 0.2.0 comes from git+https://example.org/b"]);
    }

    #[test]
    fn what_is_there_twice_is_told() {
        let wrong = wrong_duplicates(&versions(&[("a", &["1.0.0", "2.0.0"]), ("b", &["1.0.0"])]));
        assert!(wrong.iter().any(|it| it.starts_with("a is in the program as 1.0.0 and 2.0.0")), "{wrong:?}");
        assert!(!wrong.iter().any(|it| it.starts_with("b is in the program as")), "{wrong:?}");
    }

    #[test]
    fn a_row_for_each_that_is_asked_for() {
        let direct = versions(&[("a", &["^1"]), ("b", &["*"]), ("c", &["^1"])]);
        let list =
            "| crate | version |\n|---|---|\n| `a` | 0.9.0 | x |\n| `b` | 0.2.0 | x |\n| `d` | 1 | x |\n";
        assert_eq!(
            wrong_rows(&direct, &locked(LOCK), list),
            [
                "docs/dependencies.md has a 0.9.0, Cargo.lock has another one",
                "b is asked for in any version",
                "c is not in docs/dependencies.md: say what it is for",
                "docs/dependencies.md has d, which no manifest asks for",
            ]
        );
    }
}
