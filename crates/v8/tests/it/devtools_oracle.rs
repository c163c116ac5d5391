//! Every number against DevTools' worker.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::node_program::{exercise, has_node, node_of_version, worker_lines};
use crate::oracle_lines::{lines, open};

/// Compares all lines, in whatever order; lists of edges in their order, too.
fn assert_same(name: &str, files: &[PathBuf; 2]) {
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
fn snapshots_of_other_versions_of_node_have_the_numbers_of_devtools() {
    if !has_node() {
        return;
    }
    for version in ["12.22.12", "14.21.3", "16.20.2", "18.20.8", "22.21.1", "24.11.1", "26"] {
        let node = node_of_version(version);
        let name = format!("node-{version}");
        assert_same(&name, &exercise(&node, &name, &[]));
        if !version.starts_with("12") && !version.starts_with("14") && !version.starts_with("16") {
            let name = format!("node-{version}-internals");
            assert_same(&name, &exercise(&node, &name, &["--expose-internals"]));
        }
    }
}
