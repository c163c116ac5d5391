//! Output of `heapr snapshot suspects` and of lists for snapshots of a Node program. Without Node
//! the tests say that they were not run.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use heapr_testkit::{Outcome, run};
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

/// Path of the heapr under test.
const HEAPR: &str = env!("CARGO_BIN_EXE_heapr");

fn heapr(command: &str, files: &[impl AsRef<Path>], options: &[&str]) -> Outcome {
    asked(&["snapshot", command], files, options)
}

fn asked(words: &[&str], files: &[impl AsRef<Path>], options: &[&str]) -> Outcome {
    run(Command::new(HEAPR).args(words).args(files.iter().map(AsRef::as_ref)).args(options))
}

fn text(outcome: &Outcome) -> String {
    outcome.stdout.clone()
}

#[test]
fn the_leak_is_told_in_plain_words() {
    let Some(files) = snapshots() else { return };
    let output = heapr("suspects", files, &[]);
    assert_eq!(output.status, 0, "{output:?}");
    let text = text(&output);
    assert!(text.contains("1. Ledger.orders: almost certainly a leak"), "{text}");
    assert!(text.contains("1,000 more of Order"), "{text}");
    assert!(text.contains("ledger.js:4:"), "{text}");
    assert!(text.contains("variable ledger -> Ledger"), "{text}");
}

/// Keeps events in a list of a package, whose parts are objects of the package alone.
const PROGRAM_WITH_A_PACKAGE: &str = r"
    const { List } = require('pieces');
    class EventLog { constructor() { this.entries = new List(); } }
    const log = new EventLog();
    const seen = new List();
    global.handler = () => [log, seen];
    for (const file of process.argv.slice(2)) {
        for (let at = 0; at < 500; at++) { log.entries.add({ at }); seen.add(`event ${at}`); }
        require('v8').writeHeapSnapshot(file);
    }
";
const PACKAGE: &str = r"
    class Piece { constructor() { this.values = []; } }
    exports.List = class List { constructor() { this.root = new Piece(); } add(value) { this.root.values.push(value); } };
";

#[test]
fn a_part_of_a_package_is_told_with_the_name_that_the_program_has_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let package = folder.path().join("node_modules/pieces");
    std::fs::create_dir_all(&package).expect("a folder");
    std::fs::write(package.join("index.js"), PACKAGE).expect("the package");
    std::fs::write(folder.path().join("log.js"), PROGRAM_WITH_A_PACKAGE).expect("the program");
    let files = ["a", "b", "c"].map(|name| folder.path().join(name));
    match Command::new("node").arg(folder.path().join("log.js")).args(&files).status() {
        Ok(status) => assert!(status.success()),
        Err(error) => return eprintln!("node does not start: {error}: nothing is tested"),
    }
    let text = text(&heapr("suspects", &files, &[]));
    assert!(text.contains("Piece.values of EventLog.entries: almost certainly a leak"), "{text}");
    assert!(text.contains("Piece.values of seen (variable in "), "{text}");
    assert!(text.contains("log.js:3:"), "{text}");
}

#[test]
fn json_and_csv_say_the_same() {
    let Some(files) = snapshots() else { return };
    let json: Value = heapr("suspects", files, &["--format", "json"]).json();
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
    assert_eq!(heapr("suspects", files, &["--fail-if-growth", "1K"]).status, 1);
    assert_eq!(heapr("suspects", files, &["--fail-if-growth", "1G"]).status, 0);
    assert_eq!(heapr("suspects", &files[..1], &["--fail-if-growth", "1G"]).status, 2);
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
    for list in
        ["strings", "collections", "shapes", "fanout", "detached", "unreachable", "closures", "pending"]
    {
        for format in ["text", "json", "csv"] {
            let output = heapr(list, &files[..1], &["--format", format, "--top", "5"]);
            assert_eq!(output.status, 0, "{list} {format}: {output:?}");
            assert!(!output.stdout.is_empty(), "{list} {format}");
        }
    }
    let shapes = text(&heapr("shapes", &files[..1], &["--top", "1000"]));
    // Small integers are not in a snapshot.
    assert!(shapes.contains("Order {text}"), "{shapes}");
    let collections = text(&heapr("collections", &files[..1], &[]));
    assert!(collections.contains("Ledger.orders"), "{collections}");
}

