//! Findings on programs with a known cause (`victims/findings`), and their sentences.
//!
//! The first lines of a program tell how it is run (`build: c++`, `build: rust`, `run: python`,
//! `run: node-snapshots`) and what stands first (`finding: growth in SessionTable::open`; `none`:
//! no growth). Two further lines are optional: options of `heapr run` (`options: --sample 64K`),
//! and words that no sentence may contain (`untold: nothing leads to`).
#![forbid(unsafe_code)]

mod attached;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use heapr_testkit::{Outcome, not_run, run};
use serde_json::Value;

/// Least number of programs whose true cause is the first finding.
const RIGHT_MIN: usize = 47;

/// Program, and the claims of its header.
struct Planted {
    source: PathBuf,
    how: String,
    /// Options of the recording.
    options: String,
    /// Kind and a part of the name, or `none`.
    finding: String,
    /// Words that are in no sentence, if any.
    untold: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../victims/findings").canonicalize().unwrap()
}

fn planted() -> Vec<Planted> {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<Planted> = files
        .filter_map(|source| {
            let text = std::fs::read_to_string(&source).unwrap();
            let value = |key: &str| {
                let line = text.lines().find_map(|line| line.split_once(&format!("{key}: ")));
                line.map(|(_, value)| value.trim().to_owned())
            };
            let how = value("build").or_else(|| value("run"))?;
            let (options, untold) = (value("options").unwrap_or_default(), value("untold"));
            Some(Planted { source, how, options, finding: value("finding").expect("a finding"), untold })
        })
        .collect();
    all.sort_by(|a, b| a.source.cmp(&b.source));
    all
}

/// Path of the heapr under test.
const HEAPR: &str = env!("CARGO_BIN_EXE_heapr");

fn heapr(arguments: &[&str], folder: &Path) -> Outcome {
    run(Command::new(HEAPR).args(arguments).current_dir(folder).env_remove("COLUMNS"))
}

