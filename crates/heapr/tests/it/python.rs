//! Python's frames in stacks: `victims/python/lines.py` says itself what each of its blocks stands
//! for. `HEAPR_PYTHONS` names the interpreters, separated by colons; without it the installed
//! `python3` is taken.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use heapr_testkit::not_run;
use serde_json::Value;

use crate::bounded_run;
use crate::recording::{HEAPR, Recording, Settings, record};
use crate::victim_build::sources;

/// Blocks of one size.
#[derive(Debug, Default)]
struct Blocks {
    place: String,
    told: u64,
    right: u64,
    others: Vec<(String, u64)>,
}

/// The interpreters to test with.
fn interpreters() -> Vec<PathBuf> {
    let named = std::env::var("HEAPR_PYTHONS").unwrap_or_else(|_| "/usr/bin/python3".to_owned());
    let (there, missing): (Vec<PathBuf>, Vec<PathBuf>) =
        named.split(':').map(PathBuf::from).partition(|path| path.exists());
    for path in missing {
        not_run(format!("{} is not installed", path.display()));
    }
    there
}

fn victim() -> String {
    sources().join("python/lines.py").to_str().unwrap().to_owned()
}

/// What the program has told of its sizes, and its child.
fn told(file: &Path) -> HashMap<u64, Blocks> {
    let mut told: HashMap<u64, Blocks> = HashMap::new();
    for suffix in ["", ".child"] {
        let lines = std::fs::read_to_string(format!("{}{suffix}", file.display())).unwrap();
        for line in lines.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let blocks = told.entry(line["bytes"].as_u64().unwrap()).or_default();
            blocks.place = place(&line["function"], &line["file"], &line["line"]);
            blocks.told += line["blocks"].as_u64().unwrap();
        }
    }
    told
}

fn place(function: &Value, file: &Value, line: &Value) -> String {
    format!("{}\n{}:{line}", function.as_str().unwrap_or("?"), file.as_str().unwrap_or("?"))
}

/// Every block of a bytearray has the innermost Python frame that its size stands for, and below it
/// `main` and the module.
fn check(recording: &Recording, told: &mut HashMap<u64, Blocks>, label: &str) {
    let report = recording.json(&[
        "report",
        "--stacks",
        "--top",
        "100000000",
        "--require-frames",
        "PyByteArray_Resize",
    ]);
    for group in report["groups"].as_array().unwrap() {
        let (bytes, count) = (group["total_bytes"].as_u64().unwrap(), group["total_count"].as_u64().unwrap());
        let frames = group["frames"].as_array().unwrap();
        let mut python = frames.iter().filter(|frame| frame["module"] == "py");
        let Some(blocks) = told.get_mut(&(bytes / count.max(1))).filter(|_| bytes % count.max(1) == 0) else {
            continue;
        };
        let innermost = python
            .next()
            .map_or(String::new(), |frame| place(&frame["symbol"], &frame["file"], &frame["line"]));
        if innermost == blocks.place {
            blocks.right += count;
        } else {
            blocks.others.push((innermost, count));
        }
    }
    assert!(told.len() > 80, "{label}: {} sizes", told.len());
    let wrong: Vec<&Blocks> = told.values().filter(|blocks| blocks.right != blocks.told).collect();
    assert!(wrong.is_empty(), "{label}: {} of {} places are wrong: {wrong:#?}", wrong.len(), told.len());
}

#[test]
fn each_block_of_a_python_program_has_its_function_and_line() {
    for python in interpreters() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("told");
        let label = python.display().to_string();
        let command = [label.clone(), victim(), file.to_str().unwrap().to_owned()];
        let settings = Settings { verify_every: 1, limit: Duration::from_secs(120), ..Settings::default() };
        let recording = record(&command, &settings);
        assert_eq!(recording.outcome.status, 0, "{label}: {}", recording.outcome.stderr);
        check(&recording, &mut told(&file), &label);
        let info = recording.json(&["info"]);
        let statistic = |name: &str| {
            let all = info["statistics"].as_object().unwrap();
            all.get(name).and_then(Value::as_u64).unwrap_or(0)
        };
        assert!(statistic("stacks_verified") > 10_000, "{label}: {info:#}");
        assert_eq!(statistic("stacks_verified_mismatches"), 0, "{label}");
        // Stacks go on through the interpreter, from the innermost function to the program's entry.
        let words =
            ["report", "--stacks", "st", "--top", "1", "--depth", "100", "--require-frames", "py!made_anew"];
        let stacks = recording.text(&words);
        let at = |what: &str| stacks.find(what).unwrap_or_else(|| panic!("{label}: no {what}: {stacks}"));
        assert!(at("made_anew (lines.py:") < at("work (lines.py:"), "{label}: {stacks}");
        assert!(at("work (lines.py:") < at("main (lines.py:"), "{label}: {stacks}");
    }
}

#[test]
fn a_python_program_that_is_attached_to_has_its_functions_and_lines() {
    for python in interpreters() {
        let scratch = tempfile::tempdir().unwrap();
        let (file, trace) = (scratch.path().join("told"), scratch.path().join("trace.heapr"));
        let label = python.display().to_string();
        let mut program = Command::new(&python)
            .args([victim(), file.to_str().unwrap().to_owned()])
            .env("VICTIM_WAITS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut waits = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(program.stdout.take().unwrap()), &mut waits)
            .unwrap();
        let name = format!("python-{}", program.id());
        let heapr = |words: &[&str]| {
            let mut heapr = Command::new(HEAPR);
            heapr.args(words).env("XDG_RUNTIME_DIR", scratch.path());
            let folder = tempfile::tempdir_in(scratch.path()).unwrap();
            bounded_run::run(heapr, folder.path(), Duration::from_secs(60))
        };
        let pid = program.id().to_string();
        let started = heapr(&["start", &name, "--pid", &pid, "-o", trace.to_str().unwrap()]);
        program.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let status = program.wait().unwrap();
        let stopped = heapr(&["stop", &name]);
        assert_eq!(started.status, 0, "{label}: {}", started.stderr);
        assert!(status.success(), "{label}: {status}");
        assert_eq!(stopped.status, 0, "{label}: {}", stopped.stderr);
        let outcome = bounded_run::Outcome { status: 0, stdout: String::new(), stderr: String::new() };
        let recording = Recording::of_file(&trace, scratch, outcome);
        check(&recording, &mut told(&file), &format!("{label}, attached"));
    }
}