/// Takes snapshots of a minified bundle, from a copy in a folder.
fn of_bundle(name: &str, folder: &Path) -> Option<Vec<PathBuf>> {
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../victims/node/bundled");
    let script = folder.join("main.js");
    for (from, to) in [("dist/main.js", script.clone()), ("dist/main.js.map", folder.join(name))] {
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        std::fs::copy(bundled.join(from), to).expect("a copy");
    }
    let files: Vec<PathBuf> = ["a", "b", "c"].map(|name| folder.join(name)).to_vec();
    Command::new("node").arg(&script).args(&files).status().ok().filter(std::process::ExitStatus::success)?;
    Some(files)
}

#[test]
fn a_minified_bundle_is_told_of_in_its_sources() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(files) = of_bundle("main.js.map", folder.path()) else { return };
    let told = text(&heapr("suspects", &files, &[]));
    assert!(told.contains("1. SessionStore.sessions: almost certainly a leak"), "{told}");
    assert!(told.contains("1,000 more of Session ("), "{told}");
    assert!(told.contains("src/store.ts:9:8"), "{told}");
    assert!(told.contains("variable store -> SessionStore"), "{told}");
    assert!(told.contains("2. seenVisitors (variable in "), "{told}");
    let as_it_ran = text(&heapr("suspects", &files, &["--no-source-maps"]));
    assert!(as_it_ran.contains("1. i.sessions: almost certainly a leak"), "{as_it_ran}");
    assert!(as_it_ran.contains("main.js:1:"), "{as_it_ran}");
    let classes = text(&heapr("summary", &files[..1], &["--top", "1000"]));
    assert!(classes.contains("src/store.ts:9:8"), "{classes}");
    let explained = asked(&["explain"], &files, &[]);
    assert!(text(&explained).contains("SessionStore.sessions"), "{explained:?}");
}

#[test]
fn maps_of_another_folder_are_named_and_old_ones_not_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(files) = of_bundle("maps/main.js.map", folder.path()) else { return };
    assert!(text(&heapr("suspects", &files, &[])).contains("1. i.sessions"));
    let maps = folder.path().join("maps");
    let option = ["--source-map-dir", maps.to_str().expect("text")];
    let told = text(&heapr("suspects", &files, &option));
    assert!(told.contains("src/store.ts:9:8"), "{told}");
    // The script changes after the snapshots, so that its map is of another script.
    std::fs::rename(maps.join("main.js.map"), folder.path().join("main.js.map")).expect("a move");
    let script = std::fs::File::options().append(true).open(folder.path().join("main.js")).expect("a script");
    script.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(60)).expect("a time");
    let output = heapr("suspects", &files, &[]);
    assert!(text(&output).contains("1. i.sessions"), "{output:?}");
    let warnings = output.stderr;
    assert!(warnings.contains("main.js has changed since the snapshot"), "{warnings}");
}