fn has(command: &str) -> bool {
    Command::new(command).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Returns the files that a recording of the program makes; `None` if it needs something that is
/// not installed.
fn recorded(planted: &Planted, folder: &Path) -> Option<Vec<String>> {
    let stem = planted.source.file_name().unwrap().to_str().unwrap().replace('.', "_");
    let program = folder.join(&stem);
    let built = |command: &mut Command| {
        let status = command.arg("-o").arg(&program).arg(&planted.source).status();
        assert!(status.is_ok_and(|status| status.success()), "{}", planted.source.display());
        vec![program.display().to_string()]
    };
    let words = match planted.how.as_str() {
        "c++" => built(Command::new("g++").args(["-std=c++17", "-g", "-O1", "-pthread"])),
        "rust" => built(Command::new("rustc").args(["--edition", "2021", "-g", "-C", "opt-level=1"])),
        "python" => {
            // The interpreter itself, because `python3` may be a script that starts it.
            let script = "import os, sys; print(os.path.realpath(sys.executable))";
            let output = Command::new("python3").args(["-c", script]).output().ok()?;
            let python = String::from_utf8(output.stdout).ok()?.trim().to_owned();
            vec![python, planted.source.display().to_string()]
        }
        "node-snapshot" | "node-snapshots" => {
            if !has("node") {
                return None;
            }
            let count = if planted.how == "node-snapshot" { 1 } else { 3 };
            let files: Vec<String> =
                (1..=count).map(|number| format!("{stem}.{number}.heapsnapshot")).collect();
            let status = Command::new("node").arg(&planted.source).args(&files).current_dir(folder).status();
            assert!(status.is_ok_and(|status| status.success()), "{}", planted.source.display());
            return Some(files);
        }
        "node" if !has("node") => return None,
        "node" => vec!["node".to_owned(), planted.source.display().to_string()],
        how if how.starts_with("java") => {
            let is_built = Command::new("javac").arg("-d").arg(folder).arg(&planted.source).status().ok()?;
            assert!(is_built.success(), "{}", planted.source.display());
            let class = planted.source.file_stem().unwrap().to_str().unwrap();
            let words = how.split(' ').chain(["-cp", folder.to_str().unwrap(), class]);
            words.map(str::to_owned).collect()
        }
        how => panic!("{}: how is {how:?} run?", planted.source.display()),
    };
    let file = format!("{stem}.heapr");
    let mut arguments = vec!["run", "-q", "-o", &file];
    arguments.extend(planted.options.split_whitespace());
    arguments.push("--");
    arguments.extend(words.iter().map(String::as_str));
    heapr(&arguments, folder).ok();
    Some(vec![file])
}

fn explained(files: &[String], folder: &Path) -> Value {
    let mut arguments = vec!["explain", "--format", "json"];
    arguments.extend(files.iter().map(String::as_str));
    heapr(&arguments, folder).json()
}

/// Returns what is wrong with an answer; `None` if it is right.
fn judged(planted: &Planted, answer: &Value) -> Option<String> {
    assert_eq!(answer["schema"], "heapr.explain/1");
    let findings = answer["findings"].as_array().unwrap();
    assert!(findings.len() <= 5);
    for finding in findings {
        for key in ["kind", "sentence", "confidence", "own_frame", "bytes", "evidence", "command"] {
            assert!(finding.get(key).is_some(), "{key}: {finding}");
        }
    }
    let (kind, name) = planted.finding.split_once(" in").unwrap_or((&planted.finding, ""));
    let is_right = if kind == "none" {
        /// Beginnings of sentences that are told of no healthy program, either.
        const REFUSED: &[&str] = &["Malloc keeps", "Mapped files", "Memory rises and falls"];
        findings.iter().all(|finding| {
            let sentence = finding["sentence"].as_str().unwrap();
            finding["kind"] != "growth" && !REFUSED.iter().any(|start| sentence.starts_with(start))
        })
    } else {
        findings.first().is_some_and(|first| {
            first["kind"] == kind && first["sentence"].as_str().unwrap().contains(name.trim())
        })
    };
    let said = findings.iter().map(|finding| &finding["sentence"]).chain([&answer["verdict"]]);
    let sentences: Vec<&str> = said.filter_map(Value::as_str).collect();
    let is_untold = |words: &String| !sentences.iter().any(|sentence| sentence.contains(words));
    let is_right = is_right && planted.untold.iter().all(is_untold);
    (!is_right).then(|| format!("{}: not {:?}: {sentences:?}", planted.source.display(), planted.finding))
}

#[test]
fn the_true_cause_stands_first() {
    let folder = tempfile::tempdir().unwrap();
    let all = planted();
    assert_eq!(all.len(), 49);
    let (next, wrong, healthy_wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(planted) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(files) = recorded(planted, folder.path()) else {
                        not_run(format!("{}: what it needs is not installed", planted.source.display()));
                        continue;
                    };
                    if let Some(text) = judged(planted, &explained(&files, folder.path())) {
                        let is_healthy = planted.finding == "none";
                        healthy_wrong.fetch_add(usize::from(is_healthy), Ordering::Relaxed);
                        wrong.lock().unwrap().push(text);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert_eq!(healthy_wrong.into_inner(), 0, "{wrong:#?}");
    assert!(all.len() - wrong.len() >= RIGHT_MIN, "{wrong:#?}");
}

#[test]
fn a_finding_is_said_after_a_run_in_a_report_and_for_ci() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder_of("leak_freed_at_exit.cc");
    let program = folder.path().join("leak");
    let status =
        Command::new("g++").args(["-std=c++17", "-g", "-O1", "-o"]).arg(&program).arg(source).status();
    assert!(status.is_ok_and(|status| status.success()));
    let ran = heapr(&["run", "-o", "t.heapr", "--", "./leak"], folder.path());
    let sentence = "1. Memory grows: Registry::subscribe (leak_freed_at_exit.cc:";
    let stderr = ran.stderr;
    assert!(stderr.contains(sentence), "{stderr}");
    assert!(stderr.contains("\n   heapr report t.heapr --at "), "{stderr}");
    let text = |arguments: &[&str]| {
        let output = heapr(arguments, folder.path());
        (output.stdout, output.status)
    };
    let (report, _) = text(&["report", "t.heapr"]);
    assert!(report.starts_with(sentence), "{report}");
    let (explained, status) = text(&["explain", "t.heapr"]);
    assert!(explained.contains(sentence) && explained.contains("high confidence"), "{explained}");
    assert_eq!(status, 0);
    // The blocks are freed at exit: growth, but not a leak.
    for (threshold, status) in [("growth", 1), ("leak", 0), ("churn", 0), ("peak=100K", 1), ("peak=100M", 0)]
    {
        assert_eq!(text(&["explain", "t.heapr", "--fail-on", threshold]).1, status, "{threshold}");
    }
    let (github, status) = text(&["explain", "t.heapr", "--fail-on", "growth", "--format", "github"]);
    assert!(github.starts_with("::error title=heapr%3A growth,file="), "{github}");
    assert!(github.contains(",line=") && status == 1, "{github}");
    let (junit, _) = text(&["explain", "t.heapr", "--fail-on", "growth", "--format", "junit"]);
    assert!(
        junit.contains(" failures=\"1\"") && junit.contains("<failure message=\"Memory grows: "),
        "{junit}"
    );
    // A run itself fails on a threshold, with a message, unless it failed anyway or cannot be
    // judged.
    let run_judged = |options: &[&str], program: &[&str]| {
        let words = [&["run", "-q", "-f", "-o", "judged.heapr"], options, &["--"], program].concat();
        let output = heapr(&words, folder.path());
        (output.stderr, output.status)
    };
    let (said, status) = run_judged(&["--fail-on", "growth", "--fail-on", "peak=100K"], &["./leak"]);
    assert!(
        said.contains("heapr: failed: Memory grows: ") && said.contains("100.0 KiB are allowed"),
        "{said}"
    );
    assert_eq!(status, 1);
    assert_eq!(run_judged(&["--fail-on", "leak", "--fail-on", "peak=100M"], &["./leak"]).1, 0);
    assert_eq!(run_judged(&["--fail-on", "growth"], &["sh", "-c", "./leak; exit 7"]).1, 7);
    let elsewhere = tempfile::tempdir().unwrap();
    let unseen = heapr(
        &["run", "-q", "-o", "unseen.heapr", "--fail-on", "growth", "--", "/sbin/ldconfig", "--version"],
        elsewhere.path(),
    );
    unseen.fails_with(&["cannot be judged"]);
    // Without a file, the newest one is meant.
    let (functions, status) = text(&["report", "--functions", "peak"]);
    assert!(functions.contains("FUNCTIONS, with what they call,"), "{functions}");
    assert!(functions.contains("> leak!Registry::subscribe(int)"), "{functions}");
    assert_eq!(status, 0);
    // The command of a finding shows the finding's function.
    let answer = explained_json(folder.path());
    let command = answer["findings"][0]["command"].as_str().unwrap();
    let shown =
        run(Command::new("sh").args(["-c", &command.replacen("heapr", HEAPR, 1)]).current_dir(folder.path()));
    assert!(shown.ok().stdout.contains("Registry::subscribe"));
}

fn folder_of(name: &str) -> PathBuf {
    folder().join(name)
}

fn explained_json(folder: &Path) -> Value {
    explained(&["t.heapr".to_owned()], folder)
}

/// A file of massif that holds one block from its second moment on.
fn held_since_the_start(step_ms: u64) -> String {
    let moments = (0..20_u64).map(|number| {
        let bytes = if number == 0 { 1000 } else { 4_000_000 };
        format!(
            "#-----------\nsnapshot={number}\n#-----------\ntime={}\nmem_heap_B={bytes}\nmem_heap_extra_B=0\n\
             mem_stacks_B=0\nheap_tree=detailed\n\
             n1: {bytes} (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n \
             n0: {bytes} 0x1091A3: keeps (a.c:10)\n",
            number * step_ms
        )
    });
    format!("desc: --time-unit=ms\ncmd: ./a\ntime_unit: ms\n{}", moments.collect::<String>())
}

#[test]
fn a_program_that_lived_shortly_has_no_idle_memory() {
    let folder = tempfile::tempdir().unwrap();
    for (step_ms, is_idle) in [(4, false), (40, false), (60, true), (4000, true)] {
        std::fs::write(folder.path().join("held.massif"), held_since_the_start(step_ms)).unwrap();
        let answer = heapr(&["explain", "held.massif", "--format", "json"], folder.path());
        let json = answer.json();
        let findings = json["findings"].as_array().unwrap();
        assert_eq!(findings.iter().any(|finding| finding["kind"] == "idle"), is_idle, "{step_ms} ms: {json}");
    }
}
