//! `heapr snapshot suspects` and the lists, as they are printed, over snapshots of a Node program.
//! Without Node on the machine nothing is tested, and the tests say so.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

/// Keeps 500 orders more for each of three snapshots.
const PROGRAM: &str = r"
    const v8 = require('v8');
    class Order { constructor(number) { this.number = number; this.text = `order ${number}`; } }
    class Ledger { constructor() { this.orders = new Map(); } }
    const ledger = new Ledger();
    global.handler = () => ledger.orders.size;
    for (const file of process.argv.slice(2)) {
        for (let at = 0; at < 500; at++) ledger.orders.set(`key ${ledger.orders.size}`, new Order(ledger.orders.size));
        v8.writeHeapSnapshot(file);
    }
";

fn snapshots() -> Option<&'static [PathBuf]> {
    static SNAPSHOTS: OnceLock<Option<(TempDir, Vec<PathBuf>)>> = OnceLock::new();
    let made = SNAPSHOTS.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let program = directory.path().join("ledger.js");
        std::fs::write(&program, PROGRAM).expect("the program");
        let files: Vec<PathBuf> = ["a", "b", "c"].map(|name| directory.path().join(name)).to_vec();
        match Command::new("node").arg(&program).args(&files).status() {
            Ok(status) => assert!(status.success()),
            Err(error) => {
                eprintln!("node does not start: {error}: nothing is tested");
                return None;
            }
        }
        Some((directory, files))
    });
    made.as_ref().map(|(_, files)| files.as_slice())
}

fn heapr(command: &str, files: &[impl AsRef<Path>], options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heapr"))
        .args(["snapshot", command])
        .args(files.iter().map(AsRef::as_ref))
        .args(options)
        .output()
        .expect("heapr runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_leak_is_told_in_plain_words() {
    let Some(files) = snapshots() else { return };
    let output = heapr("suspects", files, &[]);
    assert!(output.status.success(), "{output:?}");
    let text = text(&output);
    assert!(text.contains("1. Ledger.orders: almost certainly a leak"), "{text}");
    assert!(text.contains("1,000 more of Order"), "{text}");
    assert!(text.contains("ledger.js:4:"), "{text}");
    assert!(text.contains("variable ledger -> Ledger"), "{text}");
}

#[test]
fn json_and_csv_say_the_same() {
    let Some(files) = snapshots() else { return };
    let json: Value =
        serde_json::from_slice(&heapr("suspects", files, &["--format", "json"]).stdout).expect("JSON");
    assert_eq!(json["schema"], "heapr.snapshot.suspects/1");
    let first = &json["suspects"][0];
    assert_eq!((&first["name"], &first["confidence"]), (&"Ledger.orders".into(), &"high".into()));
    assert_eq!(first["growth_bytes_at"].as_array().map(Vec::len), Some(2));
    let csv = text(&heapr("suspects", files, &["--format", "csv"]));
    let line = csv.lines().nth(1).expect("a line below the head");
    assert!(line.starts_with(&format!("1,Ledger.orders,high,{}", first["growth_bytes"])), "{csv}");
}

#[test]
fn growth_beyond_the_limit_is_status_1() {
    let Some(files) = snapshots() else { return };
    assert_eq!(heapr("suspects", files, &["--fail-if-growth", "1K"]).status.code(), Some(1));
    assert_eq!(heapr("suspects", files, &["--fail-if-growth", "1G"]).status.code(), Some(0));
    assert_eq!(heapr("suspects", &files[..1], &["--fail-if-growth", "1G"]).status.code(), Some(2));
}

#[test]
fn one_snapshot_shows_its_largest_owner() {
    let Some(files) = snapshots() else { return };
    let text = text(&heapr("suspects", &files[2..], &[]));
    assert!(text.contains("1. Ledger.orders"), "{text}");
    assert!(text.contains("1,500 of them Order"), "{text}");
}

#[test]
fn every_list_prints_in_every_format() {
    let Some(files) = snapshots() else { return };
    for list in ["strings", "collections", "shapes", "fanout", "detached", "unreachable", "closures"] {
        for format in ["text", "json", "csv"] {
            let output = heapr(list, &files[..1], &["--format", format, "--top", "5"]);
            assert!(output.status.success(), "{list} {format}: {output:?}");
            assert!(!output.stdout.is_empty(), "{list} {format}");
        }
    }
    let shapes = text(&heapr("shapes", &files[..1], &["--top", "1000"]));
    // Small integers are not in a snapshot.
    assert!(shapes.contains("Order {text}"), "{shapes}");
    let collections = text(&heapr("collections", &files[..1], &[]));
    assert!(collections.contains("Ledger.orders"), "{collections}");
}
