//! Checks the licences of all dependencies, and collects their texts for packages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// Licences allowed for what the distributed program contains.
const ALLOWED: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
];
/// Licences also allowed for what only builds or tests the program.
const ALLOWED_FOR_TOOLS: &[&str] = &["MPL-2.0"];
/// Contents of the page's script, with their licences.
const PAGE: &[(&str, &str)] = &[("preact", include_str!("../../../packaging/licences/preact.txt"))];

/// Package of the dependency graph.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: String,
    /// Ids of the packages that it is built with.
    pub(crate) needs: Vec<String>,
    /// True if it is in the program, and not only in tests and tools.
    pub(crate) is_shipped: bool,
    /// True if it belongs to this repository.
    pub(crate) is_own: bool,
    folder: PathBuf,
}

/// Returns all packages, by id.
pub(crate) fn dependencies() -> anyhow::Result<BTreeMap<String, Dependency>> {
    let text = crate::output_of(crate::cargo().args([
        "metadata",
        "--format-version",
        "1",
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
    ]))?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata")?;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = BTreeMap::new();
    for package in metadata["packages"].as_array().context("packages")? {
        let manifest = PathBuf::from(word(&package["manifest_path"]));
        let dependency = Dependency {
            id: word(&package["id"]),
            name: word(&package["name"]),
            version: word(&package["version"]),
            licence: word(&package["license"]),
            needs: Vec::new(),
            is_shipped: false,
            is_own: package["source"].is_null(),
            folder: manifest.parent().map(Path::to_owned).unwrap_or_default(),
        };
        found.insert(dependency.id.clone(), dependency);
    }
    for node in metadata["resolve"]["nodes"].as_array().context("nodes")? {
        let needs = node["deps"].as_array().into_iter().flatten().filter(|need| {
            need["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null())
        });
        let needs: Vec<String> = needs.map(|need| word(&need["pkg"])).collect();
        if let Some(dependency) = found.get_mut(&word(&node["id"])) {
            dependency.needs = needs;
        }
    }
    let is_root = |dependency: &&Dependency| {
        ["heapr", "cargo-heapr", "heapr-agent"].contains(&dependency.name.as_str())
    };
    let mut open: Vec<String> = found.values().filter(is_root).map(|root| root.id.clone()).collect();
    while let Some(id) = open.pop() {
        let dependency = found.get_mut(&id).with_context(|| format!("{id} is needed and not listed"))?;
        if !dependency.is_shipped {
            dependency.is_shipped = true;
            open.extend(dependency.needs.iter().cloned());
        }
    }
    Ok(found)
}

/// Reports every package whose licence is not allowed.
pub(crate) fn check() -> anyhow::Result<()> {
    let all = dependencies()?;
    let breaches: Vec<String> = all
        .values()
        .filter(|dependency| !is_allowed(&dependency.licence, dependency.is_shipped))
        .map(|dependency| format!("{} {}: {:?}", dependency.name, dependency.version, dependency.licence))
        .collect();
    if !breaches.is_empty() {
        bail!(
            "licences that are not in the list of xtask/src/dist/licences.rs:\n  {}",
            breaches.join("\n  ")
        );
    }
    println!("check-licences: {} packages have licences that are allowed", all.len());
    Ok(())
}

/// Whether an SPDX expression can be satisfied with allowed licences.
fn is_allowed(expression: &str, is_shipped: bool) -> bool {
    let Ok(parsed) = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX) else { return false };
    parsed.evaluate(|requirement| {
        let Some(id) = requirement.license.id() else { return false };
        ALLOWED.contains(&id.name) || !is_shipped && ALLOWED_FOR_TOOLS.contains(&id.name)
    })
}

/// Returns the texts of all licences of the program's packages.
pub(crate) fn texts() -> anyhow::Result<String> {
    let mut text = String::from("heapr is made with what others have written. Their licences:\n");
    for dependency in
        dependencies()?.values().filter(|dependency| dependency.is_shipped && !dependency.is_own)
    {
        text.push_str(&format!(
            "\n==== {} {} ({})\n",
            dependency.name, dependency.version, dependency.licence
        ));
        let mut files = Vec::new();
        licence_files(&dependency.folder, 3, &mut files)?;
        files.sort();
        for file in files {
            let shown = file.strip_prefix(&dependency.folder).unwrap_or(&file).display();
            let content = fs::read(&file).with_context(|| file.display().to_string())?;
            text.push_str(&format!("\n-- {shown}\n\n{}\n", String::from_utf8_lossy(&content)));
        }
    }
    for (name, licence) in PAGE {
        text.push_str(&format!("\n==== {name} (in the page)\n\n{licence}\n"));
    }
    Ok(text)
}

/// Collects files that hold a licence, also of C sources that a package contains.
fn licence_files(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    const NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let kind = entry.file_type()?;
        if kind.is_dir() && depth > 0 {
            licence_files(&entry.path(), depth - 1, found)?;
        } else if kind.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            found.push(entry.path());
        }
    }
    Ok(())
}

#[test]
fn an_expression_is_allowed_if_one_of_its_choices_is() {
    for (expression, shipped, tool) in [
        ("MIT OR Apache-2.0", true, true),
        ("MIT/Apache-2.0", true, true),
        ("GPL-3.0-only OR MIT", true, true),
        ("GPL-3.0-only AND MIT", false, false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true, true),
        ("Apache-2.0 WITH LLVM-exception", true, true),
        ("MPL-2.0", false, true),
        ("", false, false),
    ] {
        assert_eq!(
            (is_allowed(expression, true), is_allowed(expression, false)),
            (shipped, tool),
            "{expression}"
        );
    }
}
