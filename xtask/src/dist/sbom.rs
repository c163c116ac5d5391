//! Writes a bill of materials in CycloneDX's JSON: the packages of the program, with checksums.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::licences::{Dependency, dependencies};

/// Returns the whole document.
pub(crate) fn cyclone_dx() -> anyhow::Result<String> {
    let all = dependencies()?;
    let sums = check_sums()?;
    let shipped: Vec<&Dependency> = all.values().filter(|dependency| dependency.is_shipped).collect();
    let heapr =
        shipped.iter().find(|dependency| dependency.name == "heapr").context("heapr is not listed")?;
    let components: Vec<Value> =
        shipped.iter().filter(|one| one.id != heapr.id).map(|one| component(one, &sums)).collect();
    let edges: Vec<Value> = shipped
        .iter()
        .map(|one| {
            let needs: Vec<String> =
                one.needs.iter().filter_map(|id| Some(reference(all.get(id)?))).collect();
            json!({"ref": reference(one), "dependsOn": needs})
        })
        .collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(heapr, &sums)},
        "components": components,
        "dependencies": edges,
    });
    Ok(format!("{document:#}\n"))
}

fn reference(dependency: &Dependency) -> String {
    format!("pkg:cargo/{}@{}", dependency.name, dependency.version)
}

fn component(dependency: &Dependency, sums: &BTreeMap<(String, String), String>) -> Value {
    let reference = reference(dependency);
    let kind = if dependency.name == "heapr" { "application" } else { "library" };
    let mut component = json!({
        "type": kind,
        "bom-ref": reference,
        "name": dependency.name,
        "version": dependency.version,
        "purl": reference,
        // The older form with a slash is not a valid SPDX expression.
        "licenses": [{"expression": dependency.licence.replace('/', " OR ")}],
    });
    if let Some(sum) = sums.get(&(dependency.name.clone(), dependency.version.clone())) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    component
}

/// Returns name and version -> checksum of the package's archive in Cargo.lock.
fn check_sums() -> anyhow::Result<BTreeMap<(String, String), String>> {
    let text = fs::read_to_string(crate::root().join("Cargo.lock")).context("Cargo.lock")?;
    let mut sums = BTreeMap::new();
    for package in text.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
            Some(line.strip_suffix('"')?.to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) = (value("name"), value("version"), value("checksum")) {
            sums.insert((name, version), sum);
        }
    }
    Ok(sums)
}
