//! Comparison of every number with DevTools' worker.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use heapr_v8::{CallTree, FunctionAllocations};

use crate::node_program::{
    chromium_page, exercise, has_node, node_of_version, timeline_and_profile, worker_lines,
};
use crate::oracle_lines::{lines, open};

/// Compares all lines in any order; the lines of an edge list also in their order.
pub(crate) fn assert_same(name: &str, files: &[PathBuf; 2]) {
    let [before, after] = [open(&files[0]), open(&files[1])];
    let ours = lines(&before, Some(&after));
    let theirs = worker_lines(files);
    let ordered = |lines: &[String]| -> Vec<String> {
        lines
            .iter()
            .filter(|line| line.starts_with("edge") || line.starts_with("retainer"))
            .cloned()
            .collect()
    };
    let (our_edges, their_edges) = (ordered(&ours), ordered(&theirs));
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for line in &theirs {
        *counts.entry(line).or_default() += 1;
    }
    for line in &ours {
        *counts.entry(line).or_default() -= 1;
    }
    counts.retain(|_, count| *count != 0);
    let shown: Vec<String> = counts
        .iter()
        .take(40)
        .map(|(line, count)| format!("{} {line}", if *count > 0 { "DevTools:" } else { "heapr:   " }))
        .collect();
    assert!(counts.is_empty(), "{name}: {} lines differ\n{}", counts.len(), shown.join("\n"));
    for (our, their) in our_edges.iter().zip(&their_edges) {
        assert_eq!(our, their, "{name}: the order of edges differs");
    }
    assert!(ours.len() > 10_000, "{name}: only {} lines", ours.len());
}

fn check(name: &str, node: &Path, options: &[&str]) {
    if has_node() {
        assert_same(name, &exercise(node, name, options));
    }
}

#[test]
fn a_default_snapshot_has_the_numbers_of_devtools() {
    check("default", Path::new("node"), &[]);
}

#[test]
fn a_snapshot_with_exposed_internals_has_the_numbers_of_devtools() {
    check("internals", Path::new("node"), &["--expose-internals"]);
}

#[test]
fn a_snapshot_with_numeric_values_has_the_numbers_of_devtools() {
    check("numbers", Path::new("node"), &["--numeric-values"]);
}

#[test]
fn a_snapshot_as_devtools_takes_it_has_the_numbers_of_devtools() {
    check("both", Path::new("node"), &["--expose-internals", "--numeric-values"]);
}

#[test]
fn a_page_in_chromium_has_the_numbers_of_devtools() {
    if !has_node() {
        return;
    }
    for (name, options) in [
        ("chromium", &[][..]),
        ("chromium-internals", &["--expose-internals"]),
        ("chromium-both", &["--expose-internals", "--numeric-values"]),
    ] {
        assert_same(name, &chromium_page(name, options));
    }
}

#[test]
fn an_allocation_timeline_has_the_numbers_of_devtools() {
    if has_node() {
        let [timeline, _] = timeline_and_profile();
        assert_same("timeline", &[timeline.clone(), timeline]);
    }
}

#[test]
fn a_sampling_profile_has_the_bytes_of_its_samples() {
    if !has_node() {
        return;
    }
    let [_, profile] = timeline_and_profile();
    assert!(CallTree::is_profile(&profile).unwrap());
    let tree = CallTree::read_profile(&profile).unwrap();
    let text: serde_json::Value = serde_json::from_slice(&std::fs::read(&profile).unwrap()).unwrap();
    let samples = text["samples"].as_array().unwrap();
    // V8 writes the tree first and then the list of samples. Allocations while it writes the tree
    // may add a sample of a stack that the tree lacks.
    let ids = ids_of(&text["head"]);
    let placed = samples.iter().filter(|sample| ids.contains(&sample["nodeId"].as_u64().unwrap())).count();
    assert!(placed > 0 && samples.len() - placed <= samples.len() / 100, "{placed} of {}", samples.len());
    let counted: u64 = tree.nodes.iter().map(|node| node.own.live_count).sum();
    assert_eq!(counted, placed as u64);
    let is_recursive =
        |line: &FunctionAllocations| tree.functions[line.function as usize].name == "recursive";
    let recursive = tree.by_function().into_iter().find(is_recursive).unwrap();
    // 200 calls go 20 deep and hold an array each time; at any depth, each byte counts once.
    assert!(recursive.own.live_bytes > 50_000, "{recursive:?}");
    let all: u64 = tree.nodes.iter().map(|node| node.own.live_bytes).sum();
    assert!((recursive.own.live_bytes..=all).contains(&recursive.whole.live_bytes), "{recursive:?}");
}

/// Ids of a profile's node and of all below it.
fn ids_of(head: &serde_json::Value) -> HashSet<u64> {
    let (mut ids, mut open) = (HashSet::new(), vec![head]);
    while let Some(node) = open.pop() {
        ids.insert(node["id"].as_u64().unwrap());
        open.extend(node["children"].as_array().unwrap());
    }
    ids
}

// Each version is a test of its own, so that several processors work.
macro_rules! versions_of_node {
    ($($test:ident: $versions:expr;)*) => {
        $(
            #[test]
            fn $test() {
                check_versions(&$versions);
            }
        )*
    };
}

versions_of_node! {
    node_12_and_26_have_the_numbers_of_devtools: ["12.22.12", "26"];
    node_14_and_24_have_the_numbers_of_devtools: ["14.21.3", "24.11.1"];
    node_16_and_22_have_the_numbers_of_devtools: ["16.20.2", "22.21.1"];
    node_18_has_the_numbers_of_devtools: ["18.20.8"];
}

fn check_versions(versions: &[&str]) {
    if !has_node() {
        return;
    }
    for version in versions {
        let node = node_of_version(version);
        let name = format!("node-{version}");
        assert_same(&name, &exercise(&node, &name, &[]));
        if !version.starts_with("12") && !version.starts_with("14") && !version.starts_with("16") {
            let name = format!("node-{version}-internals");
            assert_same(&name, &exercise(&node, &name, &["--expose-internals"]));
        }
    }
}
