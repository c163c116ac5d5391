//! Snapshots of CPython's objects by the command line, from processes that were not prepared.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use heapr_testkit::{Growing, Outcome, not_run};

use crate::Stage;

const PYTHON: &str = "/usr/bin/python3";

/// Starts a program of `victims/python/heaps`; `None` without an interpreter.
fn growing(name: &str) -> Option<Growing> {
    if !Path::new(PYTHON).exists() {
        not_run("no python3 is installed");
        return None;
    }
    Some(Growing::start(Path::new(PYTHON), name).expect("the program runs here"))
}

#[test]
fn three_snapshots_of_a_running_python_name_the_module_that_collects() {
    let stage = Stage::new();
    let Some(mut program) = growing("module-cache") else { return };
    let files = ["a.heapsnapshot", "b.heapsnapshot", "c.heapsnapshot"];
    for (number, file) in files.into_iter().enumerate() {
        if number > 0 {
            program.step();
        }
        let taken = stage.json(&["snapshot", "take", "-o", file, &program.pid().to_string()]);
        let snapshot = &taken["snapshots"][0];
        assert_eq!(
            (snapshot["heap"].as_str(), snapshot["contents"].as_str()),
            (Some("python"), Some("names"))
        );
        assert!(snapshot["object_count"].as_u64().unwrap() > 20_000, "{taken}");
        assert!(snapshot["pause_ns"].as_u64().unwrap() > 0, "{taken}");
    }
    let found = stage.json(&["snapshot", "suspects", files[0], files[1], files[2]]);
    let first = &found["suspects"][0];
    assert_eq!(first["name"], "module pricing: _quotes (dict)", "{found}");
    assert_eq!(first["confidence"], "high", "{found}");
    let collected = first["collects"].as_array().unwrap();
    let quotes = collected.iter().find(|it| it["class"] == "pricing.Quote").unwrap();
    assert_eq!(quotes["count"], 10_000, "{found}");
    assert!(quotes["example_place"].to_string().contains("pricing.py"), "{found}");
    // The other commands answer on the same file.
    let owner = format!("@{}", first["owner_id"]);
    let ways = stage.ok(&["snapshot", "retainers", files[2], &owner]);
    assert!(ways.contains("module pricing") && ways.contains("._quotes"), "{ways}");
    let dominators = stage.ok(&["snapshot", "dominators", files[2], &owner]);
    assert!(dominators.contains("pricing.Quote"), "{dominators}");
    let summary = stage.json(&["snapshot", "summary", files[2]]);
    let rows = summary["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["class"] == "pricing.Quote").unwrap();
    assert_eq!(row["object_count"], 15_000, "{row}");
    let kept = stage.json(&["snapshot", "diff", files[0], files[2]]);
    let rows = kept["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["class"] == "pricing.Quote").unwrap();
    assert_eq!((row["new_count"].as_u64(), row["deleted_count"].as_u64()), (Some(10_000), Some(0)), "{row}");
    // The program runs on.
    program.step();
}

#[test]
fn texts_are_written_where_they_are_asked_for_alone() {
    let stage = Stage::new();
    let Some(program) = growing("module-cache") else { return };
    for (file, more, expected) in
        [("names.heapsnapshot", &[][..], false), ("texts.heapsnapshot", &["--contents", "strings"], true)]
    {
        let pid = program.pid().to_string();
        let mut words = vec!["snapshot", "take", "-o", file];
        words.extend(more);
        words.push(&pid);
        stage.ok(&words);
        let text = std::fs::read_to_string(stage.path(file)).unwrap();
        assert_eq!(text.contains("\"quote 4711\""), expected, "{file}");
    }
}

#[test]
fn another_heap_is_taken_where_it_is_asked_for_and_refused_where_it_is_not_there() {
    let stage = Stage::new();
    let Some(program) = growing("class-list") else { return };
    let pid = program.pid().to_string();
    stage.ok(&["snapshot", "take", "--heap", "native", "-o", "native.heapr", &pid]);
    assert!(stage.ok(&["snapshot", "summary", "native.heapr"]).contains("blocks"));
    let refused = |words: &[&str], expected: &str| {
        let Outcome { status, stderr, .. } = stage.heapr(words);
        assert_eq!(status, 2, "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    refused(&["snapshot", "take", "--pause", "none", &pid], "copy and stop work");
    let own = std::process::id().to_string();
    refused(&["snapshot", "take", "--heap", "python", &own], "no module of it defines _PyRuntime");
}

#[test]
fn a_core_file_has_the_objects_of_the_process() {
    let stage = Stage::new();
    if Command::new("gcore").arg("-h").output().is_err() {
        return not_run("there is no gcore (gdb)");
    }
    let Some(program) = growing("module-cache") else { return };
    let pid = program.pid().to_string();
    let live = stage.json(&["snapshot", "take", "-o", "live.heapsnapshot", &pid]);
    let output = Command::new("gcore").arg("-o").arg(stage.path("core")).arg(&pid).output();
    let core = stage.path(&format!("core.{pid}"));
    assert!(core.exists(), "{output:?}");
    drop(program);
    let core = core.to_str().unwrap();
    // The graph of its blocks says what else it has.
    let told = stage.ok(&["snapshot", "graph", "--core", core, "-o", "core.heapr"]);
    assert!(told.contains("--heap python writes its objects"), "{told}");
    let words = ["snapshot", "graph", "--core", core, "--heap", "python", "-o", "core.heapsnapshot"];
    let taken = stage.json(&words);
    let live = &live["snapshots"][0];
    for counted in ["object_count", "reference_count"] {
        let [live, dead] = [live, &taken].map(|of| of[counted].as_u64().unwrap());
        assert!(live.abs_diff(dead) * 1000 <= live, "{counted}: {live}, {dead}");
    }
    let files = ["live.heapsnapshot", "core.heapsnapshot"];
    for file in files {
        let summary = stage.json(&["snapshot", "summary", file]);
        let rows = summary["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["class"] == "pricing.Quote").unwrap();
        assert_eq!(row["object_count"], 5_000, "{file}: {row}");
    }
    let Outcome { status, stderr, .. } = stage.heapr(&words);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("exists"), "{stderr}");
}

#[test]
fn snapshots_in_intervals_are_of_the_objects() {
    let stage = Stage::new();
    let Some(program) = growing("class-list") else { return };
    let pid = program.pid().to_string();
    let folder = stage.path("files");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    let told = stage.ok(&["snapshot", "every", "1", &pid, "--count", "3", "--keep", "2", "-o", folder]);
    let files: Vec<&str> = told.lines().filter(|line| line.ends_with(".heapsnapshot")).collect();
    assert_eq!(files.len(), 3, "{told}");
    let there: Vec<bool> = files.iter().map(|file| Path::new(file).exists()).collect();
    assert_eq!(there, [false, true, true], "{told}");
    assert!(stage.ok(&["snapshot", "summary", files[2]]).contains("__main__.Basket"));
    let Outcome { status, stderr, .. } =
        stage.heapr(&["snapshot", "every", "1", &pid, "--count", "1", "-o", "a.heapsnapshot"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("-o names no directory"), "{stderr}");
}

/// Replaces all of its records at each line that it reads.
const REPLACING: &str = "
import sys
class Quote:
    def __init__(self, n):
        self.symbol = f'symbol {n}'
        self.price = n + 0.5
QUOTES = []
for turn in range(2):
    QUOTES.clear()
    QUOTES += [Quote(turn * 5000 + n) for n in range(5000)]
    print('READY', flush=True)
    sys.stdin.readline()
";

#[test]
fn objects_that_replaced_others_at_their_addresses_are_told() {
    let stage = Stage::new();
    if !Path::new(PYTHON).exists() {
        return not_run("no python3 is installed");
    }
    let mut program = Command::new(PYTHON);
    program.args(["-c", REPLACING]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = program.spawn().unwrap();
    let (mut input, mut lines) =
        (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    let pid = child.id().to_string();
    let mut ready = || assert_eq!(lines.next().unwrap().unwrap(), "READY");
    ready();
    for file in ["a.heapsnapshot", "b.heapsnapshot"] {
        stage.ok(&["snapshot", "take", "-o", file, &pid]);
    }
    writeln!(input).unwrap();
    ready();
    stage.ok(&["snapshot", "take", "-o", "c.heapsnapshot", &pid]);
    child.kill().unwrap();
    child.wait().unwrap();
    let changes = |before: &str, after: &str| {
        let diff = stage.json(&["snapshot", "diff", "--top", "1000", before, after]);
        assert_eq!(diff["matched_by"], "address", "{diff}");
        ["__main__.Quote", "str", "float"].map(|class| {
            let row = diff["rows"].as_array().unwrap().iter().find(|row| row["class"] == class).cloned();
            let of = |key: &str| row.as_ref().map_or(0, |row| row[key].as_u64().unwrap());
            ["new_count", "deleted_count", "refilled_count"].map(of)
        })
    };
    // A program that does nothing has the same objects.
    assert_eq!(changes("a.heapsnapshot", "b.heapsnapshot"), [[0; 3]; 3]);
    let [quote, text, float] = changes("b.heapsnapshot", "c.heapsnapshot");
    // One of 63 others has the same bits, of 31 where addresses are longer.
    for of in [text, float] {
        assert!(of[0] > 4700 && of[1] > 4700 && of[0] < 5100, "{of:?}");
    }
    // Those at other addresses are new, and what tells of the rest are their contents.
    assert!(quote[0] == quote[1] && quote[0] + quote[2] > 4500, "{quote:?}");
}

/// Each object of zlib has some 260 KiB of the C library's heap.
const NATIVE: &str = "
import sys, zlib
class Stream:
    def __init__(self):
        self.zip = zlib.compressobj()
STREAMS = [Stream() for _ in range(40)]
print('READY', flush=True)
sys.stdin.read()
";

#[test]
fn objects_hold_the_native_blocks_that_they_refer_to() {
    let stage = Stage::new();
    if !Path::new(PYTHON).exists() {
        return not_run("no python3 is installed");
    }
    // Without pools, all objects and their parts are blocks of the C library, with guards around.
    for allocator in ["default", "malloc_debug"] {
        let mut program = Command::new(PYTHON);
        program.args(["-c", NATIVE]).env("PYTHONMALLOC", allocator);
        let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "READY\n");
        let pid = child.id().to_string();
        let taken = stage.json(&["snapshot", "take", "-f", "-o", "a.heapsnapshot", &pid]);
        child.kill().unwrap();
        child.wait().unwrap();
        let snapshot = &taken["snapshots"][0];
        assert!(snapshot["native_bytes"].as_u64().unwrap() > 40 * 200_000, "{taken}");
        let count = |key: &str| snapshot[key].as_u64().unwrap();
        assert!(count("native_count") * 10 < count("object_count"), "{taken}");
        let summary = stage.json(&["snapshot", "summary", "a.heapsnapshot"]);
        let rows = summary["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["class"] == "__main__.Stream").unwrap();
        assert_eq!(row["object_count"], 40, "{row}");
        assert!(row["retained_bytes"].as_u64().unwrap() > 40 * 200_000, "{row}");
    }
}

/// A function of the program makes the streams.
const RECORDED: &str = "
import os, time, zlib
def open_stream():
    return zlib.compressobj()
STREAMS = [open_stream() for _ in range(40)]
print('ready', os.getpid(), flush=True)
time.sleep(1000)
";

#[test]
fn blocks_of_a_recorded_process_have_the_stacks_that_allocated_them() {
    if !Path::new(PYTHON).exists() {
        return not_run("no python3 is installed");
    }
    let mut stage = Stage::new();
    let pid = stage.start(Path::new(PYTHON), &["-c".to_owned(), RECORDED.to_owned()]);
    let pid = pid.to_string();
    let taken = stage.json(&["snapshot", "take", "--heap", "python", "-o", "a.heapsnapshot", &pid]);
    let with_stacks = taken["snapshots"][0]["native_with_stack_count"].as_u64().unwrap();
    assert!(with_stacks >= 40, "{taken}");
    // Each stream has blocks of 64 KiB; the interpreter has some as large.
    let large =
        stage.ok(&["snapshot", "query", "a.heapsnapshot", "--type", "native", "--min-shallow", "60K"]);
    let ids = large.split_whitespace().filter(|word| word.starts_with('@'));
    let is_of_stream = |id: &&str| {
        let object = stage.json(&["snapshot", "object", "a.heapsnapshot", id]);
        object["allocated_by"].to_string().contains("open_stream")
    };
    let id = ids.into_iter().find(is_of_stream).unwrap_or_else(|| panic!("{large}"));
    let ways = stage.ok(&["snapshot", "retainers", "a.heapsnapshot", id]);
    assert!(ways.contains("allocated by ") && ways.contains("open_stream"), "{ways}");
    let dominators = stage.ok(&["snapshot", "dominators", "a.heapsnapshot", id]);
    assert!(dominators.contains("allocated by ") && dominators.contains("open_stream"), "{dominators}");
    let is_of_streams = |holders: &serde_json::Value| {
        let rows = holders.as_array().unwrap();
        let row = rows.iter().find(|row| row["holder"] == "module __main__: STREAMS (list)");
        row.is_some_and(|row| row["allocated_by"].to_string().contains("open_stream"))
    };
    let holders = stage.json(&["snapshot", "holders", "a.heapsnapshot"]);
    assert!(is_of_streams(&holders["holders"]), "{holders}");
    // The running process: all of its memory in one sum, with the same holders.
    let explained = stage.json(&["explain", &pid, "--objects"]);
    let sum = &explained["resident"]["objects"];
    assert!(is_of_streams(&sum["holders"]), "{sum}");
    let of = |key: &str| sum[key].as_i64().unwrap_or_else(|| panic!("{key}: {sum}"));
    let parts = ["object_bytes", "native_bytes", "rounding_bytes", "kept_bytes", "other_bytes"];
    let explained_bytes: i64 = parts.iter().map(|key| of(key)).sum();
    assert_eq!(explained_bytes + of("unexplained_bytes"), of("rss_bytes"), "{sum}");
    // Pages of zlib's blocks that were read and never written are not resident.
    assert!(of("unexplained_bytes").abs() * 50 <= of("rss_bytes"), "more than 2 % of all: {sum}");
}