/// Program of two packages: one keeps 1,000 texts of 1 KB for each of two snapshots, the other is
/// idle.
#[test]
fn packages_are_told_by_what_they_keep() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    write(
        "node_modules/@shop/cache/index.js",
        "class Cache { constructor() { this.all = new Map(); } add(at) { this.all.set(at, Buffer.alloc(1024, at).toString('latin1')); } }
        module.exports = new Cache();",
    );
    write(
        "node_modules/idle/index.js",
        "class Idle { constructor() { this.nothing = [1, 2]; } } module.exports = new Idle();",
    );
    write(
        "app.js",
        "const cache = require('@shop/cache'), idle = require('idle'), v8 = require('v8');
        let at = 0;
        for (const file of process.argv.slice(2)) { for (let to = at + 1000; at < to; at++) cache.add(at); v8.writeHeapSnapshot(file); }
        global.kept = () => [cache, idle];",
    );
    let files: Vec<PathBuf> = ["a", "b"].map(|name| folder.path().join(name)).to_vec();
    let Ok(status) = Command::new("node").arg(folder.path().join("app.js")).args(&files).status() else {
        return;
    };
    assert!(status.success());
    let json = |files: &[PathBuf], by: &str| -> Value {
        heapr("packages", files, &["--format", "json", "--by", by]).json()
    };
    let one = json(&files[..1], "package");
    let rows = one["rows"].as_array().expect("rows").clone();
    let of = |name: &str| {
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {one}")).clone()
    };
    let cache = of("@shop/cache");
    assert!((1_000_000..1_200_000).contains(&cache["own_bytes"].as_u64().expect("bytes")), "{cache}");
    assert!(cache["retained_bytes"].as_u64() >= cache["own_bytes"].as_u64(), "{cache}");
    assert!(of("idle")["own_bytes"].as_u64().expect("bytes") < 100_000);
    // Each byte belongs to one package.
    let sum: u64 = rows.iter().map(|row| row["own_bytes"].as_u64().expect("bytes")).sum();
    assert_eq!(Some(sum), one["total_bytes"].as_u64());
    let grown = json(&files, "package");
    assert_eq!(grown["rows"][0]["name"], "@shop/cache");
    let growth = grown["rows"][0]["own_bytes_delta"].as_i64().expect("bytes");
    assert!((1_000_000..1_200_000).contains(&growth), "{grown}");
    let by_file = json(&files, "file");
    assert!(
        by_file["rows"][0]["name"].as_str().expect("a name").ends_with("node_modules/@shop/cache/index.js")
    );
}

/// Forty calls wait for an event that never comes, each in a store of its own.
const WAITER: &str = r"
    const v8 = require('v8'), { EventEmitter } = require('events'), { AsyncLocalStorage } = require('async_hooks');
    const bus = new EventEmitter().setMaxListeners(0), storage = new AsyncLocalStorage();
    class Job { constructor(number) { this.number = number; } }
    async function handleJob(job) { const text = Buffer.alloc(4096, 65).toString('latin1'); await new Promise(resolve => bus.once('done', resolve)); return text + job; }
    for (let at = 0; at < 40; at++) storage.run(new Job(at), () => { handleJob(at); });
    const later = new Promise(resolve => bus.once('later', resolve));
    for (let at = 0; at < 7; at++) later.then(function afterwards() { return at; });
    for (let at = 0; at < 20; at++) bus.on('tick', function onTick() { return at; });
    for (let at = 0; at < 5; at++) setInterval(function poll() { return at; }, 1e6);
    setTimeout(() => { v8.writeHeapSnapshot(process.argv[2]); process.exit(); }, 50);
";

#[test]
fn what_waits_is_told_by_the_function_that_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, file) = (folder.path().join("waiter.js"), folder.path().join("a"));
    std::fs::write(&program, WAITER).expect("a file");
    let Ok(status) = Command::new("node").arg(&program).arg(&file).status() else { return };
    assert!(status.success());
    let pending: Value = heapr("pending", &[&file], &["--format", "json"]).json();
    let rows = pending["rows"].as_array().expect("rows");
    let of = |kind: &str, what: &str| {
        let row = rows.iter().find(|row| row["kind"] == kind && row["what"] == what);
        row.unwrap_or_else(|| panic!("{kind} {what}: {pending:#}"))
    };
    let waits = of("await", "function handleJob");
    assert_eq!(waits["count"], 40);
    assert!(waits["place"].as_str().expect("a place").contains("waiter.js:5:"), "{waits}");
    assert!(waits["retained_bytes"].as_u64() > Some(40 * 4096), "{waits}");
    assert_eq!(of("then", "function afterwards")["count"], 7);
    assert_eq!(
        (&of("listener", "function onTick")["count"], &of("listener", "function onTick")["event"]),
        (&20.into(), &"tick".into())
    );
    assert_eq!(of("timer", "function poll")["count"], 5);
}
